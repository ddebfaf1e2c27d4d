//! The aggregates, as PostgreSQL's `pg_aggregate` lists them.

use crate::func::aggregate::other::*;
use crate::func::aggregate::pair::*;
use crate::func::aggregate::*;
use crate::func::{AggKind, Aggregate};
use throng_types::Oid;
use throng_types::oid::*;

macro_rules! undo {
    () => {
        None
    };
    ($undo:ident) => {
        Some($undo)
    };
}

/// One row an aggregate: oid, name, arguments, result; how a state starts, takes a row, takes
/// another state, ends; and after a slash how it gives its oldest row back, where it can.
macro_rules! aggregates {
    ($($oid:literal $name:ident($($arg:ident),*) $ret:ident $init:ident $step:ident $combine:ident $finish:ident $(/ $undo:ident)?;)*) => {
        pub static AGGREGATES: &[Aggregate] = &[
            $(Aggregate {
                oid: Oid($oid),
                name: stringify!($name),
                args: &[$($arg),*],
                ret: $ret,
                variadic: Oid::NONE,
                kind: AggKind::Plain,
                init: $init,
                step: $step,
                combine: $combine,
                undo: undo!($($undo)?),
                finish: $finish,
            },)*
        ];
    };
}

pub(in crate::func) use {aggregates, undo};

