//! How values are written and read: the settings that their text depends on.

use crate::charset::Charset;
use crate::zone::Zone;

/// How dates are written, and which of day and month comes first when read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DateStyle {
    pub format: DateFormat,
    pub order: DateOrder,
}
impl DateStyle {
    /// From the setting's value: format, order.
    pub fn of(setting: &str) -> DateStyle {
        let (format, order) = setting.split_once(", ").unwrap_or((setting, ""));
        DateStyle {
            format: match format {
                "SQL" => DateFormat::Sql,
                "Postgres" => DateFormat::Postgres,
                "German" => DateFormat::German,
                _ => DateFormat::Iso,
            },
            order: match order {
                "YMD" => DateOrder::Ymd,
                "DMY" => DateOrder::Dmy,
                _ => DateOrder::Mdy,
            },
        }
    }
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateFormat {
    Iso,
    Sql,
    Postgres,
    German,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    Ymd,
    Dmy,
    Mdy,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntervalStyle {
    Postgres,
    PostgresVerbose,
    SqlStandard,
    Iso8601,
}
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteaOutput {
    Hex,
    Escape,
}

/// The settings that reading and writing values depend on.
#[derive(Clone, Debug, PartialEq)]
pub struct FormatSettings {
    pub date_style: DateStyle,
    pub interval_style: IntervalStyle,
    pub time_zone: Zone,
    /// Above 0: the shortest text that reads back as the same float. Otherwise 15 (6) digits plus
    /// this.
    pub extra_float_digits: i32,
    pub bytea_output: ByteaOutput,
    /// Whether an unquoted NULL in an array's text is one.
    pub array_nulls: bool,
    /// What the client speaks.
    pub charset: Charset,
}

impl Default for FormatSettings {
    fn default() -> FormatSettings {
        FormatSettings {
            date_style: DateStyle {
                format: DateFormat::Iso,
                order: DateOrder::Mdy,
            },
            interval_style: IntervalStyle::Postgres,
            time_zone: Zone::utc(),
            extra_float_digits: 1,
            bytea_output: ByteaOutput::Hex,
            array_nulls: true,
            charset: Charset::UTF8,
        }
    }
}
