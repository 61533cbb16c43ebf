//! The grammar of statements and expressions.

use super::{Refusal, Value};

#[derive(Debug)]
pub(super) enum Statement {
    /// The condition as text and as a tree, and the message.
    Assert(String, Expr, Option<Expr>),
    Print(Vec<Expr>),
    Assign(String, Expr),
}

#[derive(Debug)]
pub(super) enum Expr {
    Value(Value),
    Name(String),
    Tuple(Vec<Expr>),
    Not(Box<Expr>),
    Minus(Box<Expr>),
    Inverse(Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Binary(&'static str, Box<Expr>, Box<Expr>),
    Compare(Box<Expr>, Vec<(&'static str, Expr)>),
    Call(String, Vec<Expr>),
}

/// Maximum nesting, and maximum number of statements.
const DEPTH_MAX: u32 = 32;
const STATEMENTS_MAX: usize = 1000;

/// Binary operators from the loosest to the tightest, the longer ones of each level first.
const LEVELS: &[&[&str]] =
    &[&["|"], &["^"], &["&"], &["<<", ">>"], &["+", "-"], &["//", "*", "/", "%"]];
const COMPARISONS: &[&str] = &["==", "!=", "<=", ">=", "<", ">"];

/// The statements of `code`: one a line, or separated by `;`. Brackets and a backslash continue a line.
pub(super) fn statements(code: &str) -> Result<Vec<Statement>, Refusal> {
    let mut all = Vec::new();
    for line in lines(code) {
        if all.len() >= STATEMENTS_MAX {
            return Err(Refusal::Unsupported(format!("more than {STATEMENTS_MAX} statements")));
        }
        all.push(statement(&line)?);
    }
    Ok(all)
}

fn lines(code: &str) -> Vec<String> {
    let (mut lines, mut line) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0u32, None);
    let mut chars = code.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(q), _) => {
                if q == c {
                    quote = None;
                }
                line.push(c);
            }
            (None, '\\') if chars.peek() == Some(&'\n') => {
                chars.next();
                line.push(' ');
            }
            (None, '#') => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, ';') | (None, '\n') if depth == 0 || c == ';' => {
                lines.push(core::mem::take(&mut line));
            }
            _ => {
                match c {
                    '(' | '[' => depth += 1,
                    ')' | ']' => depth = depth.saturating_sub(1),
                    '"' | '\'' => quote = Some(c),
                    _ => {}
                }
                line.push(if c == '\n' { ' ' } else { c });
            }
        }
    }
    lines.push(line);
    lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

fn statement(line: &str) -> Result<Statement, Refusal> {
    let mut text = Text { rest: line, depth: 0 };
    if text.word("assert") {
        let from = text.rest;
        let condition = text.or()?;
        let source = from[..from.len() - text.rest.len()].trim().to_owned();
        let message = if text.eat(",") { Some(text.or()?) } else { None };
        text.end()?;
        return Ok(Statement::Assert(source, condition, message));
    }
    if text.word("print") {
        let mut values = Vec::new();
        if !text.rest.trim().is_empty() {
            match text.tuple()? {
                Expr::Tuple(items) => values = items,
                one => values.push(one),
            }
        }
        text.end()?;
        return Ok(Statement::Print(values));
    }
    let before = text.rest;
    if let Some(name) = text.name()
        && text.eat("=")
        && !text.rest.starts_with('=')
    {
        let value = text.tuple()?;
        text.end()?;
        return Ok(Statement::Assign(name.to_owned(), value));
    }
    let shown: String = before.chars().take(40).collect();
    Err(Refusal::Unsupported(format!("the Python statement `{shown}`")))
}

struct Text<'a> {
    rest: &'a str,
    depth: u32,
}

