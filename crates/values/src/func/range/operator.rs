//! Operators on ranges and multiranges, as PostgreSQL's `pg_operator` numbers them.

use super::{multi, of_multirange, of_range, range, type_of_value};
use crate::func::compare::any;
use crate::func::{EvalContext, EvalResult, Operator, Strategy};
use crate::range as set;
use throng_types::Datum;
use throng_types::oid::*;

/// Conditions on two ranges, and those on what may be multiranges.
macro_rules! conditions {
    ($($name:ident |$a:ident, $b:ident| $range:expr, $multi:expr;)*) => {
        $(fn $name(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
            Ok(match (&args[0], &args[1]) {
                (Datum::Range($a), Datum::Range($b)) => $range,
                ($a, $b) => $multi,
            }.into())
        })*
    };
}

conditions! {
    overlaps |a, b| set::overlaps(a, b), multi::overlap(a, b);
    contains |a, b| set::contains(a, b), multi::all_within(a, b);
    contained |a, b| set::contains(b, a), multi::all_within(b, a);
    before |a, b| set::before(a, b), multi::is_before(a, b);
    after |a, b| set::before(b, a), multi::is_before(b, a);
    overleft |a, b| set::overleft(a, b), multi::is_overleft(a, b);
    overright |a, b| set::overright(a, b), multi::is_overright(a, b);
    adjacent |a, b| set::adjacent(a, b)?, multi::is_adjacent(a, b)?;
}

fn contains_value(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(match &args[0] {
        Datum::Range(range) => set::contains_value(range, &args[1]),
        multirange => multi::has_value(multirange, &args[1]),
    }
    .into())
}
fn value_contained(cx: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    contains_value(cx, &[args[1].clone(), args[0].clone()])
}

fn union(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(of_range(set::union(range(&args[0]), range(&args[1]))?))
}
fn minus(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(of_range(set::minus(range(&args[0]), range(&args[1]))?))
}
fn intersect(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(of_range(set::intersect(range(&args[0]), range(&args[1]))))
}
fn multi_union(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let ty = type_of_value(&args[0])?;
    Ok(of_multirange(multi::union(&ty, &args[0], &args[1])?))
}
fn multi_minus(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let ty = type_of_value(&args[0])?;
    Ok(of_multirange(multi::difference(&ty, &args[0], &args[1])?))
}
fn multi_intersect(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let ty = type_of_value(&args[0])?;
    Ok(of_multirange(multi::intersection(&ty, &args[0], &args[1])?))
}

/// One row an operator: oid, name, operand types, result, function's oid and name, what computes
/// it, commutator, negator, and what it asks of a B-tree.
macro_rules! operators {
    ($($oid:literal $name:literal $left:ident $right:ident $ret:ident $code:literal $code_name:ident
        $eval:path, $commutator:literal $negator:literal $($strategy:ident)?;)*) => {
        pub static OPERATORS: &[Operator] = &[
            $(Operator::new(
                $oid, $name, $left, $right, $ret, ($code, stringify!($code_name)), $eval,
            ).related($commutator, $negator)$(.orders(Strategy::$strategy))?,)*
        ];
    };
}

