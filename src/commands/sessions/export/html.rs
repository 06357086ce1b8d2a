//! A Session as one HTML page. It has no script, fetches nothing, and follows the system's light or dark setting.

use pixir_core::call_info::CallKind;
use pixir_core::changes::FileDiff;
use pixir_core::event::{ChangeKind, Delivery, StepStatus};
use pixir_core::text::human::human_duration;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::time::Duration;

use super::document::{Block, Document, Tool};
use crate::output::clean;
use crate::remedies;

const STYLE: &str = include_str!("page.css");
/// The page folds outputs with more lines than this.
const LONG: usize = 12;

/// Writes the page, piece by piece.
///
/// # Errors
/// Those of `write`.
pub(crate) fn render<E>(document: &Document<'_>, write: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let it = &document.summary;
    let title = escape(it.title());
    write(&format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title} · pixir</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <aside><p class=\"mark\">pixir</p><nav><ol>\n"
    ))?;
    for block in &document.blocks {
        if let Block::User { seq, text, delivery, .. } = block
            && *delivery != Delivery::Steer
        {
            let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(64).collect();
            write(&format!("<li><a href=\"#e{seq}\">{}</a></li>\n", escape(&line)))?;
        }
    }
    write(&format!(
        "</ol></nav></aside>\n<main>\n<header>\n<h1>{title}</h1>\n<dl>{}</dl>\n</header>\n",
        facts(document)
    ))?;
    blocks(document, "", write)?;
    write("\n</main>\n</body>\n</html>\n")
}

/// Writes the blocks of a Session and those of its agents; `place` makes their anchors different.
fn blocks<E>(document: &Document<'_>, place: &str, write: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    for block in &document.blocks {
        match block {
            Block::Agent { title, task, document } => {
                let task = escape(task.lines().next().unwrap_or_default());
                write(&format!("<details class=\"agent\"><summary><b>agent {}</b> {task}</summary>\n", escape(title)))?;
                match document {
                    Some(own) => blocks(own, &format!("{place}{}-", own.summary.id), write)?,
                    None => write("<p class=\"note\">its log is not there</p>")?,
                }
                write("</details>\n")?;
            }
            _ => write(&one(block, place))?,
        }
    }
    match document.elsewhere {
        0 => Ok(()),
        n => write(&format!("<p class=\"note\">{n} entries are on other branches of this conversation.</p>")),
    }
}

fn facts(document: &Document<'_>) -> String {
    let it = &document.summary;
    let date = it.created.strftime("%Y-%m-%d %H:%M").to_string();
    let rows = [
        ("Session", it.id.clone()),
        ("Workspace", it.workspace.clone()),
        ("Model", it.model.clone()),
        ("Began", date),
        ("Turns", it.turns.to_string()),
        ("Tools run", it.tool_calls.to_string()),
        ("Tokens", format!("{} in · {} out", it.usage.input, it.usage.output)),
    ];
    rows.iter().map(|(name, value)| format!("<div><dt>{name}</dt><dd>{}</dd></div>", escape(value))).collect()
}

fn one(block: &Block<'_>, place: &str) -> String {
    match block {
        Block::User { seq, text, delivery, at } => {
            let how = if *delivery == Delivery::Steer { "said meanwhile" } else { "" };
            let at = at.to_string();
            let time = at.get(11..16).unwrap_or_default();
            format!(
                "<section class=\"user\" id=\"e{place}{seq}\"><p class=\"meta\"><a href=\"#e{place}{seq}\">#{seq}</a> {time} {how}</p><div class=\"said\">{}</div></section>\n",
                escape(text)
            )
        }
        Block::Assistant { text, partial } => {
            let broke = if *partial { "<p class=\"note\">the answer was cut off here</p>" } else { "" };
            format!("<section class=\"answer\">{}{broke}</section>\n", markdown(text))
        }
        Block::Thinking(text) => {
            folded("thinking", "Thinking", &format!("<div class=\"prose\">{}</div>", markdown(text)))
        }
        Block::Tool(it) => tool(it),
        Block::Plan(items) => {
            let rows = items.iter().map(|item| {
                let (class, mark) = match item.status {
                    StepStatus::Completed => ("done", "✓"),
                    StepStatus::InProgress => ("now", "▸"),
                    StepStatus::Pending => ("later", "·"),
                };
                format!("<li class=\"{class}\"><span>{mark}</span> {}</li>", escape(&item.step))
            });
            format!("<ul class=\"plan\">{}</ul>\n", rows.collect::<String>())
        }
        Block::Summary { title, text } => {
            folded("summary", &escape(title), &format!("<div class=\"prose\">{}</div>", markdown(text)))
        }
        // It is written with its own blocks.
        Block::Agent { .. } => String::new(),
        Block::Note(text) => format!("<p class=\"note\">{}</p>\n", escape(text)),
        Block::Ended(it) => {
            let why = it.error.as_ref().map_or(String::new(), |e| format!(": {}", escape(&e.message)));
            let fix = it.error.as_ref().map_or(String::new(), |e| format!("<br>fix: {}", escape(&remedies::of(e))));
            format!("<p class=\"ended\">{}{why}{fix}</p>\n", it.status.name())
        }
    }
}

