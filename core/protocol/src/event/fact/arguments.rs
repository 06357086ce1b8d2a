//! The arguments of a call.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// The arguments of a call, a JSON value as compact text. As a tree of values, one argument takes 700 bytes of memory, and a
/// Session keeps its calls.
#[derive(Clone)]
pub struct Arguments(Box<RawValue>);

impl Arguments {
    /// The arguments as a tree of values.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.text()).expect("it was written from a value")
    }

    /// The arguments as compact JSON.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Whether they are what a tool takes: an object.
    pub fn is_object(&self) -> bool {
        self.text().starts_with('{')
    }
}

impl From<&Value> for Arguments {
    fn from(value: &Value) -> Arguments {
        Arguments(to_raw_value(value).expect("a value can be written"))
    }
}

impl From<Value> for Arguments {
    fn from(value: Value) -> Arguments {
        Arguments::from(&value)
    }
}

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments::from(Value::Null)
    }
}

impl PartialEq for Arguments {
    fn eq(&self, other: &Arguments) -> bool {
        self.text() == other.text()
    }
}

impl fmt::Debug for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Arguments, D::Error> {
        Value::deserialize(deserializer).map(Arguments::from)
    }
}

impl JsonSchema for Arguments {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        Value::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Value::json_schema(generator)
    }
}
