//! RAISE and ASSERT.

use throng_syntax::plpgsql::{Level, Raise, RaiseOption, states_named};
use throng_types::error::{Severity, state};
use throng_types::{Datum, Error, Result, SqlState};

use super::super::Session;
use super::Machine;
use super::step::TEXT;

/// The state that a name or five characters stand for.
fn state_of(text: &str) -> Result<SqlState> {
    let written = text.len() == 5
        && text
            .bytes()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    if written {
        return Ok(SqlState::new(text));
    }
    states_named(text).first().copied().ok_or_else(|| {
        let message = format!("unrecognized exception condition \"{text}\"");
        Error::new(state::UNDEFINED_OBJECT, message)
    })
}

impl Session {
    pub(super) async fn raise(&self, m: &mut Machine, raise: &Raise) -> Result<()> {
        let mut code = None;
        let mut message = None;
        if let Some(condition) = &raise.condition {
            code = Some(state_of(condition)?);
        }
        if let Some(format) = &raise.message {
            message = Some(self.formatted(m, format, &raise.params).await?);
        }
        let mut error = Error::new(state::RAISE_EXCEPTION, "");
        let mut given: Vec<RaiseOption> = Vec::new();
        for (option, id) in &raise.options {
            let (value, _) = self.value(m, *id, Some(TEXT)).await?;
            let Datum::Text(text) = value else {
                let message = "RAISE statement option cannot be null";
                return Err(Error::new(state::NULL_VALUE_NOT_ALLOWED, message));
            };
            let text = text.to_string();
            let name = match option {
                RaiseOption::Errcode => "ERRCODE",
                RaiseOption::Message => "MESSAGE",
                RaiseOption::Detail => "DETAIL",
                RaiseOption::Hint => "HINT",
                RaiseOption::Column => "COLUMN",
                RaiseOption::Constraint => "CONSTRAINT",
                RaiseOption::Datatype => "DATATYPE",
                RaiseOption::Table => "TABLE",
                RaiseOption::Schema => "SCHEMA",
            };
            let again = given.contains(option)
                || *option == RaiseOption::Errcode && code.is_some()
                || *option == RaiseOption::Message && message.is_some();
            if again {
                let message = format!("RAISE option already specified: {name}");
                return Err(Error::new(state::SYNTAX_ERROR, message));
            }
            given.push(*option);
            let fields = error.fields_mut();
            match option {
                RaiseOption::Errcode => {
                    code = Some(state_of(&text)?);
                    if message.is_none() && raise.message.is_none() {
                        fields.message = text;
                    }
                }
                RaiseOption::Message => message = Some(text),
                RaiseOption::Detail => fields.detail = Some(text),
                RaiseOption::Hint => fields.hint = Some(text),
                RaiseOption::Column => fields.column = Some(text),
                RaiseOption::Constraint => fields.constraint = Some(text),
                RaiseOption::Datatype => fields.data_type = Some(text),
                RaiseOption::Table => fields.table = Some(text),
                RaiseOption::Schema => fields.schema = Some(text),
            }
        }
        let severity = match raise.level {
            Level::Debug => Severity::Debug,
            Level::Log => Severity::Log,
            Level::Info => Severity::Info,
            Level::Notice => Severity::Notice,
            Level::Warning => Severity::Warning,
            Level::Exception => Severity::Error,
        };
        let usual = match severity {
            Severity::Error => state::RAISE_EXCEPTION,
            Severity::Warning => state::WARNING,
            _ => state::SUCCESSFUL_COMPLETION,
        };
        let fields = error.fields_mut();
        fields.severity = severity;
        fields.code = code.unwrap_or(usual);
        match message.or_else(|| raise.condition.clone()) {
            Some(message) => fields.message = message,
            None if fields.message.is_empty() => {
                fields.message = fields.code.as_str().to_owned();
            }
            None => {}
        }
        if severity == Severity::Error {
            return Err(error);
        }
        error.fields_mut().context = Some(self.context_now());
        self.tell(error)
    }

    async fn formatted(&self, m: &mut Machine, format: &str, params: &[usize]) -> Result<String> {
        let mut params = params.iter();
        let mut text = String::with_capacity(format.len());
        let mut chars = format.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                text.push(c);
                continue;
            }
            if chars.peek() == Some(&'%') {
                chars.next();
                text.push('%');
                continue;
            }
            let Some(id) = params.next() else {
                return Err(Error::internal("too few values for RAISE"));
            };
            let (value, ty) = self.value(m, *id, None).await?;
            match self.text_of(&value, ty) {
                Some(shown) => text.push_str(&shown),
                None => text.push_str("<NULL>"),
            }
        }
        Ok(text)
    }

    pub(super) async fn assert(
        &self,
        m: &mut Machine,
        condition: usize,
        message: Option<usize>,
    ) -> Result<()> {
        let checks = self.show("plpgsql.check_asserts");
        if checks.is_ok_and(|on| matches!(on.as_str(), "off" | "false" | "0" | "no")) {
            return Ok(());
        }
        if self.is_true(m, condition).await? {
            return Ok(());
        }
        let mut text = "assertion failed".to_owned();
        if let Some(id) = message
            && let (Datum::Text(given), _) = self.value(m, id, Some(TEXT)).await?
        {
            text = given.to_string();
        }
        Err(Error::new(state::ASSERT_FAILURE, text))
    }
}
