//! The entries of a compaction, list by list, as they are drawn. Made once for each change, because a conversation can have many
//! thousands of them.

use pixir_core::event::{CompactionPreview, List, Segment};

use super::LISTS;

/// A row of the lists.
#[derive(Debug, Clone, Copy)]
pub(super) enum Row {
    Head(List),
    /// An entry, by its place in the conversation.
    Segment(usize),
    Gap,
}

#[derive(Debug, Default)]
pub(super) struct Lists {
    pub(super) rows: Vec<Row>,
    /// The entries in the order of the screen.
    order: Vec<usize>,
    /// By entry: its place in that order.
    places: Vec<usize>,
    /// By entry: its row.
    row_of: Vec<usize>,
    /// Entries and tokens of each list, in the order of [`LISTS`].
    sums: [(usize, u64); 3],
    /// Tokens of the next request after the compaction, with the summary as pixir made it.
    pub(super) tokens_after: u64,
}

impl Lists {
    /// Puts each entry into the list that `list_of` names.
    pub(super) fn of(preview: &CompactionPreview, list_of: impl Fn(&Segment) -> List) -> Lists {
        let segments = &preview.segments;
        let mut lists = Lists {
            places: vec![0; segments.len()],
            row_of: vec![0; segments.len()],
            tokens_after: preview.compaction.tokens_after,
            ..Lists::default()
        };
        let chosen: Vec<List> = segments.iter().map(&list_of).collect();
        for (number, list) in LISTS.into_iter().enumerate() {
            if number > 0 {
                lists.rows.push(Row::Gap);
            }
            lists.rows.push(Row::Head(list));
            for (at, segment) in segments.iter().enumerate().filter(|(at, _)| chosen[*at] == list) {
                (lists.places[at], lists.row_of[at]) = (lists.order.len(), lists.rows.len());
                lists.order.push(at);
                lists.rows.push(Row::Segment(at));
                let (count, tokens) = lists.sums[number];
                lists.sums[number] = (count + 1, tokens + segment.tokens);
                match (segment.list == List::Kept, list == List::Kept) {
                    (false, true) => lists.tokens_after += segment.tokens,
                    (true, false) => lists.tokens_after = lists.tokens_after.saturating_sub(segment.tokens),
                    (true, true) | (false, false) => {}
                }
            }
        }
        lists
    }

    /// The number of entries.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The entry at this place of the screen's order.
    pub(super) fn segment(&self, place: usize) -> Option<usize> {
        self.order.get(place).copied()
    }

    /// The place of an entry in the screen's order.
    pub(super) fn place(&self, segment: usize) -> usize {
        self.places.get(segment).copied().unwrap_or(0)
    }

    /// The row of an entry.
    pub(super) fn row(&self, segment: usize) -> usize {
        self.row_of.get(segment).copied().unwrap_or(0)
    }

    /// The entries and the tokens of a list.
    pub(super) fn sum(&self, list: List) -> (usize, u64) {
        LISTS.iter().position(|it| *it == list).map_or((0, 0), |at| self.sums[at])
    }
}
