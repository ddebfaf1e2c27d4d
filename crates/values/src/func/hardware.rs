//! Functions and operators of `macaddr` and `macaddr8`.

use crate::func::table::{casts, functions, operators};
use crate::func::{Cast, CastContext, EvalContext, EvalResult, Function, Operator};
use crate::io::hardware::{WIDENING, widened};
use throng_types::error::state;
use throng_types::{BaseValue, Datum, Error, Oid, oid::*};

const NONE: Oid = Oid::NONE;

fn address(value: &Datum) -> &BaseValue {
    match value {
        Datum::Base(value) => value,
        _ => unreachable!("not an address: {value:?}"),
    }
}

fn changed(value: &Datum, change: impl FnOnce(&mut [u8])) -> EvalResult {
    let value = address(value);
    let mut octets = value.bytes.to_vec();
    change(&mut octets);
    Ok(Datum::base(value.ty, octets))
}

/// The maker's part alone.
fn trunc(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    changed(&args[0], |octets| octets[3..].fill(0))
}
fn not(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    changed(&args[0], |octets| octets.iter_mut().for_each(|o| *o = !*o))
}
fn bitwise(args: &[Datum], of: fn(u8, u8) -> u8) -> EvalResult {
    let other = address(&args[1]);
    changed(&args[0], |octets| {
        for (octet, other) in octets.iter_mut().zip(other.bytes.iter()) {
            *octet = of(*octet, *other);
        }
    })
}
fn and(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    bitwise(args, |a, b| a & b)
}
fn or(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    bitwise(args, |a, b| a | b)
}
/// Sets the bit that tells an address which is not its maker's.
fn macaddr8_set7bit(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    changed(&args[0], |octets| octets[0] |= 0x02)
}

fn macaddrtomacaddr8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Datum::base(MACADDR8, widened(&address(&args[0]).bytes)))
}
fn macaddr8tomacaddr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let octets = &address(&args[0]).bytes;
    if octets[3..5] != WIDENING {
        let message = "macaddr8 data out of range to convert to macaddr";
        let hint = "Only addresses that have FF and FE as values in the 4th and 5th bytes from \
                    the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted \
                    from macaddr8 to macaddr.";
        return Err(Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, message)
            .hint(hint)
            .into());
    }
    Ok(Datum::base(MACADDR, [&octets[..3], &octets[5..]].concat()))
}

functions! {
    753 "trunc" (MACADDR) MACADDR trunc;
    4112 "trunc" (MACADDR8) MACADDR8 trunc;
    4123 "macaddr8" (MACADDR) MACADDR8 macaddrtomacaddr8;
    4124 "macaddr" (MACADDR8) MACADDR macaddr8tomacaddr;
    4125 "macaddr8_set7bit" (MACADDR8) MACADDR8 macaddr8_set7bit;
}

operators! {
    3147 "~" NONE MACADDR MACADDR 3144 "macaddr_not" not 0 0;
    3148 "&" MACADDR MACADDR MACADDR 3145 "macaddr_and" and 0 0;
    3149 "|" MACADDR MACADDR MACADDR 3146 "macaddr_or" or 0 0;
    3368 "~" NONE MACADDR8 MACADDR8 4120 "macaddr8_not" not 0 0;
    3369 "&" MACADDR8 MACADDR8 MACADDR8 4121 "macaddr8_and" and 0 0;
    3370 "|" MACADDR8 MACADDR8 MACADDR8 4122 "macaddr8_or" or 0 0;
}

casts! {
    MACADDR MACADDR8 implicit 4123 macaddrtomacaddr8;
    MACADDR8 MACADDR implicit 4124 macaddr8tomacaddr;
}
