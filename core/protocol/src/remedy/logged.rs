//! A remedy in a Log.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Remedy;

/// A remedy as a Log contains it: JSON that is copied byte for byte, so that a remedy of a newer build survives.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoggedRemedy(Box<RawValue>);

impl LoggedRemedy {
    /// Returns the remedy; `None` for one that only a newer build knows.
    pub fn known(&self) -> Option<Remedy> {
        serde_json::from_str(self.0.get()).ok()
    }
}

impl From<&Remedy> for LoggedRemedy {
    fn from(remedy: &Remedy) -> LoggedRemedy {
        LoggedRemedy(serde_json::value::to_raw_value(remedy).expect("a remedy has only text keys"))
    }
}

impl PartialEq for LoggedRemedy {
    fn eq(&self, other: &LoggedRemedy) -> bool {
        self.0.get() == other.0.get()
    }
}

/// The schema of remedies that this build writes. A newer build may write other objects.
impl schemars::JsonSchema for LoggedRemedy {
    fn schema_name() -> Cow<'static, str> {
        "LoggedRemedy".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        generator.subschema_for::<Remedy>()
    }
}
