//! Reasoning that a model writes into its answer, between tags.

/// Finds reasoning that a model writes at the start of its answer, between `<think>` and `</think>`. A tag may be cut
/// anywhere.
#[derive(Default)]
pub(super) enum ThinkTags {
    /// Nothing but this beginning of an opening tag arrived, maybe after blanks.
    #[default]
    Nothing,
    Opening(String),
    /// Inside, with the beginning of a closing tag.
    Inside(String),
    /// After `</think>`, before the first character of the answer.
    Closed,
    Outside,
}

/// Text that was sorted into reasoning and answer.
#[derive(Default)]
pub(super) struct Split {
    pub(super) reasoning: String,
    pub(super) text: String,
}

impl ThinkTags {
    pub(super) const OPEN: &'static str = "<think>";
    pub(super) const CLOSE: &'static str = "</think>";

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self, ThinkTags::Opening(_) | ThinkTags::Inside(_))
    }

    pub(super) fn split(&mut self, more: &str) -> Split {
        let mut split = Split::default();
        let mut rest = more.to_owned();
        loop {
            match std::mem::replace(self, ThinkTags::Outside) {
                ThinkTags::Nothing => *self = ThinkTags::Opening(String::new()),
                ThinkTags::Opening(before) => {
                    let all = before + &rest;
                    let start = all.trim_start();
                    if let Some(inside) = start.strip_prefix(Self::OPEN) {
                        rest = inside.to_owned();
                        *self = ThinkTags::Inside(String::new());
                    } else if Self::OPEN.starts_with(start) {
                        *self = ThinkTags::Opening(all);
                        return split;
                    } else {
                        split.text = all;
                        return split;
                    }
                }
                ThinkTags::Inside(before) => {
                    let all = before + &rest;
                    if let Some((reasoning, after)) = all.split_once(Self::CLOSE) {
                        split.reasoning.push_str(reasoning);
                        rest = after.to_owned();
                        *self = ThinkTags::Closed;
                    } else {
                        let held = (1..Self::CLOSE.len()).rev().find(|n| all.ends_with(&Self::CLOSE[..*n]));
                        let (reasoning, held) = all.split_at(all.len() - held.unwrap_or(0));
                        split.reasoning.push_str(reasoning);
                        *self = ThinkTags::Inside(held.to_owned());
                        return split;
                    }
                }
                ThinkTags::Closed => {
                    let answer = rest.trim_start();
                    if answer.is_empty() {
                        *self = ThinkTags::Closed;
                    }
                    split.text = answer.to_owned();
                    return split;
                }
                ThinkTags::Outside => {
                    split.text = rest;
                    return split;
                }
            }
        }
    }

    /// Returns what waited for the rest of a tag that never came.
    pub(super) fn rest(&mut self) -> Split {
        match std::mem::replace(self, ThinkTags::Outside) {
            ThinkTags::Opening(text) => Split { text, ..Split::default() },
            ThinkTags::Inside(reasoning) => Split { reasoning, ..Split::default() },
            ThinkTags::Nothing | ThinkTags::Closed | ThinkTags::Outside => Split::default(),
        }
    }
}
