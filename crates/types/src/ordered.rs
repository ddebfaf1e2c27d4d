//! Bytes in an order in which none is a prefix of another: what keys are made of.

/// Bytes followed by an end that is below every byte.
pub(crate) fn write_bytes(value: &[u8], out: &mut Vec<u8>) {
    if value.contains(&0) {
        for &byte in value {
            out.push(byte);
            if byte == 0 {
                out.push(0xff);
            }
        }
    } else {
        out.extend_from_slice(value);
    }
    out.extend_from_slice(&[0x00, 0x01]);
}
