//! Type names: `integer`, `double precision`, `varchar(5)[]`, `interval day to second(3)`.

use throng_types::{Result, SqlType};

use super::ast::{Name, TypeName};
use super::lexer::Kind;
use super::{Parser, error_at};
use throng_types::lexical::keyword::Category;

impl Parser<'_> {
    pub(super) fn type_name(&mut self) -> Result<TypeName> {
        let setof = self.word("setof");
        let mut ty = self.simple_type()?;
        ty.setof = setof;
        if self.word("array") {
            ty.array = true;
            if self.punct('[') {
                self.integer()?;
                self.expect(']')?;
            }
        }
        while self.punct('[') {
            ty.array = true;
            if !self.is_punct(']') {
                self.integer()?;
            }
            self.expect(']')?;
        }
        Ok(ty)
    }

    fn simple_type(&mut self) -> Result<TypeName> {
        let pos = self.pos();
        let Some(word) = self.peek_word().map(str::to_string) else {
            return self.named_type();
        };
        let plain = |name: &str, modifiers: Vec<i32>, typmod: Option<i32>| TypeName {
            name: Name {
                parts: vec![name.to_string()],
                pos,
            },
            modifiers,
            typmod,
            array: false,
            setof: false,
        };
        let ty = match word.as_str() {
            "double" if self.is_at(1, "precision") => {
                self.at += 2;
                plain("float8", vec![], None)
            }
            "int" | "integer" => self.one_word(plain("int4", vec![], None)),
            "smallint" => self.one_word(plain("int2", vec![], None)),
            "bigint" => self.one_word(plain("int8", vec![], None)),
            "real" => self.one_word(plain("float4", vec![], None)),
            "boolean" => self.one_word(plain("bool", vec![], None)),
            "float" => {
                self.advance();
                let bits = self.type_modifiers()?;
                match bits.first() {
                    Some(..1) => {
                        let message = "precision for type float must be at least 1 bit";
                        return Err(error_at(
                            throng_types::error::state::INVALID_PARAMETER_VALUE,
                            message,
                            pos,
                        ));
                    }
                    Some(1..=24) => plain("float4", vec![], None),
                    Some(54..) => {
                        let message = "precision for type float must be less than 54 bits";
                        return Err(error_at(
                            throng_types::error::state::INVALID_PARAMETER_VALUE,
                            message,
                            pos,
                        ));
                    }
                    _ => plain("float8", vec![], None),
                }
            }
            "decimal" | "dec" | "numeric" => {
                self.advance();
                plain("numeric", self.type_modifiers()?, None)
            }
            "varchar" => {
                self.advance();
                plain("varchar", self.type_modifiers()?, None)
            }
            "character" | "char" | "nchar" => {
                self.advance();
                self.character(plain("bpchar", vec![], None))?
            }
            "national" => {
                self.advance();
                if !self.word("character") {
                    self.keyword("char")?;
                }
                self.character(plain("bpchar", vec![], None))?
            }
            "timestamp" | "time" => {
                self.advance();
                let modifiers = self.type_modifiers()?;
                let zoned = self.words(&["with", "time", "zone"]);
                if !zoned {
                    self.words(&["without", "time", "zone"]);
                }
                plain(
                    &format!("{word}{}", if zoned { "tz" } else { "" }),
                    modifiers,
                    None,
                )
            }
            "interval" => {
                self.advance();
                let precision = self.type_modifiers()?;
                let typmod = self.interval_fields(precision.first().copied())?;
                plain("interval", vec![], typmod)
            }
            "json" => self.one_word(plain("json", vec![], None)),
            "bit" => {
                self.advance();
                self.bit(plain("bit", vec![], None))?
            }
            _ => return self.named_type(),
        };
        Ok(ty)
    }

    fn one_word(&mut self, ty: TypeName) -> TypeName {
        self.advance();
        ty
    }

    /// After CHARACTER: `VARYING`, and the length; without one it is 1.
    fn character(&mut self, mut ty: TypeName) -> Result<TypeName> {
        let varying = self.word("varying");
        ty.modifiers = self.type_modifiers()?;
        if varying {
            ty.name.parts = vec!["varchar".into()];
        } else if ty.modifiers.is_empty() {
            ty.modifiers = vec![1];
        }
        Ok(ty)
    }

    /// After BIT: `VARYING`, and the length; without one it is 1.
    fn bit(&mut self, mut ty: TypeName) -> Result<TypeName> {
        let varying = self.word("varying");
        ty.modifiers = self.type_modifiers()?;
        if varying {
            ty.name.parts = vec!["varbit".into()];
        } else if ty.modifiers.is_empty() && !matches!(self.kind(), Kind::Text(_)) {
            // A constant that is written so has its own length.
            ty.modifiers = vec![1];
        }
        Ok(ty)
    }

    fn named_type(&mut self) -> Result<TypeName> {
        let pos = self.pos();
        let first = self.name_of(&[Category::Unreserved, Category::TypeOrFunction])?;
        let mut parts = vec![first];
        while self.punct('.') {
            parts.push(self.label()?);
        }
        let name = self.check_parts(Name { parts, pos })?;
        let modifiers = self.type_modifiers()?;
        Ok(TypeName {
            name,
            modifiers,
            typmod: None,
            array: false,
            setof: false,
        })
    }

    pub(super) fn type_modifiers(&mut self) -> Result<Vec<i32>> {
        if !self.is_punct('(') {
            return Ok(vec![]);
        }
        self.parens(|p| {
            p.list(|p| {
                let at = p.pos();
                let value = p.integer()?;
                i32::try_from(value).map_err(|_| {
                    error_at(
                        throng_types::error::state::INVALID_PARAMETER_VALUE,
                        "type modifier is out of range",
                        at,
                    )
                })
            })
        })
    }

    /// `[YEAR | … | DAY TO SECOND [(p)]]` as an interval's modifier.
    pub(super) fn interval_fields(&mut self, precision: Option<i32>) -> Result<Option<i32>> {
        use throng_types::sqltype::interval_field::*;
        const UNITS: [(&str, i32); 6] = [
            ("year", YEAR),
            ("month", MONTH),
            ("day", DAY),
            ("hour", HOUR),
            ("minute", MINUTE),
            ("second", SECOND),
        ];
        let unit = |p: &Self| {
            p.peek_word()
                .and_then(|w| UNITS.iter().position(|(name, _)| *name == w))
        };
        let Some(first) = unit(self) else {
            let plain = |p| SqlType::interval_modifier(FULL_RANGE, p);
            return Ok(precision.map(plain));
        };
        self.advance();
        let mut last = first;
        if self.word("to") {
            last = match unit(self) {
                Some(last) if last > first && (first > 1) == (last > 1) => last,
                _ => return Err(self.unexpected()),
            };
            self.advance();
        }
        let mut digits = precision;
        if last == 5 && self.is_punct('(') {
            digits = self.type_modifiers()?.first().copied();
        }
        let range = UNITS[first..=last]
            .iter()
            .fold(0, |bits, (_, bit)| bits | bit);
        Ok(Some(SqlType::interval_modifier(
            range,
            digits.unwrap_or(FULL_PRECISION),
        )))
    }

    /// Whether a constant of a named type follows: `date '2020-01-01'`.
    pub(super) fn typed_literal_ahead(&self) -> bool {
        matches!(
            (self.kind(), self.kind_at(1)),
            (Kind::Word(_) | Kind::Quoted(_), Kind::Text(_))
        )
    }
}

/// Words that begin a type which may stand before a constant although it is more than one word.
pub(super) fn types_of_constant(word: &str) -> bool {
    matches!(
        word,
        "double"
            | "bit"
            | "timestamp"
            | "time"
            | "interval"
            | "varchar"
            | "character"
            | "char"
            | "national"
            | "numeric"
            | "decimal"
            | "dec"
            | "float"
    )
}
