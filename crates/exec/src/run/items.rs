//! `left = ANY (array)` and `left <> ALL (array)`, answered from a hash table of the array's items.
//!
//! The table belongs to an array, not to an expression: an array that is met a second time is
//! hashed, and found by its address while it is held here. So an array that each row brings anew
//! costs a few comparisons of addresses. A table of many items is made, and thrown away, by another
//! thread; so is a comparison that no table answers.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use throng_types::datum::Array;
use throng_types::key::{self, KeyOrder};
use throng_types::{Datum, dispose, interrupt, oid};
use throng_values::func::{Operator, operator_by_oid};

use super::hashed::is_equal_by_key;
use super::{Cx, Step};
use crate::offload::{self, Callee, Ending, Site};

/// Arrays with fewer items are gone through one by one; as many as PostgreSQL's
/// `MIN_ARRAY_SIZE_FOR_HASHED_SAOP`.
const FEWEST: usize = 9;
/// Arrays that were met once, and tables, that are held at a time.
const MET: usize = 4;
const TABLES: usize = 16;
/// Arrays with more items are hashed by another thread.
const MANY: usize = 4_096;
/// Items that are compared while a row is looked at.
const ITEMS_A_ROW: u32 = 16;

/// The arrays that a statement compares with.
#[derive(Default, Clone)]
pub struct ItemTables {
    met: Vec<Arc<Array>>,
    tables: Vec<Arc<ItemTable>>,
    /// The table that another thread makes, or has made.
    making: Option<Making>,
    key: Vec<u8>,
}

/// A table to come; none where an item has no key.
#[derive(Clone)]
struct Making {
    array: Arc<Array>,
    blank_padded: bool,
    table: Arc<OnceLock<Option<Arc<ItemTable>>>>,
}

/// The items of one array.
struct ItemTable {
    array: Arc<Array>,
    blank_padded: bool,
    keys: HashSet<Box<[u8]>, FixedState>,
    has_null: bool,
}

/// The value of `left op ANY (array)`, or ALL.
pub fn compare(
    op: &'static Operator,
    all: bool,
    args: [Datum; 2],
    site: Site<'_>,
    cx: &mut Cx,
) -> Step<Datum> {
    let Datum::Array(array) = &args[1] else {
        return Ok(Datum::Null);
    };
    if array.items.len() >= FEWEST && asks_for_item(op, all) {
        if let Some(making) = cx.items.begin_making(op, array) {
            Ending::default().compute(true, cx, move |_| Ok(making.make()))?;
        }
        if let Some(answer) = cx.items.answer(op, &args[0], array, all) {
            return Ok(answer);
        }
    }
    cx.worked(u32::try_from(array.items.len()).unwrap_or(u32::MAX) / ITEMS_A_ROW);
    offload::call(Callee::Items { op, all }, &args, site, cx)
}

/// Whether the comparison asks whether a value is among the items: `= ANY`, `<> ALL`.
fn asks_for_item(op: &Operator, all: bool) -> bool {
    match all {
        false => is_equal_by_key(op),
        true => op.name == "<>" && operator_by_oid(op.negator).is_some_and(is_equal_by_key),
    }
}

impl ItemTables {
    /// How many arrays it knows.
    pub fn len(&self) -> usize {
        self.met.len() + self.tables.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn clear(&mut self) {
        self.met.clear();
        self.tables.clear();
        self.making = None;
    }

    /// The comparison's value, where a table tells it.
    fn answer(
        &mut self,
        op: &Operator,
        left: &Datum,
        array: &Arc<Array>,
        all: bool,
    ) -> Option<Datum> {
        Some(match self.find(op, left, array)? {
            Some(found) => Datum::Bool(found != all),
            None => Datum::Null,
        })
    }

    /// The table that another thread is to make: of an array that is met again, with many items.
    fn begin_making(&mut self, op: &Operator, array: &Arc<Array>) -> Option<Making> {
        let blank_padded = op.right == oid::BPCHAR;
        let is_short = array.items.len() <= MANY;
        if is_short || !self.has_met(array) || self.place(array, blank_padded).is_some() {
            return None;
        }
        let begun = self.making.take_if(|m| m.is_of(array, blank_padded));
        let making = self.making.insert(begun.unwrap_or_else(|| Making {
            array: array.clone(),
            blank_padded,
            table: Arc::default(),
        }));
        making.table.get().is_none().then(|| making.clone())
    }

    /// Whether the value is among the items, which is unknown where a NULL decides. None where
    /// there is no table.
    fn find(&mut self, op: &Operator, value: &Datum, array: &Arc<Array>) -> Option<Option<bool>> {
        let blank_padded = op.right == oid::BPCHAR;
        let at = match self.place(array, blank_padded) {
            Some(at) => at,
            None => self.make(array, blank_padded)?,
        };
        let table = &self.tables[at];
        if value.is_null() {
            return Some(None);
        }
        self.key.clear();
        encode(value, blank_padded, &mut self.key)?;
        match table.keys.contains(&self.key[..]) {
            true => Some(Some(true)),
            false if table.has_null => Some(None),
            false => Some(Some(false)),
        }
    }

    fn place(&self, array: &Arc<Array>, blank_padded: bool) -> Option<usize> {
        let is_its =
            |t: &Arc<ItemTable>| Arc::ptr_eq(&t.array, array) && t.blank_padded == blank_padded;
        self.tables.iter().position(is_its)
    }

    fn has_met(&self, array: &Arc<Array>) -> bool {
        self.met.iter().any(|met| Arc::ptr_eq(met, array))
    }

    /// The place of a new table, if the array was met before.
    fn make(&mut self, array: &Arc<Array>, blank_padded: bool) -> Option<usize> {
        if !self.has_met(array) {
            if self.met.len() == MET {
                self.met.remove(0);
            }
            self.met.push(array.clone());
            return None;
        }
        let is_its = |m: &&Making| m.is_of(array, blank_padded);
        let made = self.making.as_ref().filter(is_its);
        let table = match made.and_then(|making| making.table.get()) {
            Some(made) => made.clone()?,
            None => Arc::new(ItemTable::new(array, blank_padded)?),
        };
        if self.tables.len() == TABLES {
            self.tables.remove(0);
        }
        self.tables.push(table);
        Some(self.tables.len() - 1)
    }
}

impl Making {
    fn is_of(&self, array: &Arc<Array>, blank_padded: bool) -> bool {
        Arc::ptr_eq(&self.array, array) && self.blank_padded == blank_padded
    }

