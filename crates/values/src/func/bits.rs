//! Functions and operators of `bit` and `bit varying`.

use crate::func::number::{bigint_out_of_range, int, integer_out_of_range};
use crate::func::string::{clipped, negative_length};
use crate::func::table::{casts, functions, operators};
use crate::func::{Cast, CastContext, EvalContext, EvalResult, Function, Operator};
use crate::io::bits::{BitBuffer, Bits, cut, fitted};
use throng_types::error::state;
use throng_types::{Datum, Error, Oid, Result, interrupt, oid::*};

const NONE: Oid = Oid::NONE;

fn bit_value(bits: BitBuffer) -> Datum {
    Datum::base(BIT, bits.stored())
}

fn stored(value: &Datum) -> &[u8] {
    match value {
        Datum::Base(value) => &value.bytes,
        _ => unreachable!("not a string of bits: {value:?}"),
    }
}

fn combined(a: &Datum, b: &Datum, name: &str, of: fn(u8, u8) -> u8) -> Result<Datum> {
    let (bits, others) = (Bits::of(a), Bits::of(b));
    if bits.len != others.len {
        let message = format!("cannot {name} bit strings of different sizes");
        return Err(Error::new(state::STRING_DATA_LENGTH_MISMATCH, message));
    }
    let pairs = bits.bytes.iter().zip(others.bytes);
    let mut combined: Vec<u8> = pairs.map(|(a, b)| of(*a, *b)).collect();
    combined.extend(stored(a).last());
    Ok(Datum::base(BIT, combined))
}
pub(super) fn bits_and(a: &Datum, b: &Datum) -> Result<Datum> {
    combined(a, b, "AND", |a, b| a & b)
}
pub(super) fn bits_or(a: &Datum, b: &Datum) -> Result<Datum> {
    combined(a, b, "OR", |a, b| a | b)
}
pub(super) fn bits_xor(a: &Datum, b: &Datum) -> Result<Datum> {
    combined(a, b, "XOR", |a, b| a ^ b)
}
fn bit_and(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(bits_and(&args[0], &args[1])?)
}
fn bit_or(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(bits_or(&args[0], &args[1])?)
}
fn bitxor(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(bits_xor(&args[0], &args[1])?)
}
fn bitnot(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let bits = Bits::of(&args[0]);
    let inverted: Vec<u8> = bits.bytes.iter().map(|byte| !byte).collect();
    let mut out = BitBuffer::with_capacity(bits.len);
    let inverted = Bits {
        bytes: &inverted,
        ..bits
    };
    out.append(inverted, 0, bits.len);
    Ok(bit_value(out))
}

/// By so many bits to the right; to the left where it is negative.
fn shifted(bits: Bits<'_>, by: i64) -> Datum {
    let lost = usize::try_from(by.unsigned_abs()).map_or(bits.len, |by| by.min(bits.len));
    let mut out = BitBuffer::with_capacity(bits.len);
    match by < 0 {
        true => {
            out.append(bits, lost, bits.len);
            out.fill(false, lost);
        }
        false => {
            out.fill(false, lost);
            out.append(bits, 0, bits.len - lost);
        }
    }
    bit_value(out)
}
fn bitshiftleft(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(shifted(Bits::of(&args[0]), -int(&args[1])))
}
fn bitshiftright(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok(shifted(Bits::of(&args[0]), int(&args[1])))
}

fn bitcat(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (a, b) = (Bits::of(&args[0]), Bits::of(&args[1]));
    let mut out = BitBuffer::with_capacity(a.len + b.len);
    out.append(a, 0, a.len);
    out.append(b, 0, b.len);
    Ok(Datum::base(VARBIT, out.stored()))
}

/// Appends what `substring` would give.
fn append_part(out: &mut BitBuffer, bits: Bits<'_>, start: i64, len: Option<i64>) -> Result<()> {
    let (from, to) = clipped(start, len)?;
    let place = |at: i64| usize::try_from(at).map_or(0, |at| at.min(bits.len));
    out.append(bits, place(from), to.map_or(bits.len, place));
    Ok(())
}
fn bitsubstr(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let mut out = BitBuffer::default();
    let len = args.get(2).map(int);
    append_part(&mut out, Bits::of(&args[0]), int(&args[1]), len)?;
    Ok(bit_value(out))
}
fn bitoverlay(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (bits, new, start) = (Bits::of(&args[0]), Bits::of(&args[1]), int(&args[2]));
    let len = args.get(3).map_or(new.len as i64, int);
    if start <= 0 {
        return Err(negative_length().into());
    }
    let after = i64::from(i32::try_from(start + len).map_err(|_| integer_out_of_range())?);
    let mut out = BitBuffer::with_capacity(bits.len + new.len);
    append_part(&mut out, bits, 1, Some(start - 1))?;
    out.append(new, 0, new.len);
    append_part(&mut out, bits, after, None)?;
    Ok(bit_value(out))
}
/// Where the second begins in the first, from 1; 0 where it does not, or the first is empty.
fn bitposition(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let (bits, wanted) = (Bits::of(&args[0]), Bits::of(&args[1]));
    if bits.len == 0 || wanted.len > bits.len {
        return Ok(0.into());
    }
    for at in 0..=bits.len - wanted.len {
        interrupt::poll()?;
        if bits.has(wanted, at) {
            return Ok((at as i32 + 1).into());
        }
    }
    Ok(0.into())
}

