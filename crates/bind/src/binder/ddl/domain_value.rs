//! Values that must be of a domain and are no expression's: fields of rows that are read from text
//! or JSON.
//!
//! A domain's checks are evaluated here as far as they speak of nothing but the value; what needs a
//! statement to be run (a user's function) is refused (0A000).

use throng_types::{Datum, Error, Oid, Result};

use crate::binder::Binder;
use crate::binder::ddl::view::stored_context;
use crate::fold::constant_value;
use crate::tree::expr::{DomainRules, Expr};
use throng_catalog::Catalog;
use throng_values::func::{EvalContext, EvalStop};

/// Whether a value is as a domain asks: 23502 or 23514 where it is not.
pub fn check_in_domain(
    domain: Oid,
    value: &Datum,
    catalog: &Catalog,
    eval: EvalContext<'_>,
) -> Result<()> {
    let ctx = stored_context(catalog, eval);
    let rules = Binder::new(&ctx).domain_rules(domain)?;
    check(&rules, value, &eval)
}

fn check(rules: &DomainRules, value: &Datum, eval: &EvalContext<'_>) -> Result<()> {
    if rules.not_null && value.is_null() {
        return Err(rules.refuses_null());
    }
    for rule in &rules.checks {
        match holds(&rule.expr, value, eval)? {
            Some(Datum::Bool(false)) => return Err(rules.violated(rule)),
            Some(_) => {}
            None => {
                let what = "such a check of a domain on a field of a row";
                return Err(Error::unsupported(what));
            }
        }
    }
    if let (Some(rules), Datum::Array(array)) = (&rules.items, value) {
        for item in &array.items {
            check(rules, item, eval)?;
        }
    }
    Ok(())
}

/// A condition's value; parts that need not be looked at are not. None where only running it would
/// tell.
fn holds(expr: &Expr, value: &Datum, eval: &EvalContext<'_>) -> Result<Option<Datum>> {
    let connective = |parts: &[Expr], decides: bool| {
        let mut result = Datum::Bool(!decides);
        for part in parts {
            match holds(part, value, eval)? {
                None => return Ok(None),
                Some(Datum::Bool(b)) if b == decides => return Ok(Some(Datum::Bool(decides))),
                Some(Datum::Null) => result = Datum::Null,
                Some(_) => {}
            }
        }
        Ok(Some(result))
    };
    Ok(match expr {
        Expr::And(parts) => return connective(parts, false),
        Expr::Or(parts) => return connective(parts, true),
        Expr::Not(arg) => holds(arg, value, eval)?.map(|value| match value {
            Datum::Bool(b) => Datum::Bool(!b),
            _ => Datum::Null,
        }),
        Expr::IsNull(arg) | Expr::IsNotNull(arg) => match holds(arg, value, eval)? {
            Some(Datum::Record(_)) | None => None,
            Some(of) => Some((of.is_null() == matches!(expr, Expr::IsNull(_))).into()),
        },
        Expr::Slot(0, _) => Some(value.clone()),
        Expr::Const(value, _) => Some(value.clone()),
        Expr::ArrayCompare {
            op,
            left,
            array,
            all,
        } => {
            let (left, array) = (holds(left, value, eval)?, holds(array, value, eval)?);
            let (Some(left), Some(array)) = (left, array) else {
                return Ok(None);
            };
            let result = op.call_on_items(eval, left, &array, *all);
            Some(result.map_err(EvalStop::into_error)?)
        }
        other => {
            let mut other = other.clone();
            with_value(&mut other, value);
            constant_value(other, eval)?
        }
    })
}

fn with_value(expr: &mut Expr, value: &Datum) {
    if let Expr::Slot(0, ty) = expr {
        *expr = Expr::Const(value.clone(), *ty);
        return;
    }
    expr.for_each_child_mut(&mut |child| with_value(child, value));
}