    fn make(self) -> Datum {
        let made = || ItemTable::new(&self.array, self.blank_padded).map(Arc::new);
        self.table.get_or_init(made);
        Datum::Null
    }
}

impl Drop for ItemTable {
    fn drop(&mut self) {
        if self.keys.len() > MANY {
            dispose::dispose(std::mem::take(&mut self.keys));
        }
    }
}

impl ItemTable {
    /// None where an item has no key.
    fn new(array: &Arc<Array>, blank_padded: bool) -> Option<ItemTable> {
        let mut table = ItemTable {
            array: array.clone(),
            blank_padded,
            keys: HashSet::with_capacity_and_hasher(array.items.len(), FixedState::default()),
            has_null: false,
        };
        for item in &array.items {
            interrupt::poll().ok()?;
            if item.is_null() {
                table.has_null = true;
                continue;
            }
            let mut key = Vec::new();
            encode(item, blank_padded, &mut key)?;
            table.keys.insert(key.into());
        }
        Some(table)
    }
}

fn encode(value: &Datum, blank_padded: bool, out: &mut Vec<u8>) -> Option<()> {
    let ty = if blank_padded { oid::BPCHAR } else { oid::TEXT };
    key::encode_one(value, KeyOrder::new(ty, false, false), out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analytics::SessionFacts;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use throng_types::{Numeric, Oid};
    use throng_values::func::{EvalContext, EvalStop, operators_named};
    use throng_values::io::FormatSettings;

    /// A value of the type, from few enough that many are equal.
    fn value(ty: Oid, rng: &mut StdRng) -> Datum {
        let n: i16 = rng.random_range(-6..40);
        if rng.random_ratio(1, 40) {
            return Datum::Null;
        }
        match ty {
            oid::INT2 => Datum::Int2(n),
            oid::INT4 => Datum::Int4(n.into()),
            oid::INT8 => Datum::Int8(n.into()),
            oid::DATE => Datum::Date(n.into()),
            oid::FLOAT8 => Datum::Float8(match n {
                -6 => f64::NAN,
                -5 => -0.0,
                n => f64::from(n) / 2.0,
            }),
            oid::NUMERIC => match n {
                -6 => Datum::from(Numeric::NAN),
                n => Datum::from(Numeric::from_i128(
                    i128::from(n) * 10_i128.pow(rng.random_range(0..3)),
                    2,
                )),
            },
            oid::BPCHAR => format!("{n}{}", " ".repeat(rng.random_range(0..3))).into(),
            _ => format!("{n}").into(),
        }
    }

    impl ItemTables {
        fn told(&mut self, op: &Operator, left: &Datum, array: &Datum, all: bool) -> Option<Datum> {
            match array {
                Datum::Array(items) if asks_for_item(op, all) => self.answer(op, left, items, all),
                _ => None,
            }
        }
    }

    /// Tables answer what the definition says, item by item.
    #[test]
    fn a_table_answers_as_the_items_do() -> throng_types::Result<()> {
        let mut rng = StdRng::seed_from_u64(7);
        let pairs = [
            (oid::INT2, oid::INT8),
            (oid::INT4, oid::INT4),
            (oid::INT8, oid::INT4),
            (oid::DATE, oid::DATE),
            (oid::FLOAT8, oid::FLOAT8),
            (oid::NUMERIC, oid::NUMERIC),
            (oid::BPCHAR, oid::BPCHAR),
            (oid::TEXT, oid::TEXT),
        ];
        let (host, format) = (SessionFacts::default(), FormatSettings::default());
        let ctx = EvalContext {
            host: &host,
            format: &format,
        };
        let (mut asked, mut hashed) = (0, 0);
        for (left, right) in pairs {
            for (name, all) in [("=", false), ("<>", true), ("=", true), ("<>", false)] {
                let mut operators = operators_named(name).iter();
                let op = operators
                    .find(|op| (op.left, op.right) == (left, right))
                    .unwrap_or_else(|| panic!("no {left} {name} {right}"));
                for round in 0..20 {
                    let len = rng.random_range(FEWEST..60);
                    let items = (0..len).map(|_| value(right, &mut rng)).collect();
                    let array = Datum::array(Array::from_items(right, items));
                    let mut tables = ItemTables::default();
                    for _ in 0..30 {
                        let value = value(left, &mut rng);
                        let wanted = op
                            .call_on_items(&ctx, value.clone(), &array, all)
                            .map_err(EvalStop::into_error)?;
                        if let Some(got) = tables.told(op, &value, &array, all) {
                            assert_eq!(got, wanted, "{value:?} {name} {array:?} in {round}");
                            asked += 1;
                        }
                    }
                    hashed += tables.tables.len();
                }
            }
        }
        assert_eq!((asked, hashed), (8 * 2 * 20 * 29, 8 * 2 * 20));
        Ok(())
    }
}