aggregates! {
    6291 any_value(ANYELEMENT) ANYELEMENT empty any_value_step any_value_combine value_finish;
    2335 array_agg(ANYNONARRAY) ANYARRAY empty array_step array_combine array_finish;
    4053 array_agg(ANYARRAY) ANYARRAY empty array_step array_combine array_finish;
    2100 avg(INT8) NUMERIC empty integer_step integer_combine average_integers / integer_undo;
    2101 avg(INT4) NUMERIC empty integer_step integer_combine average_integers / integer_undo;
    2102 avg(INT2) NUMERIC empty integer_step integer_combine average_integers / integer_undo;
    2103 avg(NUMERIC) NUMERIC empty numeric_step numeric_combine average_numerics / numeric_undo;
    2104 avg(FLOAT4) FLOAT8 empty float_step float_combine float_average;
    2105 avg(FLOAT8) FLOAT8 empty float_step float_combine float_average;
    2106 avg(INTERVAL) INTERVAL empty interval_step interval_combine interval_average / interval_undo;
    2236 bit_and(INT2) INT2 empty and_step and_combine value_finish;
    2238 bit_and(INT4) INT4 empty and_step and_combine value_finish;
    2240 bit_and(INT8) INT8 empty and_step and_combine value_finish;
    2237 bit_or(INT2) INT2 empty or_step or_combine value_finish;
    2239 bit_or(INT4) INT4 empty or_step or_combine value_finish;
    2241 bit_or(INT8) INT8 empty or_step or_combine value_finish;
    6164 bit_xor(INT2) INT2 empty xor_step xor_combine value_finish;
    6165 bit_xor(INT4) INT4 empty xor_step xor_combine value_finish;
    6166 bit_xor(INT8) INT8 empty xor_step xor_combine value_finish;
    2242 bit_and(BIT) BIT empty bits_and_step bits_and_combine value_finish;
    2243 bit_or(BIT) BIT empty bits_or_step bits_or_combine value_finish;
    6167 bit_xor(BIT) BIT empty bits_xor_step bits_xor_combine value_finish;
    2517 bool_and(BOOL) BOOL empty and_step and_combine value_finish;
    2518 bool_or(BOOL) BOOL empty or_step or_combine value_finish;
    2829 corr(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine correlation;
    2147 count(ANY) INT8 zero count_any count_combine count_finish / count_undo;
    2803 count() INT8 zero count_any count_combine count_finish / count_undo;
    2827 covar_pop(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine covar_pop;
    2828 covar_samp(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine covar_samp;
    2519 every(BOOL) BOOL empty and_step and_combine value_finish;
    2050 max(ANYARRAY) ANYARRAY empty max_step max_combine value_finish;
    2115 max(INT8) INT8 empty max_step max_combine value_finish;
    2116 max(INT4) INT4 empty max_step max_combine value_finish;
    2117 max(INT2) INT2 empty max_step max_combine value_finish;
    2118 max(OID) OID empty max_step max_combine value_finish;
    2119 max(FLOAT4) FLOAT4 empty max_step max_combine value_finish;
    2120 max(FLOAT8) FLOAT8 empty max_step max_combine value_finish;
    2122 max(DATE) DATE empty max_step max_combine value_finish;
    2123 max(TIME) TIME empty max_step max_combine value_finish;
    2124 max(TIMETZ) TIMETZ empty max_step max_combine value_finish;
    2126 max(TIMESTAMP) TIMESTAMP empty max_step max_combine value_finish;
    2127 max(TIMESTAMPTZ) TIMESTAMPTZ empty max_step max_combine value_finish;
    2128 max(INTERVAL) INTERVAL empty max_step max_combine value_finish;
    2129 max(TEXT) TEXT empty max_step max_combine value_finish;
    2130 max(NUMERIC) NUMERIC empty max_step max_combine value_finish;
    2244 max(BPCHAR) BPCHAR empty max_padded_step max_padded_combine value_finish;
    2125 max(MONEY) MONEY empty max_step max_combine value_finish;
    3564 max(INET) INET empty max_step max_combine value_finish;
    2797 max(TID) TID empty max_step max_combine value_finish;
    3526 max(ANYENUM) ANYENUM empty max_step max_combine value_finish;
    3527 min(ANYENUM) ANYENUM empty min_step min_combine value_finish;
    4189 max(PG_LSN) PG_LSN empty max_step max_combine value_finish;
    5099 max(XID8) XID8 empty max_step max_combine value_finish;
    6373 max(RECORD) RECORD empty max_step max_combine value_finish;
    6395 max(BYTEA) BYTEA empty max_step max_combine value_finish;
    2051 min(ANYARRAY) ANYARRAY empty min_step min_combine value_finish;
    2131 min(INT8) INT8 empty min_step min_combine value_finish;
    2132 min(INT4) INT4 empty min_step min_combine value_finish;
    2133 min(INT2) INT2 empty min_step min_combine value_finish;
    2134 min(OID) OID empty min_step min_combine value_finish;
    2135 min(FLOAT4) FLOAT4 empty min_step min_combine value_finish;
    2136 min(FLOAT8) FLOAT8 empty min_step min_combine value_finish;
    2138 min(DATE) DATE empty min_step min_combine value_finish;
    2139 min(TIME) TIME empty min_step min_combine value_finish;
    2140 min(TIMETZ) TIMETZ empty min_step min_combine value_finish;
    2142 min(TIMESTAMP) TIMESTAMP empty min_step min_combine value_finish;
    2143 min(TIMESTAMPTZ) TIMESTAMPTZ empty min_step min_combine value_finish;
    2144 min(INTERVAL) INTERVAL empty min_step min_combine value_finish;
    2145 min(TEXT) TEXT empty min_step min_combine value_finish;
    2146 min(NUMERIC) NUMERIC empty min_step min_combine value_finish;
    2245 min(BPCHAR) BPCHAR empty min_padded_step min_padded_combine value_finish;
    2141 min(MONEY) MONEY empty min_step min_combine value_finish;
    3565 min(INET) INET empty min_step min_combine value_finish;
    2798 min(TID) TID empty min_step min_combine value_finish;
    4190 min(PG_LSN) PG_LSN empty min_step min_combine value_finish;
    5100 min(XID8) XID8 empty min_step min_combine value_finish;
    6374 min(RECORD) RECORD empty min_step min_combine value_finish;
    6396 min(BYTEA) BYTEA empty min_step min_combine value_finish;
    2822 regr_avgx(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine pair_average_x;
    2823 regr_avgy(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine pair_average_y;
    2818 regr_count(FLOAT8, FLOAT8) INT8 empty pair_step pair_combine pair_count;
    2826 regr_intercept(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine regr_intercept;
    2824 regr_r2(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine regr_r2;
    2825 regr_slope(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine regr_slope;
    2819 regr_sxx(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine pair_sxx;
    2821 regr_sxy(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine pair_sxy;
    2820 regr_syy(FLOAT8, FLOAT8) FLOAT8 empty pair_step pair_combine pair_syy;
    2154 stddev(INT8) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    2155 stddev(INT4) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    2156 stddev(INT2) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    2157 stddev(FLOAT4) FLOAT8 empty float_step float_combine float_stddev_samp;
    2158 stddev(FLOAT8) FLOAT8 empty float_step float_combine float_stddev_samp;
    2159 stddev(NUMERIC) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    2724 stddev_pop(INT8) NUMERIC empty squares_step numeric_combine numeric_stddev_pop / numeric_undo;
    2725 stddev_pop(INT4) NUMERIC empty squares_step numeric_combine numeric_stddev_pop / numeric_undo;
    2726 stddev_pop(INT2) NUMERIC empty squares_step numeric_combine numeric_stddev_pop / numeric_undo;
    2727 stddev_pop(FLOAT4) FLOAT8 empty float_step float_combine float_stddev_pop;
    2728 stddev_pop(FLOAT8) FLOAT8 empty float_step float_combine float_stddev_pop;
    2729 stddev_pop(NUMERIC) NUMERIC empty squares_step numeric_combine numeric_stddev_pop / numeric_undo;
    2712 stddev_samp(INT8) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    2713 stddev_samp(INT4) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    2714 stddev_samp(INT2) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    2715 stddev_samp(FLOAT4) FLOAT8 empty float_step float_combine float_stddev_samp;
    2716 stddev_samp(FLOAT8) FLOAT8 empty float_step float_combine float_stddev_samp;
    2717 stddev_samp(NUMERIC) NUMERIC empty squares_step numeric_combine numeric_stddev_samp / numeric_undo;
    3538 string_agg(TEXT, TEXT) TEXT empty string_step joined_combine string_finish;
    3545 string_agg(BYTEA, BYTEA) BYTEA empty bytes_step joined_combine bytes_finish;
    2112 sum(MONEY) MONEY empty money_step money_combine value_finish;
    2107 sum(INT8) NUMERIC empty integer_step integer_combine sum_numeric / integer_undo;
    2108 sum(INT4) INT8 empty integer_step integer_combine sum_int8 / integer_undo;
    2109 sum(INT2) INT8 empty integer_step integer_combine sum_int8 / integer_undo;
    2110 sum(FLOAT4) FLOAT4 empty float_sum_step float_sum_combine value_finish;
    2111 sum(FLOAT8) FLOAT8 empty float_sum_step float_sum_combine value_finish;
    2113 sum(INTERVAL) INTERVAL empty interval_step interval_combine interval_sum / interval_undo;
    2114 sum(NUMERIC) NUMERIC empty numeric_step numeric_combine sum_numerics / numeric_undo;
    2718 var_pop(INT8) NUMERIC empty squares_step numeric_combine numeric_var_pop / numeric_undo;
    2719 var_pop(INT4) NUMERIC empty squares_step numeric_combine numeric_var_pop / numeric_undo;
    2720 var_pop(INT2) NUMERIC empty squares_step numeric_combine numeric_var_pop / numeric_undo;
    2721 var_pop(FLOAT4) FLOAT8 empty float_step float_combine float_var_pop;
    2722 var_pop(FLOAT8) FLOAT8 empty float_step float_combine float_var_pop;
    2723 var_pop(NUMERIC) NUMERIC empty squares_step numeric_combine numeric_var_pop / numeric_undo;
    2641 var_samp(INT8) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
    2642 var_samp(INT4) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
    2643 var_samp(INT2) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
    2644 var_samp(FLOAT4) FLOAT8 empty float_step float_combine float_var_samp;
    2645 var_samp(FLOAT8) FLOAT8 empty float_step float_combine float_var_samp;
    2646 var_samp(NUMERIC) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
    2148 variance(INT8) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
    2149 variance(INT4) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
    2150 variance(INT2) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
    2151 variance(FLOAT4) FLOAT8 empty float_step float_combine float_var_samp;
    2152 variance(FLOAT8) FLOAT8 empty float_step float_combine float_var_samp;
    2153 variance(NUMERIC) NUMERIC empty squares_step numeric_combine numeric_var_samp / numeric_undo;
}

#[cfg(test)]
mod tests {
    use super::super::{AggState, EvalContext, EvalStop};
    use super::*;
    use crate::func::testing::with_context;
    use throng_types::{Datum, Interval, Numeric};

    fn values(ty: Oid) -> Vec<Datum> {
        let numeric = |digits: i128, scale: u16| Datum::from(Numeric::from_i128(digits, scale));
        match ty {
            INT2 => [3, -7, 3, 0].map(Datum::Int2).to_vec(),
            INT4 => [3, -7, i32::MAX, 0].map(Datum::Int4).to_vec(),
            INT8 => [3, i64::MAX, i64::MAX, -1].map(Datum::Int8).to_vec(),
            INTERVAL => [1, 2, -9, 4]
                .map(|n| {
                    Datum::Interval(Interval {
                        months: n,
                        days: -n,
                        micros: i64::from(n) * 7,
                    })
                })
                .to_vec(),
            _ => vec![
                numeric(15, 1),
                Datum::from(Numeric::NAN),
                numeric(2, 0),
                numeric(12345, 4),
                numeric(-3, 1),
            ],
        }
    }

    fn finished(
        ctx: &EvalContext<'_>,
        agg: &Aggregate,
        rows: &[Datum],
        state: Option<AggState>,
    ) -> Result<Datum, EvalStop> {
        let mut state = state.unwrap_or_else(agg.init);
        for row in rows {
            (agg.step)(ctx, &mut state, std::slice::from_ref(row))?;
        }
        (agg.finish)(ctx, state)
    }

    /// What parts of the rows make is what all of them make, in their order.
    #[test]
    fn parts_joined_are_the_whole() {
        let json = crate::func::json::AGGREGATES;
        let mut tested = 0;
        with_context(|ctx| -> Result<(), EvalStop> {
            for agg in AGGREGATES.iter().chain(json).filter(|a| a.keeps_order()) {
                let value = |n: i32| match agg.args[agg.args.len() - 1] {
                    BYTEA => Datum::bytea(vec![n as u8; n as usize]),
                    ANYARRAY => {
                        Datum::array(throng_types::Array::from_items(INT4, vec![Datum::Int4(n)]))
                    }
                    _ if n == 2 && agg.args[0] != ANYNONARRAY => Datum::Null,
                    _ => Datum::from("x".repeat(n as usize)),
                };
                let row = |n: i32| match agg.args {
                    [_] => vec![value(n)],
                    _ if agg.name == "string_agg" => vec![value(n + 1), value(n)],
                    _ => vec![Datum::from(n.to_string()), value(n)],
                };
                let rows: Vec<Vec<Datum>> = (0..6).map(row).collect();
                let state = |rows: &[Vec<Datum>]| -> Result<AggState, EvalStop> {
                    let mut state = (agg.init)();
                    for row in rows {
                        (agg.step)(ctx, &mut state, row)?;
                    }
                    Ok(state)
                };
                let whole = (agg.finish)(ctx, state(&rows)?)?;
                for cut in 0..=rows.len() {
                    let mut first = state(&rows[..cut])?;
                    (agg.combine)(ctx, &mut first, state(&rows[cut..])?)?;
                    assert_eq!((agg.finish)(ctx, first)?, whole, "{agg:?} cut at {cut}");
                    tested += 1;
                }
            }
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e:?}"));
        assert!(tested >= 16 * 7, "{tested}");
    }

    /// A state from which the oldest rows were taken is that of the rest, or says that it cannot
    /// tell.
    #[test]
    fn rows_given_back_leave_no_trace() {
        let mut undone = 0;
        with_context(|ctx| -> Result<(), EvalStop> {
            for agg in AGGREGATES {
                let (Some(undo), [ty]) = (agg.undo, agg.args) else {
                    continue;
                };
                let mut rows = values(*ty);
                rows.insert(2, Datum::Null);
                let mut state = (agg.init)();
                for row in &rows {
                    (agg.step)(ctx, &mut state, std::slice::from_ref(row))?;
                }
                for gone in 1..=rows.len() {
                    if !undo(ctx, &mut state, &rows[gone - 1..gone])? {
                        break;
                    }
                    let rest = finished(ctx, agg, &rows[gone..], None)?;
                    let left = finished(ctx, agg, &[], Some(state.clone()))?;
                    assert_eq!(left, rest, "{agg:?} without {gone} of {rows:?}");
                    undone += 1;
                }
            }
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e:?}"));
        assert!(undone > 100, "{undone}");
    }
}