fn folded(class: &str, title: &str, body: &str) -> String {
    format!("<details class=\"{class}\"><summary>{title}</summary>{body}</details>\n")
}

fn tool(it: &Tool<'_>) -> String {
    let result = it.result();
    let diffs = it.diffs();
    let (class, mark) = match (result.map(|r| r.ok), &it.refused) {
        (_, Some(_)) => ("refused", "⊘"),
        (Some(true), None) => ("fine", "✓"),
        (Some(false), None) => ("failed", "✗"),
        (None, None) => ("failed", "…"),
    };
    let took = result.map_or(String::new(), |r| human_duration(Duration::from_millis(r.duration_ms)));
    let exit = result
        .and_then(|r| r.exit_code)
        .filter(|code| *code != 0)
        .map_or(String::new(), |code| format!("exit {code} · "));
    let mut inner = String::new();
    if let Some(why) = &it.refused {
        inner.push_str(&format!("<p class=\"note\">refused: {}</p>", escape(why)));
    }
    for diff in &diffs {
        inner.push_str(&one_diff(diff));
    }
    // The diff shows the change, and the summary has the tool's message, so the output would repeat both.
    let output = result.map_or("", |r| r.output.as_str());
    let only_footer = output.trim_start().starts_with("[exit:") && output.lines().count() == 1;
    if !only_footer && (diffs.is_empty() || it.call.about().kind == CallKind::Execute) {
        inner.push_str(&format!("<pre>{}</pre>", escape(output.trim_end())));
    }
    let open = if !diffs.is_empty() || (output.lines().count() <= LONG && class == "failed") { " open" } else { "" };
    format!(
        "<details class=\"tool {class}\"{open}><summary><b>{mark} {}</b> <code>{}</code> <span>{exit}{took}</span></summary>{inner}</details>\n",
        escape(&it.call.name),
        escape(&it.target())
    )
}

fn one_diff(diff: &FileDiff) -> String {
    let kind = match diff.kind {
        ChangeKind::Created => "new",
        ChangeKind::Modified => "changed",
        ChangeKind::Deleted => "deleted",
    };
    let rows = diff.text.lines().filter(|l| !l.starts_with("--- ") && !l.starts_with("+++ ")).map(|line| {
        let class = match line.as_bytes().first() {
            Some(b'+') => "add",
            Some(b'-') => "del",
            Some(b'@') => "hunk",
            _ => "same",
        };
        format!("<span class=\"{class}\">{}</span>", escape(line))
    });
    format!(
        "<div class=\"diff\"><p>{} <em>{kind}</em> <i class=\"add\">+{}</i> <i class=\"del\">−{}</i></p><pre>{}</pre></div>",
        escape(&diff.path),
        diff.added,
        diff.removed,
        rows.collect::<String>()
    )
}

/// Escapes text: a browser finds no markup in it.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Renders a model's Markdown. HTML stays text, images become links, and links to scripts and local files are removed.
fn markdown(text: &str) -> String {
    let text = clean(text);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut dropped: Vec<bool> = Vec::new();
    let events = Parser::new_ext(&text, options).filter_map(|event| match event {
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        Event::Start(Tag::Link { dest_url, link_type, title, id } | Tag::Image { dest_url, link_type, title, id }) => {
            let kept = ["https://", "http://", "mailto:", "#"].iter().any(|scheme| dest_url.starts_with(scheme));
            dropped.push(!kept);
            kept.then_some(Event::Start(Tag::Link { dest_url, link_type, title, id }))
        }
        Event::End(TagEnd::Link | TagEnd::Image) => {
            (!dropped.pop().unwrap_or(true)).then_some(Event::End(TagEnd::Link))
        }
        other => Some(other),
    });
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_text_cannot_bring_markup_scripts_or_pictures_into_the_page() {
        let page = markdown("see <script>alert(1)</script> ![x](https://evil/x.png) [a](javascript:alert(1)) **b**");
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains("javascript:"), "{page}");
        assert!(page.contains("<strong>b</strong>") && page.contains("href=\"https://evil/x.png\""), "{page}");
        assert_eq!(escape("<a \u{202e}b & 'c'>"), "&lt;a \\u{202e}b &amp; &#39;c&#39;&gt;");
    }
}
