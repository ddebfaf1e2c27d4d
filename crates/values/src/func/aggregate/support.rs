//! The functions that PostgreSQL computes its aggregates by. Here each aggregate is one piece;
//! these are what `pg_aggregate` and `pg_proc` say, and what a user's aggregate may name. One that
//! names just the functions of a built-in one is computed as that.

use std::sync::LazyLock;

use foldhash::fast::FixedState;
use std::collections::HashMap;

use throng_types::Oid;

use crate::func::{Aggregate, aggregate_by_oid};

/// A row of `pg_proc`.
pub struct SupportFunction {
    pub oid: u32,
    pub name: &'static str,
    pub args: &'static [u32],
    pub ret: u32,
    pub strict: bool,
}

/// What `pg_aggregate` has of an aggregate beside its kind; 0: none.
pub struct AggregateParts {
    pub aggregate: u32,
    /// `aggtransfn`, `aggfinalfn`, `aggcombinefn`, `aggserialfn`, `aggdeserialfn`, `aggmtransfn`,
    /// `aggminvtransfn`, `aggmfinalfn`.
    pub functions: [u32; 8],
    /// The final functions are given NULLs for the aggregated arguments.
    pub extra: [bool; 2],
    /// `aggfinalmodify`, `aggmfinalmodify`.
    pub modify: [u8; 2],
    pub sort_operator: u32,
    /// The types of the states, and about how many bytes each takes.
    pub states: [(u32, i32); 2],
    /// The states at first.
    pub init: [Option<&'static str>; 2],
}

/// The built-in aggregate that these functions compute.
pub fn aggregate_of(transition: Oid, finish: Option<Oid>) -> Option<&'static Aggregate> {
    static BY_FUNCTIONS: LazyLock<HashMap<(u32, u32), u32, FixedState>> = LazyLock::new(|| {
        let parts = PARTS
            .iter()
            .filter(|p| aggregate_by_oid(Oid(p.aggregate)).is_some());
        parts
            .map(|p| ((p.functions[0], p.functions[1]), p.aggregate))
            .collect()
    });
    let key = (transition.0, finish.unwrap_or(Oid::NONE).0);
    aggregate_by_oid(Oid(*BY_FUNCTIONS.get(&key)?))
}

/// What `pg_aggregate` has of a built-in aggregate.
pub fn parts_of(aggregate: Oid) -> Option<&'static AggregateParts> {
    let found = PARTS.binary_search_by_key(&aggregate.0, |p| p.aggregate);
    found.ok().map(|at| &PARTS[at])
}

/// One row a function: oid, name, arguments, result.
macro_rules! functions {
    ($($oid:literal $name:ident($($arg:literal),*) $ret:literal $($strict:ident)?;)*) => {
        pub static FUNCTIONS: &[SupportFunction] = &[
            $(SupportFunction {
                oid: $oid,
                name: stringify!($name),
                args: &[$($arg),*],
                ret: $ret,
                strict: functions!(@strict $($strict)?),
            },)*
        ];
    };
    (@strict) => { false };
    (@strict strict) => { true };
}

/// One row an aggregate, by its number: the functions; which are given more and what they do to the
/// state; the sort operator; the states' types and sizes, and what they are at first.
macro_rules! parts {
    ($($oid:literal $functions:tt $extra:tt $modify:literal $operator:literal $states:tt $init:tt;)*) => {
        static PARTS: &[AggregateParts] = &[
            $(AggregateParts {
                aggregate: $oid,
                functions: $functions,
                extra: $extra,
                modify: *$modify,
                sort_operator: $operator,
                states: $states,
                init: $init,
            },)*
        ];
    };
}

