//! The results of the newest calls: no compaction replaces them, so they must fit beside it.

use super::Room;
use conversation::history::History;
use protocol::event::Fact;

/// The least that is left of a result, bytes.
const LEAST: usize = 400;

impl Room {
    /// The most that the results of one answer may have together, bytes: half of the room, and after each attempt half as
    /// much. The other half is for the summary, the request and the next answer.
    pub fn results(self) -> usize {
        let bytes = self.scale.estimate(self.history() / 2) * 4;
        usize::try_from(bytes).unwrap_or(usize::MAX) >> self.shrink.min(16)
    }
}

/// Results of the newest calls that are too long for this room, by their numbers, with the bytes that each may have.
pub fn too_long(history: &History, room: Room) -> Vec<(u64, usize)> {
    let newest = history.recent_path().rev().take_while(|entry| !matches!(entry.fact, Fact::ToolCall(_)));
    let results = newest.filter(|entry| matches!(entry.fact, Fact::ToolResult(_)));
    let lengths: Vec<(u64, usize)> = results.map(|entry| (entry.seq, history.length_of(entry))).collect();
    let most = share(lengths.iter().map(|(_, bytes)| *bytes).collect(), room.results());
    // What is that short already would only be recorded again.
    let is_longer = |seq: u64| history.mark(seq).shortened_to.is_none_or(|bytes| bytes > most);
    lengths.into_iter().filter(|(seq, bytes)| *bytes > most && is_longer(*seq)).map(|(seq, _)| (seq, most)).collect()
}

/// The most bytes of each, so that all have `most` together: the short ones stay whole.
pub(crate) fn share(mut lengths: Vec<usize>, most: usize) -> usize {
    lengths.sort_unstable();
    let mut left = most;
    let count = lengths.len();
    for (at, length) in lengths.into_iter().enumerate() {
        let each = left / (count - at);
        if length > each {
            return each.max(LEAST);
        }
        left -= length;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{LEAST, share};

    proptest! {
        /// Broken builds: short results are cut too; the long ones do not get what the short ones leave.
        #[test]
        fn long_results_get_what_short_ones_leave(lengths in prop::collection::vec(0..5_000_usize, 1..9), most in 0..20_000_usize) {
            let each = share(lengths.clone(), most);
            let sum: usize = lengths.iter().map(|length| (*length).min(each)).sum();
            if lengths.iter().sum::<usize>() <= most {
                prop_assert_eq!(each, usize::MAX);
            } else {
                prop_assert!(sum <= most || each == LEAST);
                prop_assert!(each == LEAST || sum + lengths.len() > most);
            }
        }
    }
}
