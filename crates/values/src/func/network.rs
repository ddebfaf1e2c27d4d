//! Functions and operators of `inet` and `cidr`.

use crate::func::number::int;
use crate::func::table::{casts, functions, operators};
use crate::func::{Cast, CastContext, EvalContext, EvalResult, Function, Operator};
use crate::io::network::Inet;
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, oid::*};

const NONE: Oid = Oid::NONE;

#[cold]
fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_PARAMETER_VALUE, message)
}

#[cold]
fn out_of_range() -> Error {
    Error::new(state::NUMERIC_VALUE_OUT_OF_RANGE, "result is out of range")
}

fn both(args: &[Datum]) -> (Inet, Inet) {
    (Inet::of(&args[0]), Inet::of(&args[1]))
}

fn text(write: impl FnOnce(&mut Vec<u8>)) -> EvalResult {
    let mut out = Vec::new();
    write(&mut out);
    match String::from_utf8(out) {
        Ok(text) => Ok(text.into()),
        Err(_) => Err(Error::internal("an address is not ASCII").into()),
    }
}

fn network_host(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    text(|out| Inet::of(&args[0]).write_host(out))
}
/// With its bits, however many.
fn network_show(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let inet = Inet::of(&args[0]);
    text(|out| {
        inet.write_host(out);
        inet.write_bits(out);
    })
}
fn inet_abbrev(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let inet = Inet::of(&args[0]);
    text(|out| {
        inet.write_host(out);
        if inet.bits != inet.width() {
            inet.write_bits(out);
        }
    })
}
fn cidr_abbrev(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    text(|out| Inet::of(&args[0]).write_abbreviated(out))
}

/// -1 stands for all bits.
fn with_bits(args: &[Datum]) -> Result<Inet, Error> {
    let inet = Inet::of(&args[0]);
    let bits = match int(&args[1]) {
        -1 => Some(inet.width()),
        bits => u8::try_from(bits).ok().filter(|b| *b <= inet.width()),
    };
    let bits = bits.ok_or_else(|| invalid(format!("invalid mask length: {}", int(&args[1]))))?;
    Ok(Inet { bits, ..inet })
}
fn inet_set_masklen(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(with_bits(args)?.datum(INET))
}
fn cidr_set_masklen(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(with_bits(args)?.masked().datum(CIDR))
}
fn network_masklen(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(i32::from(Inet::of(&args[0]).bits).into())
}
fn network_family(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(if Inet::of(&args[0]).wide { 6 } else { 4 }.into())
}

/// The network that an address is in.
fn network_network(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(Inet::of(&args[0]).masked().datum(CIDR))
}
/// A mask as the address of one host.
fn mask(inet: Inet, address: u128) -> EvalResult {
    let bits = inet.width();
    Ok(Inet {
        bits,
        address,
        ..inet
    }
    .datum(INET))
}
fn network_netmask(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let inet = Inet::of(&args[0]);
    mask(inet, inet.network_mask())
}
fn network_hostmask(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let inet = Inet::of(&args[0]);
    mask(inet, inet.host_mask())
}
fn network_broadcast(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let inet = Inet::of(&args[0]);
    let address = inet.address | inet.host_mask();
    Ok(Inet { address, ..inet }.datum(INET))
}

fn inet_same_family(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    Ok((a.wide == b.wide).into())
}
/// The smallest network that both are in.
fn inet_merge(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    if a.wide != b.wide {
        return Err(invalid("cannot merge addresses from different families").into());
    }
    let differing = 128 - (a.address ^ b.address).leading_zeros() as u8;
    let bits = (a.width() - differing).min(a.bits).min(b.bits);
    Ok(Inet { bits, ..a }.masked().datum(CIDR))
}

/// Whether the first is in the network of the second, or is that network.
fn is_within(a: Inet, b: Inet) -> bool {
    a.bits >= b.bits && a.shares(b, b.bits)
}
fn network_sub(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    Ok((a.bits > b.bits && is_within(a, b)).into())
}
fn network_subeq(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    Ok(is_within(a, b).into())
}
fn network_sup(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    Ok((b.bits > a.bits && is_within(b, a)).into())
}
fn network_supeq(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    Ok(is_within(b, a).into())
}
fn network_overlap(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    Ok(a.shares(b, a.bits.min(b.bits)).into())
}