impl<'a> Text<'a> {
    fn trim(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, prefix: &str) -> bool {
        self.trim();
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Skips a keyword.
    fn word(&mut self, keyword: &str) -> bool {
        self.trim();
        match self.rest.strip_prefix(keyword) {
            Some(rest) if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn take(&mut self, is: impl Fn(char) -> bool) -> &'a str {
        let (taken, rest) =
            self.rest.split_at(self.rest.find(|c| !is(c)).unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    fn name(&mut self) -> Option<&'a str> {
        self.trim();
        self.rest
            .starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            .then(|| self.take(|c| c.is_ascii_alphanumeric() || c == '_'))
    }

    fn wrong(&self) -> Refusal {
        let shown: String = self.rest.trim().chars().take(20).collect();
        let got = if shown.is_empty() { "the end".to_owned() } else { format!("`{shown}`") };
        Refusal::Wrong(format!("expected a value or an operator, got {got}"))
    }

    fn end(&self) -> Result<(), Refusal> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(self.wrong()) }
    }

    /// Values separated by commas, or one value.
    fn tuple(&mut self) -> Result<Expr, Refusal> {
        let first = self.or()?;
        let mut items = vec![first];
        while self.eat(",") {
            if items.len() >= 64 || self.rest.trim().is_empty() {
                return Err(self.wrong());
            }
            items.push(self.or()?);
        }
        Ok(if items.len() == 1 { items.remove(0) } else { Expr::Tuple(items) })
    }

    fn or(&mut self) -> Result<Expr, Refusal> {
        let mut left = self.and()?;
        while self.word("or") {
            left = Expr::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Refusal> {
        let mut left = self.not()?;
        while self.word("and") {
            left = Expr::And(Box::new(left), Box::new(self.not()?));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Refusal> {
        if self.word("not") {
            return self.nested(|text| Ok(Expr::Not(Box::new(text.not()?))));
        }
        let first = self.level(0)?;
        let mut rest = Vec::new();
        loop {
            let symbol = COMPARISONS.iter().find(|op| self.eat(op)).copied();
            let op = match symbol {
                Some(op) => op,
                None if self.word("in") => "in",
                None if self.word("is") => "is",
                None => {
                    let before = self.rest;
                    if self.word("not") && self.word("in") {
                        "not in"
                    } else {
                        self.rest = before;
                        break;
                    }
                }
            };
            rest.push((op, self.level(0)?));
        }
        Ok(if rest.is_empty() { first } else { Expr::Compare(Box::new(first), rest) })
    }

    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T, Refusal>) -> Result<T, Refusal> {
        if self.depth >= DEPTH_MAX {
            return Err(Refusal::Unsupported("an expression nested so deep".to_owned()));
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn level(&mut self, level: usize) -> Result<Expr, Refusal> {
        let Some(ops) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some(op) = ops.iter().find(|op| self.eat(op)) {
            left = Expr::Binary(op, Box::new(left), Box::new(self.level(level + 1)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, Refusal> {
        if self.eat("-") {
            return self.nested(|text| Ok(Expr::Minus(Box::new(text.unary()?))));
        }
        if self.eat("~") {
            return self.nested(|text| Ok(Expr::Inverse(Box::new(text.unary()?))));
        }
        self.atom()
    }

    fn atom(&mut self) -> Result<Expr, Refusal> {
        self.trim();
        if let Some(close) =
            [("(", ")"), ("[", "]")].iter().find_map(|(o, c)| self.eat(o).then_some(c))
        {
            return self.nested(|text| {
                if text.eat(close) {
                    return Ok(Expr::Tuple(Vec::new()));
                }
                let inner = text.tuple()?;
                if text.eat(close) { Ok(inner) } else { Err(text.wrong()) }
            });
        }
        for quote in ['"', '\''] {
            if self.rest.starts_with(quote) {
                let rest = &self.rest[1..];
                let end = rest.find(quote).ok_or_else(|| self.wrong())?;
                self.rest = &rest[end + 1..];
                return Ok(Expr::Value(Value::Text(rest[..end].to_owned())));
            }
        }
        if self.rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return self.number();
        }
        let Some(name) = self.name() else { return Err(self.wrong()) };
        if !self.eat("(") {
            return Ok(Expr::Name(name.to_owned()));
        }
        let name = name.to_owned();
        self.nested(|text| {
            if text.eat(")") {
                return Ok(Expr::Call(name, Vec::new()));
            }
            let args = match text.tuple()? {
                Expr::Tuple(items) => items,
                one => vec![one],
            };
            if text.eat(")") { Ok(Expr::Call(name, args)) } else { Err(text.wrong()) }
        })
    }

    fn number(&mut self) -> Result<Expr, Refusal> {
        let before = self.rest;
        if let Some(rest) = self.rest.strip_prefix("0x") {
            self.rest = rest;
            let digits = self.take(|c| c.is_ascii_hexdigit());
            let number = i64::from_str_radix(digits, 16);
            return number.map(|n| Expr::Value(Value::Int(n))).map_err(|_| self.wrong());
        }
        let digits = self.take(|c| c.is_ascii_digit() || c == '.');
        let number = match digits.contains('.') {
            true => digits.parse().map(Value::Float).ok(),
            false => digits.parse().map(Value::Int).ok(),
        };
        let wrong = Text { rest: before, depth: 0 };
        number.map(Expr::Value).ok_or_else(|| wrong.wrong())
    }
}
