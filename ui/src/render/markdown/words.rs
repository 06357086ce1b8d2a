//! The plain words of a Markdown text.

use std::ops::Range;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use super::{is_break, options, says, with_fence};
use crate::render::text::plain;

/// The words as the user reads them: without marks, with a line end after each block.
pub(crate) fn words(source: &str, before: &str) -> String {
    let source = with_fence(source, before);
    let mut words = String::with_capacity(source.len());
    let mut links: Vec<(usize, String)> = Vec::new();
    let parser = Parser::new_ext(&source, options());
    let said: Vec<Range<usize>> = parser.reference_definitions().iter().map(|(_, it)| it.span.clone()).collect();
    for event in parser {
        match event {
            Event::Text(text) | Event::Code(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                words.push_str(&text);
            }
            Event::Html(text) | Event::InlineHtml(text) if !is_break(&text) => words.push_str(&text),
            Event::FootnoteReference(name) => words.push_str(&format!("[^{name}]")),
            Event::SoftBreak => words.push(' '),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push((words.len(), plain(&dest_url).into_owned()));
            }
            Event::End(TagEnd::Link | TagEnd::Image) => {
                if let Some((_, target)) = links.pop().filter(|(begin, target)| !says(&words[*begin..], target)) {
                    words.push_str(&format!(" ({target})"));
                }
            }
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) | Event::TaskListMarker(_) => {}
            Event::Start(_) => {}
            Event::End(_) | Event::HardBreak | Event::Rule | Event::Html(_) | Event::InlineHtml(_) => words.push('\n'),
        }
    }
    for span in said {
        words.push('\n');
        words.push_str(source[span].trim());
    }
    words
}