fn inetnot(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let inet = Inet::of(&args[0]);
    let address = inet.address ^ inet.all();
    Ok(Inet { address, ..inet }.datum(INET))
}
fn bitwise(args: &[Datum], name: &str, of: fn(u128, u128) -> u128) -> EvalResult {
    let (a, b) = both(args);
    if a.wide != b.wide {
        return Err(invalid(format!("cannot {name} inet values of different sizes")).into());
    }
    Ok(Inet {
        bits: a.bits.max(b.bits),
        address: of(a.address, b.address),
        ..a
    }
    .datum(INET))
}
fn inetand(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    bitwise(args, "AND", |a, b| a & b)
}
fn inetor(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    bitwise(args, "OR", |a, b| a | b)
}

fn moved(inet: &Datum, by: i128) -> EvalResult {
    let inet = Inet::of(inet);
    let address = match by < 0 {
        true => inet.address.checked_sub(by.unsigned_abs()),
        false => inet.address.checked_add(by.unsigned_abs()),
    };
    let address = address.filter(|address| *address <= inet.all());
    let address = address.ok_or_else(out_of_range)?;
    Ok(Inet { address, ..inet }.datum(INET))
}
fn inetpl(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    moved(&args[0], int(&args[1]).into())
}
fn int8pl_inet(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    moved(&args[1], int(&args[0]).into())
}
fn inetmi_int8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    moved(&args[0], -i128::from(int(&args[1])))
}
fn inetmi(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = both(args);
    if a.wide != b.wide {
        return Err(invalid("cannot subtract inet values of different sizes").into());
    }
    let distance = a.address.abs_diff(b.address);
    let distance = i128::try_from(distance).map_err(|_| out_of_range())?;
    let difference = if a.address < b.address {
        -distance
    } else {
        distance
    };
    let difference = i64::try_from(difference).map_err(|_| out_of_range())?;
    Ok(difference.into())
}

functions! {
    598 "abbrev" (INET) TEXT inet_abbrev;
    599 "abbrev" (CIDR) TEXT cidr_abbrev;
    605 "set_masklen" (INET, INT4) INET inet_set_masklen;
    635 "set_masklen" (CIDR, INT4) CIDR cidr_set_masklen;
    683 "network" (INET) CIDR network_network;
    696 "netmask" (INET) INET network_netmask;
    697 "masklen" (INET) INT4 network_masklen;
    698 "broadcast" (INET) INET network_broadcast;
    699 "host" (INET) TEXT network_host;
    711 "family" (INET) INT4 network_family;
    730 "text" (INET) TEXT network_show;
    1362 "hostmask" (INET) INET network_hostmask;
    1715 "cidr" (INET) CIDR network_network;
    4063 "inet_merge" (INET, INET) CIDR inet_merge;
    4071 "inet_same_family" (INET, INET) BOOL inet_same_family;
}

operators! {
    931 "<<" INET INET BOOL 927 "network_sub" network_sub 933 0;
    932 "<<=" INET INET BOOL 928 "network_subeq" network_subeq 934 0;
    933 ">>" INET INET BOOL 929 "network_sup" network_sup 931 0;
    934 ">>=" INET INET BOOL 930 "network_supeq" network_supeq 932 0;
    2634 "~" NONE INET INET 2627 "inetnot" inetnot 0 0;
    2635 "&" INET INET INET 2628 "inetand" inetand 0 0;
    2636 "|" INET INET INET 2629 "inetor" inetor 0 0;
    2637 "+" INET INT8 INET 2630 "inetpl" inetpl 2638 0;
    2638 "+" INT8 INET INET 2631 "int8pl_inet" int8pl_inet 2637 0;
    2639 "-" INET INT8 INET 2632 "inetmi_int8" inetmi_int8 0 0;
    2640 "-" INET INET INT8 2633 "inetmi" inetmi 0 0;
    3552 "&&" INET INET BOOL 3551 "network_overlap" network_overlap 3552 0;
}

casts! {
    CIDR INET implicit 0 binary;
    INET CIDR assignment 1715 network_network;
    CIDR TEXT assignment 730 network_show;
    INET TEXT assignment 730 network_show;
    CIDR VARCHAR assignment 730 network_show;
    INET VARCHAR assignment 730 network_show;
    CIDR BPCHAR assignment 730 network_show;
    INET BPCHAR assignment 730 network_show;
}
