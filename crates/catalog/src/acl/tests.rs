use throng_types::Oid;

use super::*;
use crate::{Object, RoleDef};

const OWNER: Oid = Oid(100);
const BOB: Oid = Oid(101);
const CAROL: Oid = Oid(102);

fn catalog() -> Catalog {
    let roles = [(OWNER, "owner"), (BOB, "bob"), (CAROL, "car ol")];
    let roles = roles.map(|(oid, name)| Object::from(RoleDef::new(oid, name)));
    Catalog::load(
        builtin::DATABASE,
        Catalog::initial_objects().into_iter().chain(roles),
    )
}

fn item(grantee: Oid, grantor: Oid, rights: u32) -> AclItem {
    AclItem {
        grantee,
        grantor,
        rights,
    }
}

const WITH_OPTION: u32 = right::SELECT | right::options(right::SELECT);

#[test]
fn a_grant_option_that_goes_takes_along_what_came_from_it() {
    let catalog = catalog();
    let mut items = defaults(Kind::Relation, OWNER);
    for new in [item(BOB, OWNER, WITH_OPTION), item(CAROL, BOB, WITH_OPTION)] {
        items = updated(&catalog, &items, Update::Grant(new), OWNER).expect("granted");
    }
    let back = item(BOB, CAROL, WITH_OPTION);
    let error = updated(&catalog, &items, Update::Grant(back), OWNER).expect_err("a circle");
    assert_eq!(
        error.message(),
        "grant options cannot be granted back to your own grantor"
    );
    let gone = item(BOB, OWNER, WITH_OPTION);
    let restrict = Update::Revoke(gone, Revoke::Restrict);
    let error = updated(&catalog, &items, restrict, OWNER).expect_err("dependents");
    assert_eq!(error.message(), "dependent privileges exist");
    let cascade = Update::Revoke(gone, Revoke::Cascade);
    let items = updated(&catalog, &items, cascade, OWNER).expect("revoked");
    assert_eq!(items, defaults(Kind::Relation, OWNER));
}

#[test]
fn items_are_read_as_they_are_written() {
    let catalog = catalog();
    for (item, text) in [
        (
            item(BOB, OWNER, WITH_OPTION | right::INSERT),
            "bob=ar*/owner",
        ),
        (item(CAROL, OWNER, right::MAINTAIN), "\"car ol\"=m/owner"),
        (item(Oid::NONE, CAROL, right::USAGE), "=U/\"car ol\""),
    ] {
        assert_eq!(item_text(&catalog, &item), text);
        let read = NamedItem::parse(text).expect("an item");
        assert_eq!((read.rights, read.text().as_str()), (item.rights, text));
    }
    for wrong in ["bob=q/owner", "bob", "bob=r/", "bob=r/owner x"] {
        assert!(NamedItem::parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn lists_of_rights_say_which_word_is_none() {
    let both = right::list("Select, UPDATE with grant option").expect("rights");
    assert_eq!(both, [right::SELECT, right::options(right::UPDATE)]);
    assert_eq!(right::list("select, fly"), Err("fly"));
}
