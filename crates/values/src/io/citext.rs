//! `citext` as text: what was given, whatever case it is compared in.

use crate::eval::EvalContext;
use crate::io::base::BaseInputOutput;
use throng_types::error::state;
use throng_types::sqltype::made;
use throng_types::{Error, Result};

pub(super) static CITEXT: BaseInputOutput = BaseInputOutput {
    ty: made::CITEXT,
    input: |_: &EvalContext<'_>, text, _| Ok(text.as_bytes().to_vec()),
    output: |_, value, out| out.extend_from_slice(value),
    receive: |_, binary| valid(binary),
    send: |_, value, out| {
        out.extend_from_slice(value);
        Ok(())
    },
    modifier: None,
};

fn valid(binary: &[u8]) -> Result<Vec<u8>> {
    match std::str::from_utf8(binary) {
        Ok(text) if !text.contains('\0') => Ok(binary.to_vec()),
        _ => {
            let message = "invalid byte sequence for encoding \"UTF8\"";
            Err(Error::new(state::CHARACTER_NOT_IN_REPERTOIRE, message))
        }
    }
}
