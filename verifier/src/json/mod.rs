//! A JSON value model that keeps what the hashes cover, and the four canonical encoders.
//!
//! Floats are IEEE doubles, integers are exact, strings may hold lone surrogates, object keys
//! are unique and sorted by code point. `serde_json` is not used for anything that is hashed:
//! feature unification can change its bytes.
//!
//! Example: `{"b":1E5,"a":"é"}` is `{"a":"\u00e9","b":100000.0}` in [`Encoding::Ascii`].
//!
//! Sources: RFC 8259; CPython 3.13 `json` (the judge of the first three encoders); RFC 8785.

mod encode;
mod float;
mod number;
mod parse;
mod plain;
pub(crate) mod prove;
mod text;

use alloc::string::String;
use alloc::vec::Vec;

pub use encode::{Encoding, LoneSurrogate, ascii, ascii_indented, encode, push_ascii, push_ascii_string};
pub use number::{Int, MAX_INT_DIGITS};
pub(crate) use parse::excerpt;
pub use parse::{Limit, MAX_DEPTH, ParseError, begins_with_object, parse};
pub use text::Text;

/// Any JSON value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number token without `.`, `e` or `E`.
    Int(Int),
    /// Any other number token; always finite.
    Float(f64),
    /// A string.
    String(Text),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
}

impl Value {
    /// The object, if it is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The string, if it is one and has no lone surrogate.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => text.as_str(),
            _ => None,
        }
    }

    /// The integer, if it is one of 0 to 2⁶⁴-1.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Int(int) => int.to_u64(),
            _ => None,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Int(Int::from(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(Text::from(value))
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(Text::from(value))
    }
}

impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Value {
        Value::Array(value)
    }
}

impl From<Object> for Value {
    fn from(value: Object) -> Value {
        Value::Object(value)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

/// An object: unique keys, in code point order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Object(Vec<(Text, Value)>);

impl Object {
    /// An object of the given members; a key given twice keeps its last value.
    pub fn of<'a>(members: impl IntoIterator<Item = (&'a str, Value)>) -> Object {
        Object::of_members(&mut members.into_iter())
    }

    /// Apart, so that there is one copy and not one for each number of members.
    fn of_members(members: &mut dyn Iterator<Item = (&str, Value)>) -> Object {
        let mut object = Object::default();
        for (key, value) in members {
            object.insert(Text::from(key), value);
        }
        object
    }

    pub(crate) fn from_sorted(members: Vec<(Text, Value)>) -> Object {
        debug_assert!(members.is_sorted_by(|(left, _), (right, _)| left < right));
        Object(members)
    }

    /// Sets a member, and gives back the value it had.
    pub fn insert(&mut self, key: Text, value: Value) -> Option<Value> {
        match self.find(key.as_wtf8()) {
            Ok(index) => Some(core::mem::replace(&mut self.0[index].1, value)),
            Err(index) => {
                self.0.insert(index, (key, value));
                None
            }
        }
    }

    /// Takes a member out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.find(key.as_bytes()).ok().map(|index| self.0.remove(index).1)
    }

    /// The value of a member.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.find(key.as_bytes()).ok().map(|index| &self.0[index].1)
    }

    /// The members in code point order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Text, &Value)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// How many members there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no member.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.0.binary_search_by(|(other, _)| other.as_wtf8().cmp(key))
    }
}

impl IntoIterator for Object {
    type Item = (Text, Value);
    type IntoIter = alloc::vec::IntoIter<(Text, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
