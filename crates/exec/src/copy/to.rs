//! COPY … TO: rows become records.

use throng_bind::command::{ColumnSet, CopyFormat, CopyHeader, CopyOptions};
use throng_plan::OutputColumn;
use throng_types::{Datum, Error, Result};
use throng_values::func::EvalContext;
use throng_values::io::{FormatSettings, output_binary, output_text};

use super::Sink;
use super::binary::{write_header, write_trailer};
use super::charset::{charset, other_format};
use super::text::{write_csv_field, write_field};
use crate::client::{Client, Format};
use crate::outgoing;
use crate::run::Row;
use crate::run::context::Env;
use crate::slices::Turn;

/// Rows on their way out, one record after another.
pub struct Records<'a> {
    options: &'a CopyOptions,
    columns: &'a [OutputColumn],
    sink: &'a mut Sink,
    client: &'a mut dyn Client,
    turn: Turn,
    count: u64,
    /// The next record, and one value's text: for their memory.
    record: Vec<u8>,
    value: Vec<u8>,
    /// What the values of binary rows are written by, where it is not the session's.
    format: Option<FormatSettings>,
}

impl<'a> Records<'a> {
    /// Begins with what comes before the first row.
    ///
    /// # Errors
    /// What the file or the client fails with, here and below.
    pub async fn begin(
        options: &'a CopyOptions,
        columns: &'a [OutputColumn],
        sink: &'a mut Sink,
        client: &'a mut dyn Client,
        env: Env<'_>,
    ) -> Result<Records<'a>> {
        if let Sink::Client = sink {
            let format = match options.format {
                CopyFormat::Binary => Format::Binary,
                _ => Format::Text,
            };
            client.copy_out_start(format, columns.len());
        }
        let mut records = Records {
            options,
            columns,
            sink,
            client,
            turn: Turn::new(),
            count: 0,
            record: Vec::new(),
            value: Vec::new(),
            format: other_format(options, &env.eval),
        };
        match options.format {
            // The first row's message begins with it.
            CopyFormat::Binary => write_header(&mut records.record),
            _ if options.header != CopyHeader::No => {
                records.names();
                charset(options, &env.eval).encode_from(0, &mut records.record)?;
                records.leave().await?;
            }
            _ => {}
        }
        Ok(records)
    }

    /// One row more.
    ///
    /// # Errors
    /// That a value has no binary form, too, and a cancel.
    pub async fn row(&mut self, row: &[Datum], env: Env<'_>) -> Result<()> {
        let written = self.long_values(row, env).await?;
        let row = written.as_deref().unwrap_or(row);
        match self.options.format {
            CopyFormat::Binary => self.binary_row(row, &env.eval)?,
            _ => {
                self.text_row(row, &env.eval);
                charset(self.options, &env.eval).encode_from(0, &mut self.record)?;
            }
        }
        self.turn.worked(self.record.len(), env.cancel).await?;
        self.count += 1;
        self.leave().await
    }

    /// The row with its long values written, if it has any.
    async fn long_values(&self, row: &[Datum], env: Env<'_>) -> Result<Option<Row>> {
        if !outgoing::has_long(row) {
            return Ok(None);
        }
        let format = match self.options.format {
            CopyFormat::Binary => Format::Binary,
            _ => Format::Text,
        };
        let columns = self.columns.iter().map(|column| (column.ty, format));
        let format = self.format.as_ref().unwrap_or(env.eval.format);
        let eval = EvalContext { format, ..env.eval };
        let env = Env { eval, ..env };
        outgoing::written(row, columns, env).await.map(Some)
    }

    /// Ends with what comes after the last row; how many there were.
    pub async fn end(mut self) -> Result<u64> {
        if self.options.format == CopyFormat::Binary {
            write_trailer(&mut self.record);
            self.leave().await?;
        }
        self.sink.finish(self.client).await?;
        Ok(self.count)
    }

    async fn leave(&mut self) -> Result<()> {
        self.sink.write(&self.record, self.client).await?;
        self.record.clear();
        Ok(())
    }

    /// Appends the header line.
    fn names(&mut self) {
        // FORCE_QUOTE is for values.
        let options = CopyOptions {
            force_quote: ColumnSet::None,
            ..self.options.clone()
        };
        let out = &mut self.record;
        for (i, column) in self.columns.iter().enumerate() {
            if i > 0 {
                out.push(options.delimiter);
            }
            let name = Some(column.name.as_bytes());
            match options.format {
                CopyFormat::Csv => {
                    write_csv_field(&options, name, i as u16 + 1, self.columns.len() == 1, out)
                }
                _ => write_field(&options, name, out),
            }
        }
        out.push(b'\n');
    }

    fn text_row(&mut self, row: &[Datum], ctx: &EvalContext<'_>) {
        let out = &mut self.record;
        let alone = self.columns.len() == 1;
        for (i, (value, column)) in row.iter().zip(self.columns).enumerate() {
            if i > 0 {
                out.push(self.options.delimiter);
            }
            self.value.clear();
            let text = match value {
                Datum::Null => None,
                value => {
                    output_text(ctx, value, column.ty, &mut self.value);
                    Some(self.value.as_slice())
                }
            };
            match self.options.format {
                CopyFormat::Csv => write_csv_field(self.options, text, i as u16 + 1, alone, out),
                _ => write_field(self.options, text, out),
            }
        }
        out.push(b'\n');
    }

    fn binary_row(&mut self, row: &[Datum], ctx: &EvalContext<'_>) -> Result<()> {
        let out = &mut self.record;
        let ctx = &EvalContext {
            format: self.format.as_ref().unwrap_or(ctx.format),
            ..*ctx
        };
        out.extend_from_slice(&(self.columns.len() as i16).to_be_bytes());
        for (value, column) in row.iter().zip(self.columns) {
            if value.is_null() {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                continue;
            }
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            output_binary(ctx, value, column.ty, out)?;
            let length = i32::try_from(out.len() - start - 4)
                .map_err(|_| Error::internal("a value longer than 2 GB"))?;
            out[start..start + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}
