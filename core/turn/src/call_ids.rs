//! Gives every call of an answer its own id, because results refer to calls by id.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};

use provider::{AnswerPart, Request};

/// Returns the parts with ids that no call of the request has. A call that a Provider repeats exactly is dropped; another
/// call with the same id gets a new one.
///
/// Some servers begin to count anew with each answer. `next_number` gives numbers that the Session has not used, so that a
/// free id is found at once, however many calls have had the same.
pub(super) fn unique(request: &Request, parts: Vec<AnswerPart>, next_number: &AtomicU64) -> Vec<AnswerPart> {
    if !parts.iter().any(|part| matches!(part, AnswerPart::Call(_))) {
        return parts;
    }
    let mut seen: HashSet<Cow<'_, str>> =
        request.items.iter().filter_map(|item| item.call_id().map(Cow::Borrowed)).collect();
    let mut known: HashSet<(String, String, String)> = HashSet::new();
    let own = |part| {
        let AnswerPart::Call(mut call) = part else { return Some(part) };
        if !known.insert((call.id.clone(), call.name.clone(), call.args.to_string())) {
            return None;
        }
        let given = call.id.clone();
        let mut number = 2;
        while !seen.insert(Cow::Owned(call.id.clone())) {
            call.id = format!("{given}_{number}");
            number = next_number.fetch_add(1, Ordering::Relaxed);
        }
        Some(AnswerPart::Call(call))
    };
    parts.into_iter().filter_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use context::prompt;
    use conversation::history::{History, Item, Piece};
    use provider::CallRequest;
    use storage::blobs::Blobs;

    /// Broken build: the numbers after an id are tried from 2 on.
    #[test]
    fn a_server_that_repeats_its_ids_costs_no_more_after_many_calls() {
        let args = serde_json::json!({});
        let call = |id: &str| AnswerPart::Call(CallRequest { id: id.into(), name: "read".into(), args: args.clone() });
        let next = AtomicU64::new(3);
        let blobs = Blobs::new(std::env::temp_dir());
        let mut request = prompt::request(&History::default(), Vec::new().into(), &blobs, "");
        let mut tried = 0;
        for _ in 0..1_000 {
            let before = next.load(Ordering::Relaxed);
            let parts = unique(&request, vec![call("call_1")], &next);
            let [AnswerPart::Call(call)] = parts.as_slice() else { panic!("{parts:?}") };
            tried = tried.max(next.load(Ordering::Relaxed) - before);
            let (id, name) = (call.id.clone().into(), call.name.clone().into());
            request.items.push(Item::made(Piece::Call { id, name, args: Cow::Owned((&args).into()) }));
        }
        let ids: HashSet<&str> = request.items.iter().filter_map(Item::call_id).collect();
        assert_eq!((ids.len(), tried), (1_000, 2), "every call has its own id, found after two tries at most");
    }
}
