//! Predicates: true, false or, where an operand fails or does not compare, unknown (None).

use super::exec::{Failure, Found, Walk, Walker};
use super::value::Value;
use super::*;
use crate::regex;
use std::cmp::Ordering;

pub type Truth = Option<bool>;

impl<'a> Walker<'a> {
    /// A chain that is a predicate and nothing after it.
    pub fn truth(&mut self, chain: &[Item], value: &Value<'a>) -> Walk<Truth> {
        match chain {
            [predicate] => self.predicate(predicate, value),
            // The parser puts nothing else where a predicate belongs than a predicate's own value
            // walked on.
            _ => {
                let found = self.sequence(chain, value, false)?;
                self.release(&found);
                Ok(match found.values.first().map(Value::scalar) {
                    Some(Value::Bool(truth)) => Some(truth),
                    _ => None,
                })
            }
        }
    }

    /// What its operands gave is gone when it is known.
    pub fn predicate(&mut self, predicate: &Item, value: &Value<'a>) -> Walk<Truth> {
        let held = self.held;
        let result = self.judge(predicate, value);
        self.held = held;
        result
    }

    fn judge(&mut self, predicate: &Item, value: &Value<'a>) -> Walk<Truth> {
        match predicate {
            Item::And(pair) => Ok(match self.truth(&pair.0, value)? {
                Some(false) => Some(false),
                left => match self.truth(&pair.1, value)? {
                    Some(true) => left,
                    right => right,
                },
            }),
            Item::Or(pair) => Ok(match self.truth(&pair.0, value)? {
                Some(true) => Some(true),
                left => match self.truth(&pair.1, value)? {
                    Some(false) => left,
                    right => right,
                },
            }),
            Item::Not(inner) => Ok(self.truth(inner, value)?.map(|truth| !truth)),
            Item::IsUnknown(inner) => Ok(Some(self.truth(inner, value)?.is_none())),
            Item::Exists(inner) => self.exists(inner, value),
            Item::Compare(comparison, pair) => {
                let (left, right) = (&pair.0, Some(&pair.1));
                self.for_pairs(left, right, true, value, |walker, left, right| {
                    walker.compare(*comparison, left, right)
                })
            }
            Item::StartsWith(pair) => {
                let (left, right) = (&pair.0, Some(&pair.1));
                self.for_pairs(left, right, false, value, |_, whole, initial| {
                    let (whole, initial) = (whole.string(), initial.string());
                    Ok(whole.zip(initial).map(|(w, i)| w.starts_with(i)))
                })
            }
            Item::LikeRegex(like) => {
                let regex = regex::compile(&like.pattern, like.flags.options()?)?;
                self.for_pairs(&like.subject, None, false, value, |_, subject, _| {
                    subject
                        .string()
                        .map(|s| regex.is_match(s))
                        .transpose()
                        .map_err(Into::into)
                })
            }
            _ => Ok(None),
        }
    }

    /// Whether a walk fails softly, which makes a predicate unknown.
    fn quietly<T>(result: Walk<T>) -> Walk<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Failure::Soft(_)) => Ok(None),
            Err(hard) => Err(hard),
        }
    }

    fn exists(&mut self, inner: &[Item], value: &Value<'a>) -> Walk<Truth> {
        if self.lax {
            let mut found = Found::any();
            let result = self.item(inner, value, &mut found);
            return Self::quietly(result);
        }
        let found = Self::quietly(self.sequence(inner, value, false))?;
        Ok(found.map(|found| !found.values.is_empty()))
    }

    /// True where `holds` is for a pair of the operands' values. The left operand's arrays are
    /// unwrapped, the right one's where told.
    fn for_pairs(
        &mut self,
        left: &[Item],
        right: Option<&Chain>,
        unwrap_right: bool,
        value: &Value<'a>,
        holds: impl Fn(&Self, &Value<'a>, &Value<'a>) -> Walk<Truth>,
    ) -> Walk<Truth> {
        let result = self.sequence(left, value, true);
        let Some(left) = Self::quietly(result)? else {
            return Ok(None);
        };
        let right = match right {
            Some(right) => {
                let result = self.sequence(right, value, unwrap_right);
                let Some(right) = Self::quietly(result)? else {
                    return Ok(None);
                };
                right
            }
            None => Found {
                wanted: true,
                values: vec![Value::Null],
            },
        };
        let (mut any, mut unknown) = (false, false);
        for left in &left.values {
            for right in &right.values {
                self.spend()?;
                match holds(self, left, right)? {
                    None if !self.lax => return Ok(None),
                    None => unknown = true,
                    Some(true) if self.lax => return Ok(Some(true)),
                    Some(true) => any = true,
                    Some(false) => {}
                }
            }
        }
        Ok(match (any, unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    fn compare(&self, how: Comparison, a: &Value<'a>, b: &Value<'a>) -> Walk<Truth> {
        // Most comparisons are of strings and numbers in a document, which need no copies.
        if let (Some(a), Some(b)) = (a.string(), b.string()) {
            return Ok(Some(how.holds(a.as_bytes().cmp(b.as_bytes()))));
        }
        let order = match (a.scalar(), b.scalar()) {
            (Value::Null, Value::Null) => Ordering::Equal,
            (Value::Null, _) | (_, Value::Null) => {
                return Ok(Some(how == Comparison::NotEqual));
            }
            (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
            (Value::Number(a), Value::Number(b)) => a.compare(&b),
            (Value::Moment(a), Value::Moment(b)) => {
                match a.compare(&b, self.ctx, self.use_zone)? {
                    Some(order) => order,
                    None => return Ok(None),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some(how.holds(order)))
    }
}

impl Comparison {
    fn holds(self, order: Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterEqual => order.is_ge(),
        }
    }
}
