//! Pages of the lists of a server. As a program reads them, they take many times their bytes, so a long one is shortened first.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The most items of a list that are read.
pub(super) const MAX_ITEMS: usize = 1_024;
/// The most of a list that is read, bytes as JSON.
pub(super) const MAX_LISTED: usize = 2 << 20;
/// A page that is shorter is read as it is, bytes.
const SHORT: usize = 64 << 10;
/// The cursor of a page that was shortened: the list has more, and none of that is read.
pub(super) const CUT: &str = "pixir reads no more of this list";

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow)]
    result: Page<'a>,
}

/// A page of any list. Each field is text of the message, so that nothing is copied.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    #[serde(borrow, default)]
    prompts: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resources: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result_type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    ttl_ms: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cache_scope: Option<&'a RawValue>,
}

/// The message; of a page of a list that is longer than what is read of a list, one with the items that fit.
pub(super) fn shortened(message: Vec<u8>) -> Vec<u8> {
    if message.len() <= SHORT {
        return message;
    }
    // The others are pages that fit, and answers of another kind.
    short_page(&message).unwrap_or(message)
}

fn short_page(message: &[u8]) -> Option<Vec<u8>> {
    let Answer { id, result } = serde_json::from_slice(message).ok()?;
    let lists = [("tools", result.tools), ("prompts", result.prompts), ("resources", result.resources)];
    let (key, items) = lists.into_iter().find_map(|(key, items)| Some((key, items?)))?;
    let mut fitting = Fitting::default();
    fitting.deserialize(&mut serde_json::Deserializer::from_str(items.get())).ok()?;
    if fitting.dropped == 0 {
        return None;
    }
    let beside = [("resultType", result.result_type), ("ttlMs", result.ttl_ms), ("cacheScope", result.cache_scope)];
    let beside: String = beside
        .into_iter()
        .filter_map(|(key, value)| Some(format!(",\"{key}\":{}", value.filter(|it| it.get().len() < 100)?.get())))
        .collect();
    let items = fitting.text;
    Some(
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"{key}\":[{items}],\"nextCursor\":\"{CUT}\"{beside}}}}}",
            id.get()
        )
        .into_bytes(),
    )
}

/// The items that fit.
#[derive(Default)]
struct Fitting {
    /// The inside of a JSON array.
    text: String,
    items: usize,
    dropped: usize,
}

impl<'de> DeserializeSeed<'de> for &mut Fitting {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Fitting {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&RawValue>()? {
            // One that is too long does not hide those behind it.
            if self.items == MAX_ITEMS || self.text.len() + item.get().len() >= MAX_LISTED {
                self.dropped += 1;
                continue;
            }
            if self.items > 0 {
                self.text.push(',');
            }
            self.text.push_str(item.get());
            self.items += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Broken builds: an answer of a tool is taken for a page; one long item hides those behind it; a page without its end is
    /// taken for the whole list.
    #[test]
    fn a_long_page_keeps_the_items_that_fit_and_says_that_it_is_cut() {
        let long = "x".repeat(MAX_LISTED);
        let item = |name: &str, about: &str| json!({ "name": name, "description": about });
        let page = json!({
            "jsonrpc": "2.0", "id": "a\"b",
            "result": { "resultType": "complete", "nextCursor": "2", "tools": [item("a", ""), item("b", &long), item("c", "")] },
        });
        let read: Value = serde_json::from_slice(&shortened(page.to_string().into_bytes())).expect("JSON");
        assert_eq!(
            read,
            json!({
                "jsonrpc": "2.0", "id": "a\"b",
                "result": { "resultType": "complete", "nextCursor": CUT, "tools": [item("a", ""), item("c", "")] },
            })
        );
        for other in [
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "content": [{ "type": "text", "text": long }] } }),
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": long } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "tools": [long] } }),
        ] {
            let bytes = other.to_string().into_bytes();
            assert_eq!(shortened(bytes.clone()), bytes);
        }
        let page = |items: usize, about: &str| {
            let tools: Vec<Value> = (0..items).map(|n| item(&n.to_string(), about)).collect();
            json!({ "jsonrpc": "2.0", "id": 1, "result": { "nextCursor": "2", "tools": tools } })
                .to_string()
                .into_bytes()
        };
        for whole in [page(1, ""), page(MAX_ITEMS, &"x".repeat(200))] {
            assert_eq!(shortened(whole.clone()), whole);
        }
        let read = shortened(page(MAX_ITEMS + 1, &"x".repeat(200)));
        let read: Value = serde_json::from_slice(&read).expect("JSON");
        let result = &read["result"];
        assert_eq!((result["tools"].as_array().map(Vec::len), &result["nextCursor"]), (Some(MAX_ITEMS), &json!(CUT)));
    }
}
