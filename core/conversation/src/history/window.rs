//! The part of the path that the next request is made of: the last compaction, what it keeps, and what came after it;
//! without what the user dropped.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::item::{Item, Piece, piece_of, summary_text};
use super::{History, is_request};
use protocol::event::{Attachment, Entry, Fact, HistoryCompaction, Label};

impl History {
    /// Folds the path to the Head anew. It reads only what the next request contains: the last compaction, and the
    /// Entries that it keeps.
    pub(super) fn refold(&mut self) {
        self.measured = None;
        self.items.clear();
        self.told = None;
        self.item_bytes = 0;
        self.open_calls.clear();
        self.open_command = None;
        let mut reasoning_from = self.reasoning_from;
        if let Some(at) = self.last_compaction_at() {
            let entry = Arc::clone(self.at(at));
            reasoning_from = reasoning_from.max(entry.seq);
            if let Fact::HistoryCompaction(it) = &entry.fact {
                let piece = Piece::text(summary_text(it));
                self.stand_in(&entry, piece);
            }
        }
        let recent: Vec<Arc<Entry>> = self.recent_path().cloned().collect();
        for entry in recent {
            let is_stale = matches!(entry.fact, Fact::Reasoning(_)) && entry.seq < reasoning_from;
            if !is_stale {
                self.fold_item(&entry);
            }
        }
    }

    /// The index of the last compaction on the path.
    fn last_compaction_at(&self) -> Option<u32> {
        self.compactions.iter().rev().copied().find(|at| self.path.binary_search(at).is_ok())
    }

    /// The last compaction on the path.
    pub fn last_compaction(&self) -> Option<&HistoryCompaction> {
        match &self.at(self.last_compaction_at()?).fact {
            Fact::HistoryCompaction(it) => Some(it),
            _ => None,
        }
    }

    /// The part of the path that the next request is made of: what the last compaction keeps, and what came after it. The
    /// compaction itself is among them.
    pub fn recent_path(&self) -> impl DoubleEndedIterator<Item = &Arc<Entry>> {
        let compaction = self.last_compaction();
        let from = compaction.map_or(0, |it| it.kept_from_seq);
        let start = self.path.partition_point(|index| self.at(*index).seq < from);
        let set = |seqs: Option<&Vec<u64>>| seqs.into_iter().flatten().copied().collect::<BTreeSet<u64>>();
        let (kept, removed) = (set(compaction.map(|it| &it.kept)), set(compaction.map(|it| &it.removed)));
        // Anybody can have written this Log: only what is on the path, and replaced, can be kept.
        let kept = kept.into_iter().filter(move |seq| *seq < from).filter_map(|seq| {
            let index = self.index_of(seq)?;
            self.path.binary_search(&index).is_ok().then(|| self.at(index))
        });
        let after = self.path[start..].iter().map(|index| self.at(*index));
        kept.chain(after.filter(move |entry| !removed.contains(&entry.seq)))
    }

    /// Requests have a short note in place of this Entry's text.
    pub fn is_dropped(&self, seq: u64) -> bool {
        self.marks.get(&seq).is_some_and(|it| it.dropped.is_some())
    }

    /// An empty History with the user's marks of this one.
    pub fn fold_with_marks(&self, entries: impl IntoIterator<Item = Arc<Entry>>) -> History {
        let mut history = History { marks: self.marks.clone(), ..History::default() };
        entries.into_iter().for_each(|entry| history.append(entry));
        history
    }

    /// Takes a name, a pin, or what the user drops from requests.
    pub(super) fn take_mark(&mut self, new: &Label) {
        let mark = self.marks.entry(new.seq).or_default();
        mark.seq = new.seq;
        if let Some(text) = &new.text {
            mark.text = Some(text.clone()).filter(|t| !t.is_empty());
        }
        if let Some(pinned) = new.pinned {
            mark.pinned = Some(true).filter(|_| pinned);
        }
        if let Some(bytes) = new.shortened_to {
            mark.shortened_to = Some(bytes);
            self.last_input = None;
            self.refold();
        }
        let mark = self.marks.entry(new.seq).or_default();
        if let Some(why) = &new.without_images {
            mark.without_images = Some(why.clone());
            self.last_input = None;
            self.forget_reasoning();
        }
        let mark = self.marks.entry(new.seq).or_default();
        let Some(dropped) = new.dropped.map(|it| Some(true).filter(|_| it)) else { return };
        if std::mem::replace(&mut mark.dropped, dropped) != dropped {
            self.last_input = None;
            // What the model thought after it was valid for another prefix.
            self.forget_reasoning();
        }
    }

    /// Bytes of what the model reads of an Entry, for estimates; an image counts as about a thousand tokens.
    pub fn length_of(&self, entry: &Arc<Entry>) -> usize {
        match &entry.fact {
            Fact::UserCommand(_) | Fact::ToolResult(_) if self.is_dropped(entry.seq) => DROPPED_COMMAND.len(),
            Fact::UserCommand(it) => it.command.len(),
            _ => self.piece_for(entry).map_or(0, |(_, len)| len),
        }
    }

    /// What the model reads of an Entry, or the note that stands for it.
    pub(super) fn piece_for(&self, entry: &Arc<Entry>) -> Option<(Item, usize)> {
        let piece = piece_of(&entry.fact)?;
        let mark = self.marks.get(&entry.seq);
        let shortened = mark.and_then(|it| it.shortened_to).and_then(|most| shortened(&piece, most));
        let refused = mark.and_then(|it| it.without_images.as_deref());
        let imageless = refused.and_then(|why| without_images(shortened.as_ref().unwrap_or(&piece), why));
        let note = match (self.is_dropped(entry.seq), imageless.or(shortened)) {
            (true, _) => note_for(&piece)?,
            (false, Some(less)) => less,
            (false, None) => return Some((Item::Recorded(Arc::clone(entry)), piece.len())),
        };
        let len = note.len();
        Some((Item::StandIn(Arc::clone(entry), Box::new(note)), len))
    }

