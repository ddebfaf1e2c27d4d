//! The character set of what is copied: the one that ENCODING names, or the client's.

use throng_bind::command::CopyOptions;
use throng_types::Result;
use throng_values::func::EvalContext;
use throng_values::io::{Charset, FormatSettings};

pub(super) fn charset(options: &CopyOptions, ctx: &EvalContext<'_>) -> Charset {
    options.encoding.unwrap_or(ctx.format.charset)
}

/// What binary values are read and written by, where that is not the session's.
pub(super) fn other_format(options: &CopyOptions, ctx: &EvalContext<'_>) -> Option<FormatSettings> {
    let charset = charset(options, ctx);
    (charset != ctx.format.charset).then(|| FormatSettings {
        charset,
        ..ctx.format.clone()
    })
}

/// Text of a source, whose pieces may end within a character.
pub(super) struct Decoder {
    charset: Charset,
    /// The beginning of a character.
    rest: Vec<u8>,
}

impl Decoder {
    pub(super) fn new(charset: Charset) -> Decoder {
        Decoder {
            charset,
            rest: Vec::new(),
        }
    }

    /// Makes UTF-8 of what `input` has got from `start` on. `more`: another piece may come.
    ///
    /// # Errors
    /// 22021, 22P05.
    pub(super) fn decode(&mut self, start: usize, input: &mut Vec<u8>, more: bool) -> Result<()> {
        if self.charset.is_plain() {
            return Ok(());
        }
        let mut piece = std::mem::take(&mut self.rest);
        piece.extend(input.drain(start..));
        if !more {
            input.extend_from_slice(self.charset.decode(&piece)?.as_bytes());
            return Ok(());
        }
        let (text, end) = self.charset.decode_whole(&piece)?;
        input.extend_from_slice(text.as_bytes());
        self.rest = piece.split_off(end);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_put_together_from_pieces() {
        let charset = Charset::named("sjis").expect("known");
        let whole = [0x41, 0x82, 0xa0, 0x5c, 0x83, 0x5c, 0x0a];
        for cut in 0..whole.len() {
            let mut decoder = Decoder::new(charset);
            let mut input = b"before".to_vec();
            for (piece, more) in [(&whole[..cut], true), (&whole[cut..], false)] {
                let start = input.len();
                input.extend_from_slice(piece);
                decoder
                    .decode(start, &mut input, more)
                    .expect("well formed");
            }
            assert_eq!(std::str::from_utf8(&input), Ok("beforeAあ\\ソ\n"), "{cut}");
        }
        let mut decoder = Decoder::new(charset);
        let mut input = vec![0x82];
        decoder.decode(0, &mut input, true).expect("may go on");
        assert!(input.is_empty());
        assert!(decoder.decode(0, &mut input, false).is_err());
    }
}