functions! {
    6292 any_value_transfn(2283, 2283) 2283 strict;
    6296 array_agg_array_combine(2281, 2281) 2281;
    6298 array_agg_array_deserialize(17, 2281) 2281 strict;
    4052 array_agg_array_finalfn(2281, 2277) 2277;
    6297 array_agg_array_serialize(2281) 17 strict;
    4051 array_agg_array_transfn(2281, 2277) 2281;
    6293 array_agg_combine(2281, 2281) 2281;
    6295 array_agg_deserialize(17, 2281) 2281 strict;
    2334 array_agg_finalfn(2281, 2776) 2277;
    6294 array_agg_serialize(2281) 17 strict;
    2333 array_agg_transfn(2281, 2776) 2281;
    515 array_larger(2277, 2277) 2277 strict;
    516 array_smaller(2277, 2277) 2277 strict;
    1673 bitand(1560, 1560) 1560 strict;
    1674 bitor(1560, 1560) 1560 strict;
    1675 bitxor(1560, 1560) 1560 strict;
    3496 bool_accum(2281, 16) 2281;
    3497 bool_accum_inv(2281, 16) 2281;
    3498 bool_alltrue(2281) 16 strict;
    3499 bool_anytrue(2281) 16 strict;
    2515 booland_statefunc(16, 16) 16 strict;
    2516 boolor_statefunc(16, 16) 16 strict;
    1063 bpchar_larger(1042, 1042) 1042 strict;
    1064 bpchar_smaller(1042, 1042) 1042 strict;
    6393 bytea_larger(17, 17) 17 strict;
    6394 bytea_smaller(17, 17) 17 strict;
    3544 bytea_string_agg_finalfn(2281) 17;
    3543 bytea_string_agg_transfn(2281, 17, 17) 2281;
    3991 cume_dist_final(2281, 2276) 701;
    1138 date_larger(1082, 1082) 1082 strict;
    1139 date_smaller(1082, 1082) 1082 strict;
    3993 dense_rank_final(2281, 2276) 20;
    3525 enum_larger(3500, 3500) 3500 strict;
    3524 enum_smaller(3500, 3500) 3500 strict;
    208 float4_accum(1022, 700) 1022 strict;
    209 float4larger(700, 700) 700 strict;
    204 float4pl(700, 700) 700 strict;
    211 float4smaller(700, 700) 700 strict;
    222 float8_accum(1022, 701) 1022 strict;
    1830 float8_avg(1022) 701 strict;
    276 float8_combine(1022, 1022) 1022 strict;
    2817 float8_corr(1022) 701 strict;
    2815 float8_covar_pop(1022) 701 strict;
    2816 float8_covar_samp(1022) 701 strict;
    2806 float8_regr_accum(1022, 701, 701) 1022 strict;
    2810 float8_regr_avgx(1022) 701 strict;
    2811 float8_regr_avgy(1022) 701 strict;
    3342 float8_regr_combine(1022, 1022) 1022 strict;
    2814 float8_regr_intercept(1022) 701 strict;
    2812 float8_regr_r2(1022) 701 strict;
    2813 float8_regr_slope(1022) 701 strict;
    2807 float8_regr_sxx(1022) 701 strict;
    2809 float8_regr_sxy(1022) 701 strict;
    2808 float8_regr_syy(1022) 701 strict;
    2513 float8_stddev_pop(1022) 701 strict;
    1832 float8_stddev_samp(1022) 701 strict;
    2512 float8_var_pop(1022) 701 strict;
    1831 float8_var_samp(1022) 701 strict;
    223 float8larger(701, 701) 701 strict;
    218 float8pl(701, 701) 701 strict;
    224 float8smaller(701, 701) 701 strict;
    1834 int2_accum(2281, 21) 2281;
    3567 int2_accum_inv(2281, 21) 2281;
    1962 int2_avg_accum(1016, 21) 1016 strict;
    3570 int2_avg_accum_inv(1016, 21) 1016 strict;
    1840 int2_sum(20, 21) 20;
    1892 int2and(21, 21) 21 strict;
    3572 int2int4_sum(1016) 20 strict;
    770 int2larger(21, 21) 21 strict;
    1893 int2or(21, 21) 21 strict;
    771 int2smaller(21, 21) 21 strict;
    1894 int2xor(21, 21) 21 strict;
    1835 int4_accum(2281, 23) 2281;
    3568 int4_accum_inv(2281, 23) 2281;
    1963 int4_avg_accum(1016, 23) 1016 strict;
    3571 int4_avg_accum_inv(1016, 23) 1016 strict;
    3324 int4_avg_combine(1016, 1016) 1016 strict;
    1841 int4_sum(20, 23) 20;
    1898 int4and(23, 23) 23 strict;
    768 int4larger(23, 23) 23 strict;
    1899 int4or(23, 23) 23 strict;
    769 int4smaller(23, 23) 23 strict;
    1900 int4xor(23, 23) 23 strict;
    1836 int8_accum(2281, 20) 2281;
    3569 int8_accum_inv(2281, 20) 2281;
    1964 int8_avg(1016) 1700 strict;
    2746 int8_avg_accum(2281, 20) 2281;
    3387 int8_avg_accum_inv(2281, 20) 2281;
    2785 int8_avg_combine(2281, 2281) 2281;
    2787 int8_avg_deserialize(17, 2281) 2281 strict;
    2786 int8_avg_serialize(2281) 17 strict;
    1904 int8and(20, 20) 20 strict;
    3546 int8dec(20) 20 strict;
    3547 int8dec_any(20, 2276) 20 strict;
    1219 int8inc(20) 20 strict;
    2804 int8inc_any(20, 2276) 20 strict;
    2805 int8inc_float8_float8(20, 701, 701) 20 strict;
    1236 int8larger(20, 20) 20 strict;
    1905 int8or(20, 20) 20 strict;
    463 int8pl(20, 20) 20 strict;
    1237 int8smaller(20, 20) 20 strict;
    1906 int8xor(20, 20) 20 strict;
    1844 interval_avg(2281) 1186;
    1843 interval_avg_accum(2281, 1186) 2281;
    3549 interval_avg_accum_inv(2281, 1186) 2281;
    3325 interval_avg_combine(2281, 2281) 2281;
    6325 interval_avg_deserialize(17, 2281) 2281 strict;
    6324 interval_avg_serialize(2281) 17 strict;
    1198 interval_larger(1186, 1186) 1186 strict;
    1197 interval_smaller(1186, 1186) 1186 strict;
    6326 interval_sum(2281) 1186;
    3174 json_agg_finalfn(2281) 114;
    6275 json_agg_strict_transfn(2281, 2283) 2281;
    3173 json_agg_transfn(2281, 2283) 2281;
    3196 json_object_agg_finalfn(2281) 114;
    6277 json_object_agg_strict_transfn(2281, 2276, 2276) 2281;
    3180 json_object_agg_transfn(2281, 2276, 2276) 2281;
    6279 json_object_agg_unique_strict_transfn(2281, 2276, 2276) 2281;
    6278 json_object_agg_unique_transfn(2281, 2276, 2276) 2281;
    3266 jsonb_agg_finalfn(2281) 3802;
    6283 jsonb_agg_strict_transfn(2281, 2283) 2281;
    3265 jsonb_agg_transfn(2281, 2283) 2281;
    3269 jsonb_object_agg_finalfn(2281) 3802;
    6285 jsonb_object_agg_strict_transfn(2281, 2276, 2276) 2281;
    3268 jsonb_object_agg_transfn(2281, 2276, 2276) 2281;
    6287 jsonb_object_agg_unique_strict_transfn(2281, 2276, 2276) 2281;
    6286 jsonb_object_agg_unique_transfn(2281, 2276, 2276) 2281;
    3985 mode_final(2281, 2283) 2283;
    1833 numeric_accum(2281, 1700) 2281;
    3548 numeric_accum_inv(2281, 1700) 2281;
    1837 numeric_avg(2281) 1700;
    2858 numeric_avg_accum(2281, 1700) 2281;
    3337 numeric_avg_combine(2281, 2281) 2281;
    2741 numeric_avg_deserialize(17, 2281) 2281 strict;
    2740 numeric_avg_serialize(2281) 17 strict;
    3341 numeric_combine(2281, 2281) 2281;
    3336 numeric_deserialize(17, 2281) 2281 strict;
    1767 numeric_larger(1700, 1700) 1700 strict;
    3389 numeric_poly_avg(2281) 1700;
    3338 numeric_poly_combine(2281, 2281) 2281;
    3340 numeric_poly_deserialize(17, 2281) 2281 strict;
    3339 numeric_poly_serialize(2281) 17 strict;
    3392 numeric_poly_stddev_pop(2281) 1700;
    3393 numeric_poly_stddev_samp(2281) 1700;
    3388 numeric_poly_sum(2281) 1700;
    3390 numeric_poly_var_pop(2281) 1700;
    3391 numeric_poly_var_samp(2281) 1700;
    3335 numeric_serialize(2281) 17 strict;
    1766 numeric_smaller(1700, 1700) 1700 strict;
    2596 numeric_stddev_pop(2281) 1700;
    1839 numeric_stddev_samp(2281) 1700;
    3178 numeric_sum(2281) 1700;
    2514 numeric_var_pop(2281) 1700;
    1838 numeric_var_samp(2281) 1700;
    1965 oidlarger(26, 26) 26 strict;
    1966 oidsmaller(26, 26) 26 strict;
    3970 ordered_set_transition(2281, 2276) 2281;
    3971 ordered_set_transition_multi(2281, 2276) 2281;
    3989 percent_rank_final(2281, 2276) 701;
    3975 percentile_cont_float8_final(2281, 701) 701;
    3981 percentile_cont_float8_multi_final(2281, 1022) 1022;
    3977 percentile_cont_interval_final(2281, 701) 1186;
    3983 percentile_cont_interval_multi_final(2281, 1022) 1187;
    3973 percentile_disc_final(2281, 701, 2283) 2283;
    3979 percentile_disc_multi_final(2281, 1022, 2283) 2277;
    4187 pg_lsn_larger(3220, 3220) 3220 strict;
    4188 pg_lsn_smaller(3220, 3220) 3220 strict;
    3987 rank_final(2281, 2276) 20;
    6375 record_larger(2249, 2249) 2249 strict;
    6376 record_smaller(2249, 2249) 2249 strict;
    6299 string_agg_combine(2281, 2281) 2281;
    6301 string_agg_deserialize(17, 2281) 2281 strict;
    3536 string_agg_finalfn(2281) 25;
    6300 string_agg_serialize(2281) 17 strict;
    3535 string_agg_transfn(2281, 25, 25) 2281;
    458 text_larger(25, 25) 25 strict;
    459 text_smaller(25, 25) 25 strict;
    2795 tidlarger(27, 27) 27 strict;
    2796 tidsmaller(27, 27) 27 strict;
    1377 time_larger(1083, 1083) 1083 strict;
    1378 time_smaller(1083, 1083) 1083 strict;
    2036 timestamp_larger(1114, 1114) 1114 strict;
    2035 timestamp_smaller(1114, 1114) 1114 strict;
    1196 timestamptz_larger(1184, 1184) 1184 strict;
    1195 timestamptz_smaller(1184, 1184) 1184 strict;
    1379 timetz_larger(1266, 1266) 1266 strict;
    1380 timetz_smaller(1266, 1266) 1266 strict;
    5097 xid8_larger(5069, 5069) 5069 strict;
    5098 xid8_smaller(5069, 5069) 5069 strict;
}

