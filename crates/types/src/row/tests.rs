//! Rows come back as they went in.

use super::*;
use crate::datum::{Array, Record};
use proptest::prelude::*;
use std::sync::Arc;

fn prop_assert_or(holds: bool) -> Result<()> {
    match holds {
        true => Ok(()),
        false => Err(Error::internal("not as expected")),
    }
}

fn column() -> BoxedStrategy<(Phys, Datum)> {
    let with = |phys: Phys, values: BoxedStrategy<Datum>| {
        prop_oneof![5 => values, 1 => Just(Datum::Null)]
            .prop_map(move |d| (phys, d))
            .boxed()
    };
    let numeric = "-?[0-9]{1,30}(\\.[0-9]{1,30})?".prop_map(|t| Datum::Numeric(t.parse().unwrap()));
    let long = (0..700usize).prop_map(|n| Datum::from("x".repeat(n)));
    let array = proptest::collection::vec(proptest::option::of("[a-c]{0,3}"), 0..4).prop_map(|v| {
        let items = v.into_iter().map(Datum::from).collect();
        Datum::array(Array::from_items(oid::TEXT, items))
    });
    let record = (any::<i32>(), "[a-c]{0,3}").prop_map(|(a, b)| {
        let types = [oid::INT4, oid::TEXT].into();
        Datum::Record(Arc::new(Record {
            types,
            names: None,
            values: vec![a.into(), b.into()],
        }))
    });
    prop_oneof![
        with(Phys::Bool, any::<bool>().prop_map(Datum::Bool).boxed()),
        with(Phys::Int2, any::<i16>().prop_map(Datum::Int2).boxed()),
        with(Phys::Int4, any::<i32>().prop_map(Datum::Int4).boxed()),
        with(Phys::Int8, any::<i64>().prop_map(Datum::Int8).boxed()),
        with(
            Phys::Float4,
            (-1e30..1e30f32).prop_map(Datum::Float4).boxed()
        ),
        with(
            Phys::Float8,
            (-1e300..1e300f64).prop_map(Datum::Float8).boxed()
        ),
        with(Phys::Char, any::<u8>().prop_map(Datum::Char).boxed()),
        with(Phys::Date, any::<i32>().prop_map(Datum::Date).boxed()),
        with(Phys::Time, any::<i64>().prop_map(Datum::Time).boxed()),
        with(
            Phys::Timestamp,
            any::<i64>().prop_map(Datum::Timestamp).boxed()
        ),
        with(
            Phys::TimestampTz,
            any::<i64>().prop_map(Datum::TimestampTz).boxed()
        ),
        with(
            Phys::TimeTz,
            (any::<i64>(), any::<i32>())
                .prop_map(|(micros, zone)| Datum::TimeTz(TimeTz { micros, zone }))
                .boxed()
        ),
        with(
            Phys::Interval,
            (any::<i32>(), any::<i32>(), any::<i64>())
                .prop_map(|(m, d, u)| Interval::new(m, d, u).into())
                .boxed()
        ),
        with(Phys::Uuid, any::<[u8; 16]>().prop_map(Datum::Uuid).boxed()),
        with(Phys::Oid, any::<u32>().prop_map(Datum::Oid).boxed()),
        with(
            Phys::Tid,
            (any::<u32>(), any::<u16>())
                .prop_map(|(b, s)| Datum::Tid(Tid::new(b, s)))
                .boxed()
        ),
        with(
            Phys::Numeric,
            prop_oneof![
                8 => numeric,
                1 => Just(Datum::Numeric(Numeric::NAN)),
                1 => Just(Datum::Numeric(Numeric::NEG_INFINITY)),
                1 => any::<i64>().prop_map(|v| Datum::Numeric(Numeric::new(v, 3))),
            ]
            .boxed()
        ),
        with(
            Phys::Text,
            prop_oneof![".{0,20}".prop_map(Datum::from), long].boxed()
        ),
        with(
            Phys::Bytea,
            proptest::collection::vec(any::<u8>(), 0..300)
                .prop_map(Datum::bytea)
                .boxed()
        ),
        with(Phys::Array, array.boxed()),
        with(Phys::Record, record.boxed()),
    ]
    .boxed()
}

