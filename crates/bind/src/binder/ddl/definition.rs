//! `(name = value, …)`: what CREATE AGGREGATE and CREATE OPERATOR say.

use throng_types::error::state;
use throng_types::{Error, Result};

use throng_syntax::parse::ast::{self, DefinitionItem, DefinitionValue, Name, TypeName};

/// A definition's attributes, of which the last of a name counts.
pub(in crate::binder) struct Definition<'a> {
    items: &'a [DefinitionItem],
}

impl<'a> Definition<'a> {
    pub fn new(items: &'a [DefinitionItem]) -> Definition<'a> {
        Definition { items }
    }

    /// Names that are not among these.
    pub fn others(&self, known: &[&str]) -> Vec<&'a str> {
        let names = self.items.iter().map(|item| item.name.as_str());
        names.filter(|name| !known.contains(name)).collect()
    }

    fn item(&self, name: &str) -> Option<&'a DefinitionItem> {
        self.items.iter().rev().find(|item| item.name == name)
    }

    pub fn has(&self, name: &str) -> bool {
        self.item(name).is_some()
    }

    fn value(&self, name: &str) -> Result<Option<&'a DefinitionValue>> {
        match self.item(name) {
            None => Ok(None),
            Some(item) => match &item.value {
                Some(value) => Ok(Some(value)),
                None => Err(syntax(format!("{name} requires a parameter"))),
            },
        }
    }

    /// A type.
    pub fn type_name(&self, name: &str) -> Result<Option<TypeName>> {
        Ok(match self.value(name)? {
            None => None,
            Some(DefinitionValue::Type(ty)) => Some(ty.clone()),
            // A type may be written in quotes.
            Some(DefinitionValue::Text(text)) => Some(plain_type(text)),
            Some(_) => return Err(syntax(format!("argument of {name} must be a type name"))),
        })
    }

    /// The name of a function.
    pub fn name(&self, name: &str) -> Result<Option<Name>> {
        Ok(match self.value(name)? {
            None => None,
            Some(DefinitionValue::Type(ty)) => Some(ty.name.clone()),
            Some(DefinitionValue::Text(text)) => Some(plain_type(text).name),
            Some(_) => return Err(syntax(format!("argument of {name} must be a name"))),
        })
    }

    /// An operator.
    pub fn operator(&self, name: &str) -> Result<Option<ast::Operator>> {
        let plain = |text: &str| ast::Operator {
            schema: None,
            name: text.to_owned(),
            pos: 0,
        };
        Ok(match self.value(name)? {
            None => None,
            Some(DefinitionValue::Operator(operator)) => Some(operator.clone()),
            Some(DefinitionValue::Text(text)) => Some(plain(text)),
            Some(DefinitionValue::Type(ty)) => Some(plain(&ty.name.to_string())),
            Some(_) => return Err(syntax(format!("argument of {name} must be a name"))),
        })
    }

    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        let Some(item) = self.item(name) else {
            return Ok(None);
        };
        let word = match &item.value {
            None => return Ok(Some(true)),
            Some(DefinitionValue::Number(digits)) => digits.clone(),
            Some(_) => self.word(name)?.unwrap_or_default(),
        };
        match word.as_str() {
            "true" | "on" | "1" => Ok(Some(true)),
            "false" | "off" | "0" => Ok(Some(false)),
            _ => Err(syntax(format!("{name} requires a Boolean value"))),
        }
    }

    pub fn integer(&self, name: &str) -> Result<Option<i32>> {
        match self.value(name)? {
            None => Ok(None),
            Some(DefinitionValue::Number(digits)) => match digits.parse() {
                Ok(value) => Ok(Some(value)),
                Err(_) => Err(syntax(format!("{name} requires an integer value"))),
            },
            Some(_) => Err(syntax(format!("{name} requires an integer value"))),
        }
    }

    pub fn text(&self, name: &str) -> Result<Option<&'a str>> {
        Ok(match self.value(name)? {
            None => None,
            Some(
                DefinitionValue::Text(text)
                | DefinitionValue::Number(text)
                | DefinitionValue::Word(text),
            ) => Some(text),
            Some(DefinitionValue::Type(ty)) => ty.name.parts.last().map(String::as_str),
            Some(DefinitionValue::Operator(operator)) => Some(&operator.name),
        })
    }

    /// A word, in lower case.
    pub fn word(&self, name: &str) -> Result<Option<String>> {
        Ok(self.text(name)?.map(str::to_lowercase))
    }

    /// Whether it is said to be NONE.
    pub fn is_none(&self, name: &str) -> bool {
        let value = self.item(name).and_then(|item| item.value.as_ref());
        matches!(value, Some(DefinitionValue::Word(word)) if word == "none")
    }
}

fn plain_type(text: &str) -> TypeName {
    let (name, array) = match text.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (text, false),
    };
    TypeName {
        name: Name {
            parts: vec![name.to_owned()],
            pos: 0,
        },
        modifiers: vec![],
        typmod: None,
        array,
        setof: false,
    }
}

fn syntax(message: String) -> Error {
    Error::new(state::SYNTAX_ERROR, message)
}
