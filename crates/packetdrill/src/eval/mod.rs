//! A small evaluator of the statements in `%{ ... }%`.
//!
//! Scripts write them in Python over the names of `tcp_info`. Supported are `assert`, `print`, assignments,
//! numbers, texts, tuples, comparisons (chained as in Python), `and`, `or`, `not`, `in`, arithmetic on
//! integers and floats, bit operations, and the functions `abs`, `min`, `max`, `int` and `float`. Everything
//! else is rejected by name.

mod parse;
mod value;

use std::collections::BTreeMap;

use parse::{Expr, Statement};
pub use value::Value;

/// Why code fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// An assertion is false: its text and the values of its message.
    False(String),
    /// The code is wrong.
    Wrong(String),
    /// The code uses a name or a statement that is not supported.
    Unsupported(String),
}

/// Evaluates `code`. Names unknown to `lookup` are constants of the socket layer or variables of the code.
/// Returns the printed lines.
///
/// # Errors
///
/// The first failed assertion, and everything that cannot be evaluated.
pub fn run(
    code: &str,
    lookup: &dyn Fn(&str) -> Option<i64>,
    variables: &mut BTreeMap<String, Value>,
) -> Result<Vec<String>, Refusal> {
    let mut printed = Vec::new();
    for statement in parse::statements(code)? {
        let scope = Scope { lookup, variables };
        match statement {
            Statement::Assert(text, condition, message) => {
                if !scope.value(&condition)?.truth() {
                    let actual = message.map(|m| scope.value(&m)).transpose()?;
                    let actual = actual.map_or(String::new(), |value| format!(", got {value}"));
                    return Err(Refusal::False(format!("expected {text}{actual}")));
                }
            }
            Statement::Print(values) => {
                let values =
                    values.iter().map(|v| scope.value(v)).collect::<Result<Vec<_>, _>>()?;
                let words: Vec<String> = values.iter().map(|v| v.to_string()).collect();
                printed.push(words.join(" "));
            }
            Statement::Assign(name, value) => {
                let value = scope.value(&value)?;
                if variables.len() >= 256 {
                    return Err(Refusal::Unsupported("more than 256 variables".to_owned()));
                }
                variables.insert(name, value);
            }
        }
    }
    Ok(printed)
}

struct Scope<'a> {
    lookup: &'a dyn Fn(&str) -> Option<i64>,
    variables: &'a BTreeMap<String, Value>,
}

impl Scope<'_> {
    fn value(&self, expr: &Expr) -> Result<Value, Refusal> {
        Ok(match expr {
            Expr::Value(value) => value.clone(),
            Expr::Name(name) => self.name(name)?,
            Expr::Tuple(items) => {
                Value::Tuple(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)
            }
            Expr::Not(inner) => Value::Int(i64::from(!self.value(inner)?.truth())),
            Expr::Minus(inner) => Value::Int(0).binary("-", &self.value(inner)?)?,
            Expr::Inverse(inner) => Value::Int(-1).binary("^", &self.value(inner)?)?,
            Expr::And(left, right) => {
                let left = self.value(left)?;
                if left.truth() { self.value(right)? } else { left }
            }
            Expr::Or(left, right) => {
                let left = self.value(left)?;
                if left.truth() { left } else { self.value(right)? }
            }
            Expr::Binary(op, left, right) => self.value(left)?.binary(op, &self.value(right)?)?,
            Expr::Compare(first, rest) => {
                let mut left = self.value(first)?;
                for (op, right) in rest {
                    let right = self.value(right)?;
                    if !left.compares(op, &right)? {
                        return Ok(Value::Int(0));
                    }
                    left = right;
                }
                Value::Int(1)
            }
            Expr::Call(name, args) => {
                let args = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>, _>>()?;
                value::call(name, &args)?
            }
        })
    }

    fn name(&self, name: &str) -> Result<Value, Refusal> {
        if let Some(value) = self.variables.get(name) {
            return Ok(value.clone());
        }
        (self.lookup)(name)
            .or_else(|| crate::symbol(name))
            .map(Value::Int)
            .ok_or_else(|| Refusal::Unsupported(format!("the name `{name}` in an assertion")))
    }
}

#[cfg(test)]
mod tests;