operators! {
    2860 "=" ANYMULTIRANGE ANYMULTIRANGE BOOL 4244 multirange_eq any::eq, 2860 2861 Equal;
    2861 "<>" ANYMULTIRANGE ANYMULTIRANGE BOOL 4245 multirange_ne any::ne, 2861 2860;
    2862 "<" ANYMULTIRANGE ANYMULTIRANGE BOOL 4274 multirange_lt any::lt, 2865 2864 Less;
    2863 "<=" ANYMULTIRANGE ANYMULTIRANGE BOOL 4275 multirange_le any::le, 2864 2865 LessEqual;
    2864 ">=" ANYMULTIRANGE ANYMULTIRANGE BOOL 4276 multirange_ge any::ge, 2863 2862 GreaterEqual;
    2865 ">" ANYMULTIRANGE ANYMULTIRANGE BOOL 4277 multirange_gt any::gt, 2862 2863 Greater;
    2866 "&&" ANYRANGE ANYMULTIRANGE BOOL 4246 range_overlaps_multirange overlaps, 2867 0;
    2867 "&&" ANYMULTIRANGE ANYRANGE BOOL 4247 multirange_overlaps_range overlaps, 2866 0;
    2868 "&&" ANYMULTIRANGE ANYMULTIRANGE BOOL 4248 multirange_overlaps_multirange overlaps, 2868 0;
    2869 "@>" ANYMULTIRANGE ANYELEMENT BOOL 4249 multirange_contains_elem contains_value, 2872 0;
    2870 "@>" ANYMULTIRANGE ANYRANGE BOOL 4250 multirange_contains_range contains, 2873 0;
    2871 "@>" ANYMULTIRANGE ANYMULTIRANGE BOOL 4251 multirange_contains_multirange contains, 2874 0;
    2872 "<@" ANYELEMENT ANYMULTIRANGE BOOL 4252 elem_contained_by_multirange value_contained, 2869 0;
    2873 "<@" ANYRANGE ANYMULTIRANGE BOOL 4253 range_contained_by_multirange contained, 2870 0;
    2874 "<@" ANYMULTIRANGE ANYMULTIRANGE BOOL 4254 multirange_contained_by_multirange contained,
        2871 0;
    2875 "&<" ANYRANGE ANYMULTIRANGE BOOL 4264 range_overleft_multirange overleft, 0 0;
    2876 "&<" ANYMULTIRANGE ANYRANGE BOOL 4265 multirange_overleft_range overleft, 0 0;
    2877 "&<" ANYMULTIRANGE ANYMULTIRANGE BOOL 4266 multirange_overleft_multirange overleft, 0 0;
    3585 "&>" ANYRANGE ANYMULTIRANGE BOOL 4267 range_overright_multirange overright, 0 0;
    3882 "=" ANYRANGE ANYRANGE BOOL 3855 range_eq any::eq, 3882 3883 Equal;
    3883 "<>" ANYRANGE ANYRANGE BOOL 3856 range_ne any::ne, 3883 3882;
    3884 "<" ANYRANGE ANYRANGE BOOL 3871 range_lt any::lt, 3887 3886 Less;
    3885 "<=" ANYRANGE ANYRANGE BOOL 3872 range_le any::le, 3886 3887 LessEqual;
    3886 ">=" ANYRANGE ANYRANGE BOOL 3873 range_ge any::ge, 3885 3884 GreaterEqual;
    3887 ">" ANYRANGE ANYRANGE BOOL 3874 range_gt any::gt, 3884 3885 Greater;
    3888 "&&" ANYRANGE ANYRANGE BOOL 3857 range_overlaps overlaps, 3888 0;
    3889 "@>" ANYRANGE ANYELEMENT BOOL 3858 range_contains_elem contains_value, 3891 0;
    3890 "@>" ANYRANGE ANYRANGE BOOL 3859 range_contains contains, 3892 0;
    3891 "<@" ANYELEMENT ANYRANGE BOOL 3860 elem_contained_by_range value_contained, 3889 0;
    3892 "<@" ANYRANGE ANYRANGE BOOL 3861 range_contained_by contained, 3890 0;
    3893 "<<" ANYRANGE ANYRANGE BOOL 3863 range_before before, 3894 0;
    3894 ">>" ANYRANGE ANYRANGE BOOL 3864 range_after after, 3893 0;
    3895 "&<" ANYRANGE ANYRANGE BOOL 3865 range_overleft overleft, 0 0;
    3896 "&>" ANYRANGE ANYRANGE BOOL 3866 range_overright overright, 0 0;
    3897 "-|-" ANYRANGE ANYRANGE BOOL 3862 range_adjacent adjacent, 3897 0;
    3898 "+" ANYRANGE ANYRANGE ANYRANGE 3867 range_union union, 3898 0;
    3899 "-" ANYRANGE ANYRANGE ANYRANGE 3869 range_minus minus, 0 0;
    3900 "*" ANYRANGE ANYRANGE ANYRANGE 3868 range_intersect intersect, 3900 0;
    4035 "&>" ANYMULTIRANGE ANYRANGE BOOL 4268 multirange_overright_range overright, 0 0;
    4142 "&>" ANYMULTIRANGE ANYMULTIRANGE BOOL 4269 multirange_overright_multirange overright, 0 0;
    4179 "-|-" ANYRANGE ANYMULTIRANGE BOOL 4255 range_adjacent_multirange adjacent, 4180 0;
    4180 "-|-" ANYMULTIRANGE ANYRANGE BOOL 4257 multirange_adjacent_range adjacent, 4179 0;
    4198 "-|-" ANYMULTIRANGE ANYMULTIRANGE BOOL 4256 multirange_adjacent_multirange adjacent, 4198 0;
    4392 "+" ANYMULTIRANGE ANYMULTIRANGE ANYMULTIRANGE 4270 multirange_union multi_union, 4392 0;
    4393 "-" ANYMULTIRANGE ANYMULTIRANGE ANYMULTIRANGE 4271 multirange_minus multi_minus, 0 0;
    4394 "*" ANYMULTIRANGE ANYMULTIRANGE ANYMULTIRANGE 4272 multirange_intersect multi_intersect,
        4394 0;
    4395 "<<" ANYRANGE ANYMULTIRANGE BOOL 4258 range_before_multirange before, 4399 0;
    4396 "<<" ANYMULTIRANGE ANYRANGE BOOL 4259 multirange_before_range before, 4398 0;
    4397 "<<" ANYMULTIRANGE ANYMULTIRANGE BOOL 4260 multirange_before_multirange before, 4400 0;
    4398 ">>" ANYRANGE ANYMULTIRANGE BOOL 4261 range_after_multirange after, 4396 0;
    4399 ">>" ANYMULTIRANGE ANYRANGE BOOL 4262 multirange_after_range after, 4395 0;
    4400 ">>" ANYMULTIRANGE ANYMULTIRANGE BOOL 4263 multirange_after_multirange after, 4397 0;
    4539 "@>" ANYRANGE ANYMULTIRANGE BOOL 4541 range_contains_multirange contains, 4540 0;
    4540 "<@" ANYMULTIRANGE ANYRANGE BOOL 4542 multirange_contained_by_range contained, 4539 0;
}
