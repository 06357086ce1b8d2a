//! JSON in which no object names a field twice. Readers disagree which of two counts, so arguments with two say nothing certain.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Any JSON value whose objects have each field once.
struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Once, D::Error> {
        deserializer.deserialize_any(Once)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Once;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value whose objects have each field once")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Once, A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = fields.next_key::<String>()? {
            if !seen.insert(name) {
                return Err(A::Error::custom("a field occurs twice"));
            }
            fields.next_value::<Once>()?;
        }
        Ok(Once)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Once, A::Error> {
        while items.next_element::<Once>()?.is_some() {}
        Ok(Once)
    }

    fn visit_unit<E: Error>(self) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Once, E> {
        Ok(Once)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Once, E> {
        Ok(Once)
    }
}

/// Whether each object of this JSON text has each of its fields once.
pub(super) fn has_each_field_once(json: &str) -> bool {
    serde_json::from_str::<Once>(json).is_ok()
}

#[cfg(test)]
mod tests {
    use super::has_each_field_once;

    #[test]
    fn a_field_that_stands_there_twice_is_found_at_any_depth() {
        for json in [r#"{"a": 1, "b": [{"c": -1.5, "d": null}, "e", true], "f": {"a": 2}}"#, "{}", "[1, 1]"] {
            assert!(has_each_field_once(json), "{json}");
        }
        for json in [r#"{"a": 1, "a": 1}"#, r#"{"a": [{"b": 1, "b": 2}]}"#, r#"{"a": 1, "\u0061": 2}"#] {
            assert!(!has_each_field_once(json), "{json}");
        }
    }
}
