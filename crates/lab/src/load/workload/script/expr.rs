//! pgbench's expressions: parsed once, evaluated for each `\set`.
//!
//! From loosest to tightest: `OR`, `AND`, `NOT`, `IS`, comparisons, bit operators, `+ -`, `* / %`,
//! unary `- ~`.

use std::collections::BTreeMap;

use super::value::{Evaluated, Operator, Value, apply};
use crate::load::random::Random;

/// The variables of one client.
pub type Variables = BTreeMap<String, Value>;

#[derive(Debug)]
pub enum Expr {
    Value(Value),
    Variable(String),
    Binary(Operator, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    IsNull(Box<Expr>),
    Is(Box<Expr>, bool),
    Case(Vec<(Expr, Expr)>, Option<Box<Expr>>),
    Call(Function, Vec<Expr>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    Abs,
    Double,
    Exp,
    Greatest,
    Int,
    Least,
    Ln,
    Mod,
    Pi,
    Power,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// Name, function, fewest and most arguments.
const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    ("abs", Function::Abs, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("mod", Function::Mod, 2, 2),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Power, 2, 2),
    ("power", Function::Power, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_exponential", Function::RandomExponential, 3, 3),
    ("random_gaussian", Function::RandomGaussian, 3, 3),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

impl Expr {
    pub fn parse(text: &str) -> Result<Expr, String> {
        let mut parser = Parser {
            tokens: tokens(text)?,
            at: 0,
        };
        let expr = parser.or()?;
        match parser.tokens.get(parser.at) {
            None => Ok(expr),
            Some(token) => Err(format!("unexpected {token}")),
        }
    }

    pub fn evaluate(&self, variables: &Variables, random: &mut Random) -> Evaluated {
        let mut of = |e: &Expr| e.evaluate(variables, random);
        match self {
            Expr::Value(value) => Ok(value.clone()),
            Expr::Variable(name) => variables
                .get(name)
                .cloned()
                .ok_or_else(|| format!("the variable {name} is not set")),
            Expr::Binary(operator, left, right) => apply(*operator, &of(left)?, &of(right)?),
            Expr::And(left, right) => Ok(Value::Bool(of(left)?.holds()? && of(right)?.holds()?)),
            Expr::Or(left, right) => Ok(Value::Bool(of(left)?.holds()? || of(right)?.holds()?)),
            Expr::Not(inner) => match of(inner)? {
                Value::Null => Ok(Value::Null),
                value => Ok(Value::Bool(!value.holds()?)),
            },
            Expr::IsNull(inner) => Ok(Value::Bool(of(inner)? == Value::Null)),
            Expr::Is(inner, wanted) => match of(inner)? {
                Value::Null => Ok(Value::Bool(false)),
                value => Ok(Value::Bool(value.holds()? == *wanted)),
            },
            Expr::Case(arms, otherwise) => {
                for (condition, result) in arms {
                    if of(condition)?.holds()? {
                        return of(result);
                    }
                }
                otherwise.as_ref().map_or(Ok(Value::Null), |e| of(e))
            }
            Expr::Call(function, arguments) => {
                let arguments: Vec<Value> = arguments.iter().map(of).collect::<Result<_, _>>()?;
                call(*function, &arguments, random)
            }
        }
    }
}

fn call(function: Function, arguments: &[Value], random: &mut Random) -> Evaluated {
    if arguments.contains(&Value::Null) {
        return Ok(Value::Null);
    }
    let int = |place: usize| arguments[place].to_int();
    let float = |place: usize| arguments[place].to_float();
    let bounds = || match (int(0)?, int(1)?) {
        (low, high) if low > high => Err(format!("empty range {low} to {high}")),
        (low, high) if high.checked_sub(low).is_none() => Err("the range is too wide".to_owned()),
        bounds => Ok(bounds),
    };
    let parameter = |least: f64| match float(2)? {
        p if p >= least => Ok(p),
        p => Err(format!("the parameter {p} is less than {least}")),
    };
    match function {
        Function::Abs => match &arguments[0] {
            Value::Int(n) => n
                .checked_abs()
                .map(Value::Int)
                .ok_or("bigint out of range".to_owned()),
            other => Ok(Value::Float(other.to_float()?.abs())),
        },
        Function::Double => Ok(Value::Float(float(0)?)),
        Function::Int => Ok(Value::Int(int(0)?)),
        Function::Exp => Ok(Value::Float(float(0)?.exp())),
        Function::Ln => Ok(Value::Float(float(0)?.ln())),
        Function::Sqrt => Ok(Value::Float(float(0)?.sqrt())),
        Function::Power => Ok(Value::Float(float(0)?.powf(float(1)?))),
        Function::Pi => Ok(Value::Float(std::f64::consts::PI)),
        Function::Mod => apply(Operator::Remainder, &arguments[0], &arguments[1]),
        Function::Greatest => best(arguments, Operator::Greater),
        Function::Least => best(arguments, Operator::Less),
        Function::Random => bounds().map(|(low, high)| Value::Int(random.within(low, high))),
        Function::RandomExponential => {
            let ((low, high), p) = (bounds()?, parameter(f64::MIN_POSITIVE)?);
            Ok(Value::Int(random.exponential_within(low, high, p)))
        }
        Function::RandomGaussian => {
            let ((low, high), p) = (bounds()?, parameter(2.0)?);
            Ok(Value::Int(random.gaussian_within(low, high, p)))
        }
        // pgbench's own bounds for the parameter: 1.001 to 1000.
        Function::RandomZipfian => {
            let ((low, high), p) = (bounds()?, parameter(1.001)?);
            Ok(Value::Int(random.zipfian_within(low, high, p.min(1000.0))))
        }
    }
}

/// The argument that compares so with all others; a float if one of them is.
fn best(arguments: &[Value], better: Operator) -> Evaluated {
    let mut best = arguments[0].clone();
    for candidate in &arguments[1..] {
        if apply(better, candidate, &best)? == Value::Bool(true) {
            best = candidate.clone();
        }
    }
    match arguments.iter().any(|a| matches!(a, Value::Float(_))) {
        true => Ok(Value::Float(best.to_float()?)),
        false => Ok(best),
    }
}

/// Signs longest first, so that `<=` is not read as `<`.
const SIGNS: &[&str] = &[
    "<>", "!=", "<=", ">=", "<<", ">>", "+", "-", "*", "/", "%", "(", ")", ",", "=", "<", ">", "&",
    "|", "#", "~",
];

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(Value),
    Variable(String),
    /// In lower case.
    Word(String),
    Sign(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Number(value) => write!(f, "{value:?}"),
            Token::Variable(name) => write!(f, ":{name}"),
            Token::Word(word) => f.write_str(word),
            Token::Sign(sign) => f.write_str(sign),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length;
        if first.is_ascii_digit() || first == '.' {
            length = number_length(rest);
            tokens.push(Token::Number(number(&rest[..length])?));
        } else if first == ':' {
            length = 1 + word_length(&rest[1..]);
            if length == 1 {
                return Err("a colon without a variable's name".to_owned());
            }
            tokens.push(Token::Variable(rest[1..length].to_owned()));
        } else if first.is_ascii_alphabetic() || first == '_' {
            length = word_length(rest);
            tokens.push(Token::Word(rest[..length].to_ascii_lowercase()));
        } else {
            let sign = SIGNS.iter().find(|s| rest.starts_with(**s));
            let sign = sign.ok_or_else(|| format!("unexpected {first:?}"))?;
            length = sign.len();
            tokens.push(Token::Sign(sign));
        }
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

pub fn word_length(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let exponent_sign =
            matches!(byte, b'+' | b'-') && at > 0 && matches!(bytes[at - 1], b'e' | b'E');
        if !byte.is_ascii_digit() && !matches!(byte, b'.' | b'e' | b'E') && !exponent_sign {
            break;
        }
        at += 1;
    }
    at
}

fn number(text: &str) -> Evaluated {
    if let Ok(n) = text.parse() {
        return Ok(Value::Int(n));
    }
    text.parse()
        .map(Value::Float)
        .map_err(|_| format!("{text} is no number"))
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

/// Loosest first, below the comparisons; operators of one line bind alike, from the left.
const LEVELS: &[&[(&str, Operator)]] = &[
    &[
        ("=", Operator::Equal),
        ("<>", Operator::NotEqual),
        ("!=", Operator::NotEqual),
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
    ],
    &[
        ("|", Operator::BitOr),
        ("#", Operator::BitXor),
        ("&", Operator::BitAnd),
        ("<<", Operator::ShiftLeft),
        (">>", Operator::ShiftRight),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[
        ("*", Operator::Multiply),
        ("/", Operator::Divide),
        ("%", Operator::Remainder),
    ],
];

impl Parser {
    fn or(&mut self) -> Result<Expr, String> {
        let mut left = self.and()?;
        while self.word("or") {
            left = Expr::Or(left.into(), self.and()?.into());
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, String> {
        let mut left = self.not()?;
        while self.word("and") {
            left = Expr::And(left.into(), self.not()?.into());
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, String> {
        match self.word("not") {
            true => Ok(Expr::Not(self.not()?.into())),
            false => self.is(),
        }
    }

    fn is(&mut self) -> Result<Expr, String> {
        let mut inner = self.binary(0)?;
        loop {
            inner = if self.word("isnull") {
                Expr::IsNull(inner.into())
            } else if self.word("notnull") {
                Expr::Not(Expr::IsNull(inner.into()).into())
            } else if self.word("is") {
                let negated = self.word("not");
                let test = if self.word("null") {
                    Expr::IsNull(inner.into())
                } else if self.word("true") {
                    Expr::Is(inner.into(), true)
                } else if self.word("false") {
                    Expr::Is(inner.into(), false)
                } else {
                    return Err("IS what?".to_owned());
                };
                if negated {
                    Expr::Not(test.into())
                } else {
                    test
                }
            } else {
                return Ok(inner);
            };
        }
    }

    fn binary(&mut self, level: usize) -> Result<Expr, String> {
        let Some(operators) = LEVELS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.sign(sign)) {
            let right = self.binary(level + 1)?;
            left = Expr::Binary(*operator, left.into(), right.into());
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, String> {
        let zero_minus = |e: Expr| {
            Expr::Binary(
                Operator::Subtract,
                Expr::Value(Value::Int(0)).into(),
                e.into(),
            )
        };
        if self.sign("-") {
            Ok(zero_minus(self.unary()?))
        } else if self.sign("+") {
            self.unary()
        } else if self.sign("~") {
            let all_ones = Expr::Value(Value::Int(-1)).into();
            Ok(Expr::Binary(
                Operator::BitXor,
                self.unary()?.into(),
                all_ones,
            ))
        } else {
            self.primary()
        }
    }

    fn primary(&mut self) -> Result<Expr, String> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Number(value)) => Ok(Expr::Value(value)),
            Some(Token::Variable(name)) => Ok(Expr::Variable(name)),
            Some(Token::Sign("(")) => {
                let inner = self.or()?;
                self.expect(")")?;
                Ok(inner)
            }
            Some(Token::Word(word)) => match word.as_str() {
                "null" => Ok(Expr::Value(Value::Null)),
                "true" => Ok(Expr::Value(Value::Bool(true))),
                "false" => Ok(Expr::Value(Value::Bool(false))),
                "case" => self.case(),
                name => self.call(name),
            },
            Some(token) => Err(format!("unexpected {token}")),
            None => Err("the expression ends too early".to_owned()),
        }
    }

    fn case(&mut self) -> Result<Expr, String> {
        let mut arms = Vec::new();
        while self.word("when") {
            let condition = self.or()?;
            if !self.word("then") {
                return Err("WHEN without THEN".to_owned());
            }
            arms.push((condition, self.or()?));
        }
        let otherwise = match self.word("else") {
            true => Some(self.or()?.into()),
            false => None,
        };
        match !arms.is_empty() && self.word("end") {
            true => Ok(Expr::Case(arms, otherwise)),
            false => Err("CASE without WHEN or END".to_owned()),
        }
    }

    fn call(&mut self, name: &str) -> Result<Expr, String> {
        let known = FUNCTIONS.iter().find(|(n, ..)| *n == name);
        let (_, function, fewest, most) =
            known.ok_or_else(|| format!("{name} is not known here"))?;
        self.expect("(")?;
        let mut arguments = Vec::new();
        if !self.sign(")") {
            arguments.push(self.or()?);
            while self.sign(",") {
                arguments.push(self.or()?);
            }
            self.expect(")")?;
        }
        match (*fewest..=*most).contains(&arguments.len()) {
            true => Ok(Expr::Call(*function, arguments)),
            false => Err(format!(
                "{name} does not take {} arguments",
                arguments.len()
            )),
        }
    }

    fn take(&mut self, wanted: impl Fn(&Token) -> bool) -> bool {
        let found = self.tokens.get(self.at).is_some_and(wanted);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, sign: &str) -> bool {
        self.take(|t| matches!(t, Token::Sign(s) if *s == sign))
    }

    fn word(&mut self, word: &str) -> bool {
        self.take(|t| matches!(t, Token::Word(w) if w == word))
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        match self.sign(sign) {
            true => Ok(()),
            false => Err(format!("expected {sign}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(text: &str) -> Evaluated {
        let variables = [
            ("x".to_owned(), Value::Int(7)),
            ("n".to_owned(), Value::Null),
        ];
        Expr::parse(text)?.evaluate(&variables.into(), &mut Random::of(1, 1))
    }

    #[test]
    fn values() {
        for (text, expected) in [
            ("1 + 2 * 3", Value::Int(7)),
            ("(1 + 2) * 3 % 4", Value::Int(1)),
            ("10 - 2 - 3", Value::Int(5)),
            ("-:x / 2", Value::Int(-3)),
            ("7 / 2.0", Value::Float(3.5)),
            ("1e3 + .5", Value::Float(1000.5)),
            ("~5 & 7", Value::Int(2)),
            ("1 << 4 | 1", Value::Int(17)),
            ("greatest(1, :x, 2.5)", Value::Float(7.0)),
            ("least(3, 1, 2)", Value::Int(1)),
            ("abs(-4) + mod(9, 4)", Value::Int(5)),
            ("int(double(5) / 2)", Value::Int(2)),
            ("power(2, 10)", Value::Float(1024.0)),
            ("1 < 2 and not 3 <> 3", Value::Bool(true)),
            ("1 = 2 or :x >= 7", Value::Bool(true)),
            (
                "case when :x < 5 then 1 when :x < 10 then 2 else 3 end",
                Value::Int(2),
            ),
            ("case when false then 1 end", Value::Null),
            ("1 + :n", Value::Null),
            (":n is null", Value::Bool(true)),
            (":x is not null", Value::Bool(true)),
            ("true is false", Value::Bool(false)),
        ] {
            assert_eq!(evaluate(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors() {
        for text in [
            "",
            "1 +",
            "(1",
            "1 2",
            ":",
            ":y",
            "1 / 0",
            "1 % 0",
            "9223372036854775807 + 1",
            "random(2, 1)",
            "random(1)",
            "random_gaussian(1, 10, 1.5)",
            "hash(1)",
            "1 ? 2",
            "case else 1 end",
        ] {
            assert!(evaluate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn random_numbers() {
        let expr = Expr::parse("random(1, 6) + random_zipfian(0, 9, 1.1) * 10").expect("valid");
        let mut random = Random::of(1, 2);
        for _ in 0..1000 {
            let value = expr.evaluate(&Variables::new(), &mut random);
            let value = value.and_then(|v| v.to_int()).expect("an integer");
            assert!((1..=6).contains(&(value % 10)) && value < 100);
        }
    }
}
