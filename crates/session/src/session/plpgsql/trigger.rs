//! What a trigger's function finds in its variables.

use std::rc::Rc;
use std::sync::Arc;

use throng_types::datum::{Dim, Record};
use throng_types::sqltype::made;
use throng_types::{Array, Datum, Oid, SqlType, Text, oid};

use super::Machine;
use throng_exec::trigger::TriggerCall;

fn row_value(call: &TriggerCall, values: &[Datum]) -> Datum {
    let types: Box<[Oid]> = call.columns.iter().map(|c| c.ty.oid).collect();
    let names: Arc<[Text]> = call.columns.iter().map(|c| Text::new(&c.name)).collect();
    Datum::Record(Arc::new(Record {
        types: types.into(),
        names: Some(names),
        values: values.to_vec(),
    }))
}

impl Machine {
    /// NEW and OLD, and why the trigger fires.
    pub(super) fn told(&mut self, call: &TriggerCall) {
        let special = self.compiled.code.special;
        let shape: Rc<[(String, SqlType)]> = call
            .columns
            .iter()
            .map(|c| (c.name.clone(), c.ty))
            .collect();
        let ty = made::composite_oid(call.relation);
        for (slot, row) in [(special.new, &call.new), (special.old, &call.old)] {
            let Some(slot) = slot.map(usize::from) else {
                continue;
            };
            self.types[slot] = ty.map_or(SqlType::RECORD, SqlType::plain);
            self.shapes[slot] = Some(shape.clone());
            // OLD of an INSERT, NEW of a DELETE and both of a statement are rows too, of which
            // nothing is there.
            self.values[slot] = row.as_ref().map_or(Datum::Null, |row| row_value(call, row));
        }
        let Some(first) = special.trigger.map(usize::from) else {
            return;
        };
        let args: Vec<Datum> = call.args.iter().map(Datum::text).collect();
        let count = args.len() as i32;
        let argv = match args.is_empty() {
            true => Datum::Null,
            false => Datum::array(Array {
                element: oid::TEXT,
                dims: vec![Dim {
                    len: count,
                    lower: 0,
                }],
                items: args,
            }),
        };
        let told = [
            Datum::text(&call.name),
            Datum::text(call.when_name()),
            Datum::text(call.level_name()),
            Datum::text(call.event_name()),
            Datum::Oid(call.relation.0),
            Datum::text(&call.relation_name),
            Datum::text(&call.relation_name),
            Datum::text(&call.schema_name),
            Datum::Int4(count),
            argv,
        ];
        for (value, slot) in told.into_iter().zip(first..) {
            self.values[slot] = value;
        }
    }
}