    /// Adds a text that the model reads in place of this Entry's.
    pub(super) fn stand_in(&mut self, entry: &Arc<Entry>, piece: Piece<'static>) {
        self.item_bytes += piece.len();
        self.items.push(Item::StandIn(Arc::clone(entry), Box::new(piece)));
    }

    /// Adds an item. The model reads the list of skills before the message that it answers; no request was sent between
    /// the two.
    pub(super) fn push_item(&mut self, entry: &Arc<Entry>, item: Item, len: usize) {
        self.item_bytes += len;
        let before = match (&entry.fact, self.items.last()) {
            (Fact::SkillIndex(_), Some(Item::Recorded(last) | Item::StandIn(last, _))) => {
                usize::from(is_request(&last.fact))
            }
            (_, _) => 0,
        };
        self.items.insert(self.items.len() - before, item);
    }
}

/// The text that stands for a command of the user and its output, if the user dropped them.
pub(super) const DROPPED_COMMAND: &str = "[The user ran a command here, and dropped it from your context.]";

/// A result, a call or a message of the user with the start and the end of its text, if that is longer.
fn shortened(piece: &Piece<'_>, most: usize) -> Option<Piece<'static>> {
    let short = |text: &str, fix: &str| {
        let start = text.floor_char_boundary(most * 6 / 10);
        let end = text.ceil_char_boundary(text.len() - most * 4 / 10);
        let (left_out, before, after) = (end - start, &text[..start], &text[end..]);
        let why = format!("they do not fit into a request to this model. Use: {fix}");
        format!("{before}\n[pixir left out {left_out} bytes here: {why}]\n{after}")
    };
    Some(match piece {
        Piece::Result { id, output, images, is_error } if output.len() > most => Piece::Result {
            id: Cow::Owned(id.clone().into_owned()),
            output: Cow::Owned(short(output, "the tool again, for a smaller part")),
            images: Cow::Owned(images.clone().into_owned()),
            is_error: *is_error,
        },
        Piece::User { text, images } if text.len() > most => Piece::User {
            text: Cow::Owned(short(text, "ask_user for the part that you need")),
            images: Cow::Owned(images.clone().into_owned()),
        },
        Piece::Call { id, name, args } if args.text().len() > most => {
            let left_out =
                format!("pixir left out these arguments ({} bytes): a request has no room for them", args.text().len());
            Piece::Call {
                id: Cow::Owned(id.clone().into_owned()),
                name: Cow::Owned(name.clone().into_owned()),
                args: Cow::Owned(json!({ "left_out": left_out }).into()),
            }
        }
        Piece::User { .. }
        | Piece::Note { .. }
        | Piece::Assistant { .. }
        | Piece::Reasoning { .. }
        | Piece::Call { .. }
        | Piece::Result { .. } => return None,
    })
}

/// A message or a result with a note in place of its images.
fn without_images(piece: &Piece<'_>, why: &str) -> Option<Piece<'static>> {
    let noted = |text: &str, images: &[Attachment]| {
        let named: Vec<String> =
            images.iter().map(|it| format!("{} ({} KB)", it.path, it.bytes.div_ceil(1024))).collect();
        let noun = if named.len() == 1 { "image" } else { "images" };
        let note = format!("[pixir left out the {noun} {}: {why}. Use: a smaller copy]", named.join(", "));
        Cow::Owned(if text.is_empty() { note } else { format!("{text}\n{note}") })
    };
    Some(match piece {
        Piece::User { text, images } if !images.is_empty() => {
            Piece::User { text: noted(text, images), images: (&[]).into() }
        }
        Piece::Result { id, output, images, is_error } if !images.is_empty() => Piece::Result {
            id: Cow::Owned(id.clone().into_owned()),
            output: noted(output, images),
            images: (&[]).into(),
            is_error: *is_error,
        },
        Piece::User { .. }
        | Piece::Note { .. }
        | Piece::Assistant { .. }
        | Piece::Reasoning { .. }
        | Piece::Call { .. }
        | Piece::Result { .. } => return None,
    })
}

/// The note that stands for what the user dropped. Reasoning needs none.
fn note_for(piece: &Piece<'_>) -> Option<Piece<'static>> {
    let owned = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
    Some(match piece {
        Piece::Note { .. } => Piece::Note { text: "[The user dropped this note from your context.]".into() },
        Piece::User { .. } => Piece::text("[The user dropped this message from your context.]"),
        Piece::Assistant { phase, .. } => Piece::Assistant {
            text: "[The user dropped this message from your context.]".into(),
            phase: phase.as_ref().map(owned),
        },
        Piece::Reasoning { .. } => return None,
        Piece::Call { id, name, .. } => Piece::Call {
            id: owned(id),
            name: owned(name),
            args: Cow::Owned(json!({ "dropped": "the user dropped these arguments from your context" }).into()),
        },
        Piece::Result { id, is_error, .. } => Piece::Result {
            id: owned(id),
            output: "[The user dropped this result from your context. Use: the tool again, if you need it]".into(),
            images: (&[]).into(),
            is_error: *is_error,
        },
    })
}