parts! {
    2050 [515, 0, 515, 0, 0, 0, 0, 0] [false, false] b"rr" 1073 [(2277, 0), (0, 0)] [None, None];
    2051 [516, 0, 516, 0, 0, 0, 0, 0] [false, false] b"rr" 1072 [(2277, 0), (0, 0)] [None, None];
    2100 [2746, 3389, 2785, 2786, 2787, 2746, 3387, 3389] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2101 [1963, 1964, 3324, 0, 0, 1963, 3571, 1964] [false, false] b"rr" 0 [(1016, 0), (1016, 0)] [Some("{0,0}"), Some("{0,0}")];
    2102 [1962, 1964, 3324, 0, 0, 1962, 3570, 1964] [false, false] b"rr" 0 [(1016, 0), (1016, 0)] [Some("{0,0}"), Some("{0,0}")];
    2103 [2858, 1837, 3337, 2740, 2741, 2858, 3548, 1837] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2104 [208, 1830, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2105 [222, 1830, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2106 [1843, 1844, 3325, 6324, 6325, 1843, 3549, 1844] [false, false] b"rr" 0 [(2281, 40), (2281, 40)] [None, None];
    2107 [2746, 3388, 2785, 2786, 2787, 2746, 3387, 3388] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2108 [1841, 0, 463, 0, 0, 1963, 3571, 3572] [false, false] b"rr" 0 [(20, 0), (1016, 0)] [None, Some("{0,0}")];
    2109 [1840, 0, 463, 0, 0, 1962, 3570, 3572] [false, false] b"rr" 0 [(20, 0), (1016, 0)] [None, Some("{0,0}")];
    2110 [204, 0, 204, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(700, 0), (0, 0)] [None, None];
    2111 [218, 0, 218, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(701, 0), (0, 0)] [None, None];
    2113 [1843, 6326, 3325, 6324, 6325, 1843, 3549, 6326] [false, false] b"rr" 0 [(2281, 40), (2281, 40)] [None, None];
    2114 [2858, 3178, 3337, 2740, 2741, 2858, 3548, 3178] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2115 [1236, 0, 1236, 0, 0, 0, 0, 0] [false, false] b"rr" 413 [(20, 0), (0, 0)] [None, None];
    2116 [768, 0, 768, 0, 0, 0, 0, 0] [false, false] b"rr" 521 [(23, 0), (0, 0)] [None, None];
    2117 [770, 0, 770, 0, 0, 0, 0, 0] [false, false] b"rr" 520 [(21, 0), (0, 0)] [None, None];
    2118 [1965, 0, 1965, 0, 0, 0, 0, 0] [false, false] b"rr" 610 [(26, 0), (0, 0)] [None, None];
    2119 [209, 0, 209, 0, 0, 0, 0, 0] [false, false] b"rr" 623 [(700, 0), (0, 0)] [None, None];
    2120 [223, 0, 223, 0, 0, 0, 0, 0] [false, false] b"rr" 674 [(701, 0), (0, 0)] [None, None];
    2122 [1138, 0, 1138, 0, 0, 0, 0, 0] [false, false] b"rr" 1097 [(1082, 0), (0, 0)] [None, None];
    2123 [1377, 0, 1377, 0, 0, 0, 0, 0] [false, false] b"rr" 1112 [(1083, 0), (0, 0)] [None, None];
    2124 [1379, 0, 1379, 0, 0, 0, 0, 0] [false, false] b"rr" 1554 [(1266, 0), (0, 0)] [None, None];
    2126 [2036, 0, 2036, 0, 0, 0, 0, 0] [false, false] b"rr" 2064 [(1114, 0), (0, 0)] [None, None];
    2127 [1196, 0, 1196, 0, 0, 0, 0, 0] [false, false] b"rr" 1324 [(1184, 0), (0, 0)] [None, None];
    2128 [1198, 0, 1198, 0, 0, 0, 0, 0] [false, false] b"rr" 1334 [(1186, 0), (0, 0)] [None, None];
    2129 [458, 0, 458, 0, 0, 0, 0, 0] [false, false] b"rr" 666 [(25, 0), (0, 0)] [None, None];
    2130 [1767, 0, 1767, 0, 0, 0, 0, 0] [false, false] b"rr" 1756 [(1700, 0), (0, 0)] [None, None];
    2131 [1237, 0, 1237, 0, 0, 0, 0, 0] [false, false] b"rr" 412 [(20, 0), (0, 0)] [None, None];
    2132 [769, 0, 769, 0, 0, 0, 0, 0] [false, false] b"rr" 97 [(23, 0), (0, 0)] [None, None];
    2133 [771, 0, 771, 0, 0, 0, 0, 0] [false, false] b"rr" 95 [(21, 0), (0, 0)] [None, None];
    2134 [1966, 0, 1966, 0, 0, 0, 0, 0] [false, false] b"rr" 609 [(26, 0), (0, 0)] [None, None];
    2135 [211, 0, 211, 0, 0, 0, 0, 0] [false, false] b"rr" 622 [(700, 0), (0, 0)] [None, None];
    2136 [224, 0, 224, 0, 0, 0, 0, 0] [false, false] b"rr" 672 [(701, 0), (0, 0)] [None, None];
    2138 [1139, 0, 1139, 0, 0, 0, 0, 0] [false, false] b"rr" 1095 [(1082, 0), (0, 0)] [None, None];
    2139 [1378, 0, 1378, 0, 0, 0, 0, 0] [false, false] b"rr" 1110 [(1083, 0), (0, 0)] [None, None];
    2140 [1380, 0, 1380, 0, 0, 0, 0, 0] [false, false] b"rr" 1552 [(1266, 0), (0, 0)] [None, None];
    2142 [2035, 0, 2035, 0, 0, 0, 0, 0] [false, false] b"rr" 2062 [(1114, 0), (0, 0)] [None, None];
    2143 [1195, 0, 1195, 0, 0, 0, 0, 0] [false, false] b"rr" 1322 [(1184, 0), (0, 0)] [None, None];
    2144 [1197, 0, 1197, 0, 0, 0, 0, 0] [false, false] b"rr" 1332 [(1186, 0), (0, 0)] [None, None];
    2145 [459, 0, 459, 0, 0, 0, 0, 0] [false, false] b"rr" 664 [(25, 0), (0, 0)] [None, None];
    2146 [1766, 0, 1766, 0, 0, 0, 0, 0] [false, false] b"rr" 1754 [(1700, 0), (0, 0)] [None, None];
    2147 [2804, 0, 463, 0, 0, 2804, 3547, 0] [false, false] b"rr" 0 [(20, 0), (20, 0)] [Some("0"), Some("0")];
    2148 [1836, 1838, 3341, 3335, 3336, 1836, 3569, 1838] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2149 [1835, 3391, 3338, 3339, 3340, 1835, 3568, 3391] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2150 [1834, 3391, 3338, 3339, 3340, 1834, 3567, 3391] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2151 [208, 1831, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2152 [222, 1831, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2153 [1833, 1838, 3341, 3335, 3336, 1833, 3548, 1838] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2154 [1836, 1839, 3341, 3335, 3336, 1836, 3569, 1839] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2155 [1835, 3393, 3338, 3339, 3340, 1835, 3568, 3393] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2156 [1834, 3393, 3338, 3339, 3340, 1834, 3567, 3393] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2157 [208, 1832, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2158 [222, 1832, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2159 [1833, 1839, 3341, 3335, 3336, 1833, 3548, 1839] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2236 [1892, 0, 1892, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(21, 0), (0, 0)] [None, None];
    2237 [1893, 0, 1893, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(21, 0), (0, 0)] [None, None];
    2238 [1898, 0, 1898, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(23, 0), (0, 0)] [None, None];
    2239 [1899, 0, 1899, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(23, 0), (0, 0)] [None, None];
    2240 [1904, 0, 1904, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(20, 0), (0, 0)] [None, None];
    2241 [1905, 0, 1905, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(20, 0), (0, 0)] [None, None];
    2242 [1673, 0, 1673, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1560, 0), (0, 0)] [None, None];
    2243 [1674, 0, 1674, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1560, 0), (0, 0)] [None, None];
    2244 [1063, 0, 1063, 0, 0, 0, 0, 0] [false, false] b"rr" 1060 [(1042, 0), (0, 0)] [None, None];
    2245 [1064, 0, 1064, 0, 0, 0, 0, 0] [false, false] b"rr" 1058 [(1042, 0), (0, 0)] [None, None];
    2335 [2333, 2334, 6293, 6294, 6295, 0, 0, 0] [true, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    2517 [2515, 0, 2515, 0, 0, 3496, 3497, 3498] [false, false] b"rr" 58 [(16, 0), (2281, 16)] [None, None];
    2518 [2516, 0, 2516, 0, 0, 3496, 3497, 3499] [false, false] b"rr" 59 [(16, 0), (2281, 16)] [None, None];
    2519 [2515, 0, 2515, 0, 0, 3496, 3497, 3498] [false, false] b"rr" 58 [(16, 0), (2281, 16)] [None, None];
    2641 [1836, 1838, 3341, 3335, 3336, 1836, 3569, 1838] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2642 [1835, 3391, 3338, 3339, 3340, 1835, 3568, 3391] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2643 [1834, 3391, 3338, 3339, 3340, 1834, 3567, 3391] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2644 [208, 1831, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2645 [222, 1831, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2646 [1833, 1838, 3341, 3335, 3336, 1833, 3548, 1838] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2712 [1836, 1839, 3341, 3335, 3336, 1836, 3569, 1839] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2713 [1835, 3393, 3338, 3339, 3340, 1835, 3568, 3393] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2714 [1834, 3393, 3338, 3339, 3340, 1834, 3567, 3393] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2715 [208, 1832, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2716 [222, 1832, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2717 [1833, 1839, 3341, 3335, 3336, 1833, 3548, 1839] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2718 [1836, 2514, 3341, 3335, 3336, 1836, 3569, 2514] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2719 [1835, 3390, 3338, 3339, 3340, 1835, 3568, 3390] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2720 [1834, 3390, 3338, 3339, 3340, 1834, 3567, 3390] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2721 [208, 2512, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2722 [222, 2512, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2723 [1833, 2514, 3341, 3335, 3336, 1833, 3548, 2514] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2724 [1836, 2596, 3341, 3335, 3336, 1836, 3569, 2596] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2725 [1835, 3392, 3338, 3339, 3340, 1835, 3568, 3392] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2726 [1834, 3392, 3338, 3339, 3340, 1834, 3567, 3392] [false, false] b"rr" 0 [(2281, 48), (2281, 48)] [None, None];
    2727 [208, 2513, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2728 [222, 2513, 276, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0}"), None];
    2729 [1833, 2596, 3341, 3335, 3336, 1833, 3548, 2596] [false, false] b"rr" 0 [(2281, 128), (2281, 128)] [None, None];
    2797 [2795, 0, 2795, 0, 0, 0, 0, 0] [false, false] b"rr" 2800 [(27, 0), (0, 0)] [None, None];
    2798 [2796, 0, 2796, 0, 0, 0, 0, 0] [false, false] b"rr" 2799 [(27, 0), (0, 0)] [None, None];
    2803 [1219, 0, 463, 0, 0, 1219, 3546, 0] [false, false] b"rr" 0 [(20, 0), (20, 0)] [Some("0"), Some("0")];
    2818 [2805, 0, 463, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(20, 0), (0, 0)] [Some("0"), None];
    2819 [2806, 2807, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2820 [2806, 2808, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2821 [2806, 2809, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2822 [2806, 2810, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2823 [2806, 2811, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2824 [2806, 2812, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2825 [2806, 2813, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2826 [2806, 2814, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2827 [2806, 2815, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2828 [2806, 2816, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    2829 [2806, 2817, 3342, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1022, 0), (0, 0)] [Some("{0,0,0,0,0,0}"), None];
    3175 [3173, 3174, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    3197 [3180, 3196, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    3267 [3265, 3266, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    3270 [3268, 3269, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    3526 [3525, 0, 3525, 0, 0, 0, 0, 0] [false, false] b"rr" 3519 [(3500, 0), (0, 0)] [None, None];
    3527 [3524, 0, 3524, 0, 0, 0, 0, 0] [false, false] b"rr" 3518 [(3500, 0), (0, 0)] [None, None];
    3538 [3535, 3536, 6299, 6300, 6301, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    3545 [3543, 3544, 6299, 6300, 6301, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    3972 [3970, 3973, 0, 0, 0, 0, 0, 0] [true, false] b"ss" 0 [(2281, 0), (0, 0)] [None, None];
    3974 [3970, 3975, 0, 0, 0, 0, 0, 0] [false, false] b"ss" 0 [(2281, 0), (0, 0)] [None, None];
    3976 [3970, 3977, 0, 0, 0, 0, 0, 0] [false, false] b"ss" 0 [(2281, 0), (0, 0)] [None, None];
    3978 [3970, 3979, 0, 0, 0, 0, 0, 0] [true, false] b"ss" 0 [(2281, 0), (0, 0)] [None, None];
    3980 [3970, 3981, 0, 0, 0, 0, 0, 0] [false, false] b"ss" 0 [(2281, 0), (0, 0)] [None, None];
    3982 [3970, 3983, 0, 0, 0, 0, 0, 0] [false, false] b"ss" 0 [(2281, 0), (0, 0)] [None, None];
    3984 [3970, 3985, 0, 0, 0, 0, 0, 0] [true, false] b"ss" 0 [(2281, 0), (0, 0)] [None, None];
    3986 [3971, 3987, 0, 0, 0, 0, 0, 0] [true, false] b"ww" 0 [(2281, 0), (0, 0)] [None, None];
    3988 [3971, 3989, 0, 0, 0, 0, 0, 0] [true, false] b"ww" 0 [(2281, 0), (0, 0)] [None, None];
    3990 [3971, 3991, 0, 0, 0, 0, 0, 0] [true, false] b"ww" 0 [(2281, 0), (0, 0)] [None, None];
    3992 [3971, 3993, 0, 0, 0, 0, 0, 0] [true, false] b"ww" 0 [(2281, 0), (0, 0)] [None, None];
    4053 [4051, 4052, 6296, 6297, 6298, 0, 0, 0] [true, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    4189 [4187, 0, 4187, 0, 0, 0, 0, 0] [false, false] b"rr" 3225 [(3220, 0), (0, 0)] [None, None];
    4190 [4188, 0, 4188, 0, 0, 0, 0, 0] [false, false] b"rr" 3224 [(3220, 0), (0, 0)] [None, None];
    5099 [5097, 0, 5097, 0, 0, 0, 0, 0] [false, false] b"rr" 5074 [(5069, 0), (0, 0)] [None, None];
    5100 [5098, 0, 5098, 0, 0, 0, 0, 0] [false, false] b"rr" 5073 [(5069, 0), (0, 0)] [None, None];
    6164 [1894, 0, 1894, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(21, 0), (0, 0)] [None, None];
    6165 [1900, 0, 1900, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(23, 0), (0, 0)] [None, None];
    6166 [1906, 0, 1906, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(20, 0), (0, 0)] [None, None];
    6167 [1675, 0, 1675, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(1560, 0), (0, 0)] [None, None];
    6276 [6275, 3174, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6280 [6277, 3196, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6281 [6278, 3196, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6282 [6279, 3196, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6284 [6283, 3266, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6288 [6285, 3269, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6289 [6286, 3269, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6290 [6287, 3269, 0, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2281, 0), (0, 0)] [None, None];
    6291 [6292, 0, 6292, 0, 0, 0, 0, 0] [false, false] b"rr" 0 [(2283, 0), (0, 0)] [None, None];
    6373 [6375, 0, 6375, 0, 0, 0, 0, 0] [false, false] b"rr" 2991 [(2249, 0), (0, 0)] [None, None];
    6374 [6376, 0, 6376, 0, 0, 0, 0, 0] [false, false] b"rr" 2990 [(2249, 0), (0, 0)] [None, None];
    6395 [6393, 0, 6393, 0, 0, 0, 0, 0] [false, false] b"rr" 1959 [(17, 0), (0, 0)] [None, None];
    6396 [6394, 0, 6394, 0, 0, 0, 0, 0] [false, false] b"rr" 1957 [(17, 0), (0, 0)] [None, None];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_by_number_and_by_functions() {
        assert!(PARTS.is_sorted_by_key(|p| p.aggregate));
        let sum = parts_of(Oid(2108)).map(|p| p.functions[0]);
        assert_eq!(sum, Some(1841));
        // `numeric_avg_accum` with `numeric_avg`.
        let average = aggregate_of(Oid(2858), Some(Oid(1837)));
        assert_eq!(average.map(|agg| agg.oid), Some(Oid(2103)));
        assert!(aggregate_of(Oid(2858), Some(Oid(1))).is_none());
    }
}
