//! Conditions: `steps.list.output.count > 3 and not (params.fast)`. Every expression has a value, whatever the paths lead to.

use serde_json::Value;

use super::template::{Path, Scope};

/// The longest expression, bytes.
const MAX_BYTES: usize = 1_000;
/// The deepest nesting.
const MAX_DEPTH: usize = 32;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Value(Value),
    Path(Path),
    Len(Box<Expression>),
    Not(Box<Expression>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    Compare(Comparison, Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    More,
    In,
}

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Expression, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the expression is longer than {MAX_BYTES} bytes"));
        }
        let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
        let whole = parser.or()?;
        match parser.peek() {
            None => Ok(whole),
            Some(token) => Err(format!("`{}` does not belong there", token.shown())),
        }
    }

    /// Whether it holds. A missing path is empty, and of two values that cannot be compared neither is less.
    pub fn holds(&self, values: &Scope<'_>) -> bool {
        truth(&self.value(values))
    }

    fn value(&self, values: &Scope<'_>) -> Value {
        match self {
            Expression::Value(value) => value.clone(),
            Expression::Path(path) => values.find(path).map_or(Value::Null, std::borrow::Cow::into_owned),
            Expression::Len(it) => Value::from(match it.value(values) {
                Value::String(text) => text.chars().count(),
                Value::Array(list) => list.len(),
                Value::Object(map) => map.len(),
                Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            }),
            Expression::Not(it) => Value::from(!it.holds(values)),
            Expression::And(a, b) => Value::from(a.holds(values) && b.holds(values)),
            Expression::Or(a, b) => Value::from(a.holds(values) || b.holds(values)),
            Expression::Compare(how, a, b) => Value::from(compare(*how, &a.value(values), &b.value(values))),
        }
    }

    pub fn paths(&self) -> Vec<&Path> {
        match self {
            Expression::Value(_) => Vec::new(),
            Expression::Path(path) => vec![path],
            Expression::Len(it) | Expression::Not(it) => it.paths(),
            Expression::And(a, b) | Expression::Or(a, b) | Expression::Compare(_, a, b) => {
                a.paths().into_iter().chain(b.paths()).collect()
            }
        }
    }

    /// The same expression with other leaves in place of its paths.
    pub(super) fn with_paths(self, leaf: &mut impl FnMut(Path) -> Result<Expression, String>) -> Result<Self, String> {
        let mut inner = |it: Box<Expression>| it.with_paths(leaf).map(Box::new);
        Ok(match self {
            Expression::Value(value) => Expression::Value(value),
            Expression::Path(path) => return leaf(path),
            Expression::Len(it) => Expression::Len(inner(it)?),
            Expression::Not(it) => Expression::Not(inner(it)?),
            Expression::And(a, b) => Expression::And(inner(a)?, inner(b)?),
            Expression::Or(a, b) => Expression::Or(inner(a)?, inner(b)?),
            Expression::Compare(how, a, b) => Expression::Compare(how, inner(a)?, inner(b)?),
        })
    }
}

fn truth(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::Number(it) => it.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

fn compare(how: Comparison, a: &Value, b: &Value) -> bool {
    let ordered = match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => a.as_f64().zip(b.as_f64()).and_then(|(a, b)| a.partial_cmp(&b)),
    };
    let is_equal = || ordered.map_or_else(|| a == b, std::cmp::Ordering::is_eq);
    match how {
        Comparison::Equal => is_equal(),
        Comparison::Unequal => !is_equal(),
        Comparison::Less => ordered.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::More => ordered.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::In => match (a, b) {
            (Value::String(a), Value::String(b)) => b.contains(a.as_str()),
            (Value::String(a), Value::Object(b)) => b.contains_key(a),
            (a, Value::Array(b)) => b.iter().any(|it| compare(Comparison::Equal, a, it)),
            _ => false,
        },
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Value(Value),
    Word(String),
    Symbol(&'static str),
}

impl Token {
    fn shown(&self) -> String {
        match self {
            Token::Value(value) => value.to_string(),
            Token::Word(word) => word.clone(),
            Token::Symbol(symbol) => (*symbol).to_owned(),
        }
    }
}

const SYMBOLS: [&str; 8] = ["==", "!=", "<", ">", "(", ")", "[", "]"];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut all = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let taken = if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            all.push(Token::Symbol(symbol));
            symbol.len()
        } else if first == ',' {
            all.push(Token::Symbol(","));
            1
        } else if first == '"' || first == '\'' {
            let end = rest[1..].find(first).ok_or_else(|| format!("the text after {first} never ends"))?;
            all.push(Token::Value(Value::from(&rest[1..=end])));
            end + 2
        } else {
            let is_of_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
            let len = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            if len == 0 {
                return Err(format!("`{}` is not known here; use == != < > in and or not len()", first.escape_debug()));
            }
            all.push(word(&rest[..len]));
            len
        };
        rest = rest[taken..].trim_start();
    }
    Ok(all)
}