proptest! {
    #[test]
    fn what_is_written_is_read(columns in proptest::collection::vec(column(), 0..20)) {
        let (phys, values): (Vec<Phys>, Vec<Datum>) = columns.into_iter().unzip();
        let layout = RowLayout::new(&phys);
        let mut row = Vec::new();
        encode_row(&layout, &values, &mut row).unwrap();
        let mut read = Vec::new();
        layout.decode(&row, &mut read).unwrap();
        prop_assert_eq!(&read, &values);
        for (i, value) in values.iter().enumerate() {
            prop_assert_eq!(&layout.decode_column(&row, i).unwrap(), value);
        }
        // Every second column by its bytes, which make a row of their own.
        let some: Vec<usize> = (0..phys.len()).filter(|i| (i + row.len()) % 2 == 0).collect();
        let mut met = 0;
        layout.stored(&row, &some, |nth, stored| {
            prop_assert_or(nth == met)?;
            met += 1;
            let column = some[nth];
            let Stored::Bytes(bytes) = stored else {
                return prop_assert_or(stored == Stored::Null && values[column].is_null());
            };
            let mut alone = Vec::new();
            encode_stored(phys[column], bytes, &mut alone);
            let mut same = Vec::new();
            encode_row(&RowLayout::new(&phys[column..=column]), &values[column..=column], &mut same)?;
            prop_assert_or(alone == same)
        }).unwrap();
        prop_assert_eq!(met, some.len());
        // A table that has gained columns since reads NULL in them.
        let wider = RowLayout::new(&[phys.clone(), vec![Phys::Int4]].concat());
        let mut read = Vec::new();
        wider.decode(&row, &mut read).unwrap();
        prop_assert_eq!(read.pop(), Some(Datum::Null));
        prop_assert_eq!(&read, &values);
        // The first ones by the bytes that are enough for them.
        for layout in [&layout, &wider] {
            for first in 0..=phys.len() {
                let varying = phys[..first].iter().any(|p| p.width().is_none());
                let reach = layout.reach(first);
                prop_assert_eq!(reach.is_none(), varying);
                let head = &row[..reach.unwrap_or(row.len()).min(row.len())];
                let wanted: Vec<(usize, usize)> = (0..first).map(|c| (c, c)).collect();
                let mut read = vec![Datum::Bool(true); first];
                layout.decode_into(head, &wanted, &mut read).unwrap();
                prop_assert_eq!(&read, &values[..first]);
            }
        }
    }

    #[test]
    fn values_move_out_of_rows_and_back(columns in proptest::collection::vec(column(), 1..10)) {
        let (phys, values): (Vec<Phys>, Vec<Datum>) = columns.into_iter().unzip();
        let layout = RowLayout::new(&phys);
        let mut row = Vec::new();
        encode_row(&layout, &values, &mut row).unwrap();
        let inline = layout.inline_values(&row).unwrap();
        let moved: Vec<(usize, [u8; REFERENCE_LEN])> =
            inline.iter().map(|(c, _)| (*c, [*c as u8; REFERENCE_LEN])).collect();
        let thin = layout.externalize(&row, &moved).unwrap();
        prop_assert_eq!(RowLayout::has_external(&thin), !moved.is_empty());
        prop_assert_eq!(&layout.references(&thin).unwrap(), &moved);
        let mut read = Vec::new();
        layout.decode(&thin, &mut read).unwrap();
        for (column, range) in inline {
            prop_assert!(matches!(read[column], Datum::External(_)));
            read[column] = RowLayout::value(phys[column], row[range].into()).unwrap();
        }
        prop_assert_eq!(read, values);
    }

    #[test]
    fn damaged_rows_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let layout = RowLayout::new(&[Phys::Int4, Phys::Text, Phys::Numeric, Phys::Array, Phys::Record]);
        let mut read = Vec::new();
        let outcome = layout.decode(&bytes, &mut read);
        prop_assert!(outcome.is_err() || read.len() == 5);
    }
}

#[test]
fn a_row_of_the_wrong_kind_is_refused() {
    let layout = RowLayout::new(&[Phys::Int4]);
    assert!(encode_row(&layout, &[Datum::text("x")], &mut Vec::new()).is_err());
}
