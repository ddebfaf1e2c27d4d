//! COPY … TO: rows become records.

use throng_sql::command::{CopyFormat, CopyHeader, CopyOptions};
use throng_sql::func::EvalContext;
use throng_sql::io::{output_binary, output_text};
use throng_sql::plan::OutputColumn;
use throng_types::{Datum, Error, Result};

use super::Sink;
use super::binary::{write_header, write_trailer};
use super::text::{write_csv_field, write_field};
use super::turn::Turn;
use crate::client::{Client, Format};
use crate::run::Row;
use crate::run::build::Execution;
use crate::session::next;
use crate::write::Context;

/// Runs a query and writes its rows; their number.
///
/// # Errors
/// What the query or the file fails with.
pub async fn copy_to(
    execution: &mut Execution,
    options: &CopyOptions,
    sink: &mut Sink,
    cx: &Context<'_>,
    client: &mut dyn Client,
) -> Result<u64> {
    let plan = execution.plan().clone();
    let mut writer = Writer {
        options,
        columns: &plan.output,
        value: Vec::new(),
    };
    if let Sink::Client = sink {
        let format = match options.format {
            CopyFormat::Binary => Format::Binary,
            _ => Format::Text,
        };
        client.copy_out_start(format, plan.output.len());
    }
    let mut record = Vec::new();
    match options.format {
        // The first row's message begins with it.
        CopyFormat::Binary => write_header(&mut record),
        _ if options.header != CopyHeader::No => {
            writer.names(&mut record);
            sink.write(&record, client).await?;
            record.clear();
        }
        _ => {}
    }
    let mut turn = Turn::new();
    let mut row = Row::new();
    let mut count = 0;
    while next(execution, cx.env, cx.txn, &mut row).await? {
        writer.row(&row, &cx.env.eval, &mut record)?;
        sink.write(&record, client).await?;
        turn.worked(record.len(), cx.env.cancel).await?;
        record.clear();
        count += 1;
    }
    if options.format == CopyFormat::Binary {
        write_trailer(&mut record);
        sink.write(&record, client).await?;
    }
    sink.finish(client).await?;
    Ok(count)
}

struct Writer<'a> {
    options: &'a CopyOptions,
    columns: &'a [OutputColumn],
    /// One value's text, for its memory.
    value: Vec<u8>,
}

impl Writer<'_> {
    /// Appends the header line.
    fn names(&mut self, out: &mut Vec<u8>) {
        // FORCE_QUOTE is for values.
        let options = CopyOptions {
            force_quote: throng_sql::command::ColumnSet::None,
            ..self.options.clone()
        };
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

    /// Appends a row.
    fn row(&mut self, row: &[Datum], ctx: &EvalContext<'_>, out: &mut Vec<u8>) -> Result<()> {
        if self.options.format == CopyFormat::Binary {
            return self.binary_row(row, ctx, out);
        }
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
        Ok(())
    }

    fn binary_row(
        &mut self,
        row: &[Datum],
        ctx: &EvalContext<'_>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
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