fn bitlength(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((Bits::of(&args[0]).len as i32).into())
}
fn bitoctetlength(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    Ok((Bits::of(&args[0]).bytes.len() as i32).into())
}
fn bit_bit_count(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let ones = Bits::of(&args[0]).bytes.iter().map(|b| b.count_ones());
    Ok(ones.map(i64::from).sum::<i64>().into())
}

fn index(value: &Datum, len: usize) -> Result<usize> {
    let index = int(value);
    let valid = usize::try_from(index).ok().filter(|at| *at < len);
    valid.ok_or_else(|| {
        let last = len as i64 - 1;
        let message = format!("bit index {index} out of valid range (0..{last})");
        Error::new(state::ARRAY_SUBSCRIPT_ERROR, message)
    })
}
fn bitgetbit(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let bits = Bits::of(&args[0]);
    Ok(i32::from(bits.get(index(&args[1], bits.len)?)).into())
}
fn bitsetbit(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let at = index(&args[1], Bits::of(&args[0]).len)?;
    let mut changed = stored(&args[0]).to_vec();
    let bit = 0x80 >> (at % 8);
    match int(&args[2]) {
        0 => changed[at / 8] &= !bit,
        1 => changed[at / 8] |= bit,
        _ => {
            let message = "new bit must be 0 or 1";
            return Err(Error::new(state::INVALID_PARAMETER_VALUE, message).into());
        }
    }
    Ok(Datum::base(BIT, changed))
}

/// The last so many bits of a number, the sign before them; one where no length is told.
fn bitfromint(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let value = int(&args[0]);
    let width = if matches!(args[0], Datum::Int4(_)) {
        32
    } else {
        64
    };
    let len = usize::try_from(int(&args[1])).ok().filter(|len| *len > 0);
    let len = len.unwrap_or(1);
    let mut out = BitBuffer::with_capacity(len);
    out.fill(value < 0, len.saturating_sub(width));
    let number = Bits {
        bytes: &(value << (64 - width)).to_be_bytes(),
        len: width,
    };
    out.append(number, width.saturating_sub(len), width);
    Ok(bit_value(out))
}
fn bittoint4(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let bits = Bits::of(&args[0]);
    match bits.len {
        0..=32 => Ok((bits.number() as i32).into()),
        _ => Err(integer_out_of_range().into()),
    }
}
fn bittoint8(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    let bits = Bits::of(&args[0]);
    match bits.len {
        0..=64 => Ok((bits.number() as i64).into()),
        _ => Err(bigint_out_of_range().into()),
    }
}

/// A value under a modifier, by a function as an assignment or a cast would.
fn sized(args: &[Datum], apply: crate::io::base::ApplyModifier, ty: Oid) -> EvalResult {
    let explicit = matches!(args[2], Datum::Bool(true));
    let changed = apply(stored(&args[0]), int(&args[1]) as i32, explicit)?;
    Ok(changed.map_or_else(|| args[0].clone(), |bytes| Datum::base(ty, bytes)))
}
fn bit(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    sized(args, fitted, BIT)
}
fn varbit(_: &EvalContext<'_>, args: &[Datum]) -> EvalResult {
    sized(args, cut, VARBIT)
}

functions! {
    1680 "substring" (BIT, INT4, INT4) BIT bitsubstr;
    1681 "length" (BIT) INT4 bitlength;
    1682 "octet_length" (BIT) INT4 bitoctetlength;
    1683 "bit" (INT4, INT4) BIT bitfromint;
    1684 "int4" (BIT) INT4 bittoint4;
    1685 "bit" (BIT, INT4, BOOL) BIT bit;
    1687 "varbit" (VARBIT, INT4, BOOL) VARBIT varbit;
    1698 "position" (BIT, BIT) INT4 bitposition;
    1699 "substring" (BIT, INT4) BIT bitsubstr;
    1812 "bit_length" (BIT) INT4 bitlength;
    2075 "bit" (INT8, INT4) BIT bitfromint;
    2076 "int8" (BIT) INT8 bittoint8;
    3030 "overlay" (BIT, BIT, INT4, INT4) BIT bitoverlay;
    3031 "overlay" (BIT, BIT, INT4) BIT bitoverlay;
    3032 "get_bit" (BIT, INT4) INT4 bitgetbit;
    3033 "set_bit" (BIT, INT4, INT4) BIT bitsetbit;
    6162 "bit_count" (BIT) INT8 bit_bit_count;
}

operators! {
    1791 "&" BIT BIT BIT 1673 "bitand" bit_and 1791 0;
    1792 "|" BIT BIT BIT 1674 "bitor" bit_or 1792 0;
    1793 "#" BIT BIT BIT 1675 "bitxor" bitxor 1793 0;
    1794 "~" NONE BIT BIT 1676 "bitnot" bitnot 0 0;
    1795 "<<" BIT INT4 BIT 1677 "bitshiftleft" bitshiftleft 0 0;
    1796 ">>" BIT INT4 BIT 1678 "bitshiftright" bitshiftright 0 0;
    1797 "||" VARBIT VARBIT VARBIT 1679 "bitcat" bitcat 0 0;
}

casts! {
    BIT VARBIT implicit 0 binary;
    VARBIT BIT implicit 0 binary;
    INT8 BIT explicit 2075 bitfromint sized;
    INT4 BIT explicit 1683 bitfromint sized;
    BIT INT8 explicit 2076 bittoint8;
    BIT INT4 explicit 1684 bittoint4;
    VARBIT VARBIT implicit 1687 varbit;
}
