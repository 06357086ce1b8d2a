//! Marks on Entries.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A change of an Entry's name, of its pin, or of how much of it requests have; only the changed one is present.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// The Entry.
    pub seq: u64,
    /// The name; empty removes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Whether the Entry is pinned. A compaction keeps pinned Entries word for word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Whether requests have a short note in place of the Entry's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<bool>,
    /// The bytes of a result's, a call's or a message's text that requests have, because all of it does not fit into the
    /// window of the model or into a request to its server. pixir sets it; the Log keeps the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened_to: Option<usize>,
    /// Why requests have a note in place of the Entry's images, as a clause. pixir sets it where the server has refused an
    /// image, or a request for its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_images: Option<String>,
}
