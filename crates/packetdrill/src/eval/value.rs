//! Values and their operations.

use core::fmt;

use super::Refusal;

/// A value of a script's code.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(String),
    /// Several values.
    Tuple(Vec<Value>),
}

fn wrong(message: impl Into<String>) -> Refusal {
    Refusal::Wrong(message.into())
}

impl Value {
    /// Truth value as in Python.
    pub(super) fn truth(&self) -> bool {
        match self {
            Value::Int(n) => *n != 0,
            Value::Float(x) => *x != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Tuple(items) => !items.is_empty(),
        }
    }

    fn float(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(x) => Some(*x),
            _ => None,
        }
    }

    pub(super) fn compares(&self, op: &str, other: &Value) -> Result<bool, Refusal> {
        if op == "in" || op == "not in" {
            let Value::Tuple(items) = other else { return Err(wrong("`in` needs several values")) };
            let mut found = false;
            for item in items {
                found |= self.compares("==", item)?;
            }
            return Ok(found == (op == "in"));
        }
        let order = match (self, other) {
            (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
            (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
            (Value::Tuple(a), Value::Tuple(b)) if op == "==" || op == "!=" => {
                let mut same = a.len() == b.len();
                for (a, b) in a.iter().zip(b) {
                    same &= a.compares("==", b)?;
                }
                return Ok(same == (op == "=="));
            }
            _ => match (self.float(), other.float()) {
                (Some(a), Some(b)) => a.partial_cmp(&b),
                _ => return Err(wrong(format!("{self} and {other} cannot be compared"))),
            },
        };
        Ok(match op {
            "==" | "is" => order.is_some_and(|o| o.is_eq()),
            "!=" => order.is_none_or(|o| o.is_ne()),
            "<" => order.is_some_and(|o| o.is_lt()),
            "<=" => order.is_some_and(|o| o.is_le()),
            ">" => order.is_some_and(|o| o.is_gt()),
            _ => order.is_some_and(|o| o.is_ge()),
        })
    }

    pub(super) fn binary(&self, op: &str, other: &Value) -> Result<Value, Refusal> {
        if let (Value::Text(text), "%") = (self, op) {
            // A format: the text and its values suffice.
            return Ok(Value::Text(format!("{text} {other}")));
        }
        if let (Value::Int(a), Value::Int(b)) = (self, other) {
            return integers(*a, op, *b);
        }
        let (Some(a), Some(b)) = (self.float(), other.float()) else {
            return Err(wrong(format!("`{op}` of {self} and {other}")));
        };
        Ok(Value::Float(match op {
            "+" => a + b,
            "-" => a - b,
            "*" => a * b,
            "/" if b != 0.0 => a / b,
            _ => return Err(wrong(format!("`{op}` of {self} and {other}"))),
        }))
    }
}

fn integers(a: i64, op: &str, b: i64) -> Result<Value, Refusal> {
    let shift = || u32::try_from(b).ok().filter(|b| *b < 63);
    let number = match op {
        "+" => a.checked_add(b),
        "-" => a.checked_sub(b),
        "*" => a.checked_mul(b),
        "/" if b != 0 => return Ok(Value::Float(a as f64 / b as f64)),
        "//" if b != 0 => a.checked_div_euclid(b),
        "%" if b != 0 => a.checked_rem_euclid(b),
        "&" => Some(a & b),
        "|" => Some(a | b),
        "^" => Some(a ^ b),
        "<<" => shift().and_then(|b| a.checked_mul(1 << b)),
        ">>" => shift().map(|b| a >> b),
        _ => None,
    };
    number.map(Value::Int).ok_or_else(|| wrong(format!("`{a} {op} {b}` has no value")))
}

/// The functions that code may call.
pub(super) fn call(name: &str, args: &[Value]) -> Result<Value, Refusal> {
    let mut items = args.iter();
    let best = |op: &str| {
        let (first, rest) =
            args.split_first().ok_or_else(|| wrong(format!("`{name}` of nothing")))?;
        rest.iter().try_fold(first.clone(), |best, item| {
            Ok(if item.compares(op, &best)? { item.clone() } else { best })
        })
    };
    match (name, items.next(), items.next()) {
        ("abs", Some(value), None) => match value.compares("<", &Value::Int(0))? {
            true => Value::Int(0).binary("-", value),
            false => Ok(value.clone()),
        },
        ("int", Some(Value::Float(x)), None) => Ok(Value::Int(*x as i64)),
        ("int", Some(Value::Int(n)), None) => Ok(Value::Int(*n)),
        ("float", Some(value), None) => {
            value.float().map(Value::Float).ok_or_else(|| wrong("`float` of a text"))
        }
        ("min", ..) => best("<"),
        ("max", ..) => best(">"),
        ("str" | "repr", Some(value), None) => Ok(Value::Text(value.to_string())),
        _ => Err(Refusal::Unsupported(format!("the function `{name}` in an assertion"))),
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => n.fmt(f),
            Value::Float(x) => x.fmt(f),
            Value::Text(text) => f.write_str(text),
            Value::Tuple(items) => {
                let items: Vec<String> = items.iter().map(|item| item.to_string()).collect();
                write!(f, "({})", items.join(", "))
            }
        }
    }
}
