//! `pixir sessions verify`: each line of a Log against its chain.

use pixir_core::store::Place;
use pixir_core::{Result, log};
use serde_json::json;

use crate::output::{Output, chatter, safe};

/// Ends with 1 when any line cannot be trusted.
pub(super) fn verify(places: &[Place], output: &Output) -> Result<u8> {
    let mut rows = Vec::new();
    let mut damaged = 0;
    for place in places {
        let it = log::read(&place.log())?;
        damaged += usize::from(!it.damage.is_empty());
        rows.push(json!({
            "session_id": place.id, "ok": it.damage.is_empty(), "entries": it.entries.len(), "damage": it.damage,
            "torn_bytes": it.torn, "duplicate_lines": it.duplicates,
        }));
        if !output.is_json() {
            let torn =
                if it.torn > 0 { format!(", {} bytes of a write that was cut off", it.torn) } else { String::new() };
            match it.damage.as_slice() {
                [] => output.line(&format!("ok       {}  {} entries{torn}", place.id, it.entries.len())),
                several => {
                    for damage in several {
                        output.line(&safe(&format!("DAMAGED  {}  line {}: {}", place.id, damage.line, damage.reason)));
                    }
                    chatter(&format!("pixir sessions repair {} --dry-run", place.id));
                }
            }
        }
    }
    if output.is_json() {
        output.document(&json!({ "schemaVersion": 1, "ok": damaged == 0, "sessions": rows }));
    }
    Ok(u8::from(damaged > 0))
}
