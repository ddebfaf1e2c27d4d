//! Rights: what was granted, what will be, and which roles are in which.

use serde::{Deserialize, Serialize};
use throng_types::Oid;

use super::id;

/// What was granted to one role by another: rights in the lower half, grant options in the upper
/// (see [`crate::acl`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AclItem {
    /// NONE: everybody.
    #[serde(with = "id")]
    pub grantee: Oid,
    #[serde(with = "id")]
    pub grantor: Oid,
    pub rights: u32,
}

/// What was granted on an object, once that is no more what it was born with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrivilegesDef {
    #[serde(with = "id")]
    pub oid: Oid,
    /// As in [`super::CommentDef`].
    #[serde(with = "id")]
    pub class: Oid,
    #[serde(with = "id")]
    pub object: Oid,
    pub column: u16,
    pub items: Vec<AclItem>,
}

/// ALTER DEFAULT PRIVILEGES: what the objects that a role makes are born with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DefaultPrivilegesDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub role: Oid,
    /// NONE: in every schema. Else these are added to what holds in every schema.
    #[serde(with = "id")]
    pub schema: Oid,
    /// `r`, `S`, `f`, `T`, `n`: as in `pg_default_acl`.
    pub kind: u8,
    pub items: Vec<AclItem>,
}

/// A role is in another: one grant of that.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MembershipDef {
    #[serde(with = "id")]
    pub oid: Oid,
    #[serde(with = "id")]
    pub role: Oid,
    #[serde(with = "id")]
    pub member: Oid,
    #[serde(with = "id")]
    pub grantor: Oid,
    /// The member may grant it to others.
    pub admin: bool,
    /// The member has the role's rights without SET ROLE.
    pub inherit: bool,
    /// The member may SET ROLE to it.
    pub set: bool,
}
