//! The roles of an `aclitem`: their names as the catalog knows them.

use super::{BOOTSTRAP_SUPERUSER, NamedItem};
use crate::eval::{EvalContext, EvalStop, ObjectKind};
use throng_types::{Datum, Oid, Text};

/// A role's oid; 42704 where there is none of the name.
pub(crate) fn role_oid(ctx: &EvalContext<'_>, name: &str) -> Result<Oid, EvalStop> {
    ctx.host.object_oid(ObjectKind::Role, &quoted(name))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A role's name, without quotes; its number where it is gone.
pub(crate) fn role_name(ctx: &EvalContext<'_>, role: Oid) -> String {
    if role == Oid::NONE {
        return String::new();
    }
    let name = ctx.host.object_name(ObjectKind::Role, role);
    let Some(name) = name else {
        return role.to_string();
    };
    let inner = name.strip_prefix('"').and_then(|n| n.strip_suffix('"'));
    inner.map_or_else(|| name.clone(), |inner| inner.replace("\"\"", "\""))
}

/// Reads an `aclitem`, whose roles must be there. One that does not say by whom is the bootstrap
/// superuser's.
pub(crate) fn read_item(ctx: &EvalContext<'_>, text: &str) -> throng_types::Result<Datum> {
    let mut item = NamedItem::parse(text)?;
    let grantor = item.grantor.take();
    for name in [Some(&item.grantee), grantor.as_ref()]
        .into_iter()
        .flatten()
    {
        if !name.is_empty() {
            role_oid(ctx, name).map_err(EvalStop::into_error)?;
        }
    }
    item.grantor = Some(grantor.unwrap_or_else(|| role_name(ctx, BOOTSTRAP_SUPERUSER)));
    Ok(Datum::Text(Text::new(item.text())))
}
