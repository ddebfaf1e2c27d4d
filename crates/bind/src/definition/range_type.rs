//! Range types that users make, and their multirange types.

use throng_types::error::state;
use throng_types::sqltype::{element_of, made, type_name};
use throng_types::{Error, Oid, Result};

use super::Run;
use super::types::no_more_types;
use throng_catalog::{Catalog, TypeDef, builtin};
use throng_types::range::multirange_type;
use throng_values::acl::Kind;
use throng_values::io::scalar::NAME_LIMIT;

/// Types within types that a range's values may have: whatever walks through one calls itself for
/// each.
const DEEPEST: u32 = 16;

/// How deeply types lie in a type.
fn depth(catalog: &Catalog, ty: Oid, known: u32) -> u32 {
    if known > DEEPEST {
        return 0;
    }
    let below = |ty| 1 + depth(catalog, ty, known + 1);
    if let Some(element) = element_of(ty) {
        return below(element);
    }
    if let Some(range) = multirange_type(ty) {
        return below(range.range);
    }
    let Some(def) = catalog.user_type(ty) else {
        return 0;
    };
    match (&def.range, &def.domain, &def.fields) {
        (Some(range), ..) => below(range.subtype),
        (_, Some(domain), _) => below(domain.base.oid),
        (.., Some(fields)) => {
            let live = fields.iter().filter(|field| !field.dropped);
            live.map(|field| below(field.ty.oid)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

/// What the multirange type over a range type of that name is called: `range` in it becomes
/// `multirange`, or `_multirange` follows.
fn multirange_name(range: &str) -> String {
    const WORD: &str = "range";
    let mut name = match range.split_once(WORD) {
        Some((before, after)) => format!("{before}multi{WORD}{after}"),
        None => {
            const SUFFIX: &str = "_multirange";
            let room = range.floor_char_boundary(NAME_LIMIT - SUFFIX.len());
            format!("{}{SUFFIX}", &range[..room])
        }
    };
    name.truncate(name.floor_char_boundary(NAME_LIMIT));
    name
}

impl Run<'_> {
    pub(super) fn create_range(&mut self, def: &TypeDef, multirange: Option<&str>) -> Result<()> {
        let schema = self.place(def.schema);
        self.type_name_is_free(schema, &def.name)?;
        let subtype = def.range.as_ref().map_or(Oid::NONE, |range| range.subtype);
        if depth(self.catalog(), subtype, 0) >= DEEPEST {
            let message = "types are nested too deeply for a range over them";
            return Err(Error::new(state::STATEMENT_TOO_COMPLEX, message));
        }
        let oid = made::range_oid(self.host.next_oid()).ok_or_else(no_more_types)?;
        self.edit.put(TypeDef {
            oid,
            schema,
            ..def.clone()
        });
        let name = match multirange {
            Some(name) => name.to_owned(),
            None => multirange_name(&def.name),
        };
        self.type_name_is_free(schema, &name).map_err(|e| match multirange {
            Some(_) => e,
            None => e
                .detail(format!(
                    "Failed while creating a multirange type for type \"{}\".",
                    def.name
                ))
                .hint("You can manually specify a multirange type name using the \"multirange_type_name\" attribute."),
        })?;
        self.edit.put(TypeDef {
            oid: made::multirange_of(oid),
            schema,
            name,
            range: None,
            ..def.clone()
        });
        self.grant_defaults(builtin::class::TYPE, oid, def.owner, schema, Kind::Type);
        Ok(())
    }

    /// ALTER TYPE … OWNER TO; 42809 for a multirange type, which belongs to its range type's owner.
    pub(super) fn change_type_owner(&mut self, ty: Oid, owner: Oid) -> Result<()> {
        if !made::is_multirange(ty) {
            return self.own_type(ty, owner);
        }
        let message = format!("cannot alter multirange type {}", type_name(ty));
        let range = type_name(made::range_of(ty));
        Err(Error::new(state::WRONG_OBJECT_TYPE, message).hint(format!(
            "You can alter type {range}, which will alter the multirange type as well."
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiranges_have_names() {
        assert_eq!(multirange_name("textrange"), "textmultirange");
        assert_eq!(multirange_name("range_of_ranges"), "multirange_of_ranges");
        assert_eq!(multirange_name("span"), "span_multirange");
        assert_eq!(multirange_name(&"x".repeat(63)).len(), 63);
    }
}