fn word(text: &str) -> Token {
    match text {
        "true" => Token::Value(Value::from(true)),
        "false" => Token::Value(Value::from(false)),
        "null" => Token::Value(Value::Null),
        "and" => Token::Symbol("and"),
        "or" => Token::Symbol("or"),
        "not" => Token::Symbol("not"),
        "in" => Token::Symbol("in"),
        "len" => Token::Symbol("len"),
        _ => match text.parse::<i64>() {
            Ok(number) => Token::Value(Value::from(number)),
            Err(_) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
                    Token::Value(Value::from(number))
                }
                Ok(_) | Err(_) => Token::Word(text.to_owned()),
            },
        },
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn takes(&mut self, symbol: &'static str) -> bool {
        let found = self.peek() == Some(&Token::Symbol(symbol));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), String> {
        if self.takes(symbol) { Ok(()) } else { Err(format!("`{symbol}` is missing")) }
    }

    fn or(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("the expression is nested deeper than {MAX_DEPTH}"));
        }
        let mut left = self.and()?;
        while self.takes("or") {
            left = Expression::Or(Box::new(left), Box::new(self.and()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expression, String> {
        let mut left = self.not()?;
        while self.takes("and") {
            left = Expression::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expression, String> {
        let mut times = 0;
        while self.takes("not") {
            times += 1;
        }
        let inner = self.comparison()?;
        // Two of them cancel out, except that the value becomes a truth value.
        let negated = Expression::Not(Box::new(inner.clone()));
        Ok(match times {
            0 => inner,
            n if n % 2 == 1 => negated,
            _ => Expression::Not(Box::new(negated)),
        })
    }

    fn comparison(&mut self) -> Result<Expression, String> {
        let left = self.operand()?;
        let how = match self.peek() {
            Some(Token::Symbol("==")) => Comparison::Equal,
            Some(Token::Symbol("!=")) => Comparison::Unequal,
            Some(Token::Symbol("<")) => Comparison::Less,
            Some(Token::Symbol(">")) => Comparison::More,
            Some(Token::Symbol("in")) => Comparison::In,
            _ => return Ok(left),
        };
        self.at += 1;
        Ok(Expression::Compare(how, Box::new(left), Box::new(self.operand()?)))
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let Some(token) = self.peek().cloned() else { return Err("a value is missing at the end".to_owned()) };
        self.at += 1;
        match token {
            Token::Value(value) => Ok(Expression::Value(value)),
            Token::Word(word) => Path::parse(&word).map(Expression::Path),
            Token::Symbol("(") => {
                let inner = self.or()?;
                self.expect(")")?;
                Ok(inner)
            }
            Token::Symbol("len") => {
                self.expect("(")?;
                let inner = self.or()?;
                self.expect(")")?;
                Ok(Expression::Len(Box::new(inner)))
            }
            Token::Symbol("[") => {
                let mut list = Vec::new();
                while !self.takes("]") {
                    match self.peek().cloned() {
                        Some(Token::Value(value)) => list.push(value),
                        _ => return Err("a list in an expression has only texts, numbers and truth values".to_owned()),
                    }
                    self.at += 1;
                    if !self.takes(",") && self.peek() != Some(&Token::Symbol("]")) {
                        return Err("`,` or `]` is missing".to_owned());
                    }
                }
                Ok(Expression::Value(Value::from(list)))
            }
            Token::Symbol(symbol) => Err(format!("`{symbol}` does not belong there")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_expression_has_a_value() {
        let base =
            json!({ "params": { "n": 3, "t": "abc", "list": ["a", "b"] }, "steps": { "a": { "status": "failed" } } });
        let values = Scope { base: &base, item: None, last: None, follows: None };
        let holds = |text: &str| Expression::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).holds(&values);
        for text in [
            "params.n == 3",
            "params.n > 2 and params.n < 4",
            "not params.gone",
            "'b' in params.list",
            "\"bc\" in params.t",
            "len(params.list) == 2",
            "steps.a.status in ['failed', 'held']",
            "params.n == 1 or (params.n == 3 and not (params.t == 'x'))",
            "params.gone == null",
            "not not params.n",
        ] {
            assert!(holds(text), "{text}");
        }
        for text in ["params.t > 2", "params.list < 3", "params.n in params.n", "params.gone.deeper", "params.n != 3"] {
            assert!(!holds(text), "{text}");
        }
        for text in ["", "params.n ==", "(params.n", "a b", "params.n = 3", "system('x')", "not", "[params.n]", "1..2"]
        {
            assert!(Expression::parse(text).is_err(), "{text}");
        }
        let deep = format!("{}1{}", "(".repeat(400), ")".repeat(400));
        assert!(Expression::parse(&deep).expect_err("too deep").contains("nested"));
    }
}
