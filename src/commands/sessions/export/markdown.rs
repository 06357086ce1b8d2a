//! A Session as Markdown.

use pixir_core::event::{Delivery, StepStatus};

use super::document::{Block, Document, Tool};
use crate::output::clean;

/// Writes the document as Markdown, piece by piece.
///
/// # Errors
/// Those of `write`.
pub(crate) fn render<E>(document: &Document<'_>, write: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let it = &document.summary;
    write(&format!(
        "# {}\n\n- session: `{}`\n- workspace: `{}`\n- model: {}\n- began: {}\n- tokens: {} in, {} out\n",
        clean(it.title()),
        it.id,
        clean(&it.workspace),
        clean(&it.model),
        it.created,
        it.usage.input,
        it.usage.output
    ))?;
    blocks(document, write)
}

/// Writes the blocks of a Session and those of its agents.
fn blocks<E>(document: &Document<'_>, write: &mut dyn FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    for block in &document.blocks {
        match block {
            Block::Agent { title, task, document } => {
                let task = clean(task).lines().next().unwrap_or_default().replace('<', "&lt;");
                write(&format!("\n<details><summary>agent {}: {task}</summary>\n", clean(title)))?;
                match document {
                    Some(own) => {
                        write(&format!("\n- session: `{}`\n", own.summary.id))?;
                        blocks(own, write)?;
                    }
                    None => write("\n*its log is not there*\n")?,
                }
                write("\n</details>\n")?;
            }
            _ => write(&format!("\n{}", one(block)))?,
        }
    }
    if document.elsewhere > 0 {
        let (n, id) = (document.elsewhere, &document.summary.id);
        write(&format!("\n---\n\n{n} entries are on other branches: `pixir tree {id}`\n"))?;
    }
    Ok(())
}

fn one(block: &Block<'_>) -> String {
    match block {
        Block::User { seq, text, delivery, at } => {
            let how = if *delivery == Delivery::Steer { "said meanwhile" } else { "asked" };
            let quoted: String = clean(text).lines().map(|line| format!("> {line}\n")).collect();
            format!("## {how} · {seq} · {at}\n\n{quoted}")
        }
        Block::Assistant { text, partial } => {
            let broke = if *partial { "\n\n*(the answer was cut off here)*" } else { "" };
            format!("{}{broke}\n", clean(text).trim_end())
        }
        Block::Thinking(text) => folded("thinking", &clean(text)),
        Block::Tool(it) => tool(it),
        Block::Plan(items) => {
            let mark = |status| match status {
                StepStatus::Completed => "x",
                StepStatus::InProgress | StepStatus::Pending => " ",
            };
            items.iter().map(|item| format!("- [{}] {}\n", mark(item.status), clean(&item.step))).collect()
        }
        Block::Summary { title, text } => folded(title, &clean(text)),
        // It is written with its own blocks.
        Block::Agent { .. } => String::new(),
        Block::Note(text) => format!("*{}*\n", clean(text)),
        Block::Ended(it) => {
            let why = it.error.as_ref().map_or(String::new(), |e| format!(": {}", e.message));
            format!("**{}{}**\n", it.status.name(), clean(&why))
        }
    }
}

fn folded(title: &str, body: &str) -> String {
    format!("<details><summary>{title}</summary>\n\n{}\n\n</details>\n", body.trim_end())
}

fn tool(it: &Tool<'_>) -> String {
    let output = it.result().map_or_else(|| "(no result)".to_owned(), |result| clean(&result.output).into_owned());
    let mut text = format!("**{}** `{}`\n\n", clean(&it.call.name), clean(&it.target()).replace('`', "'"));
    if let Some(why) = &it.refused {
        text.push_str(&format!("*refused: {}*\n\n", clean(why)));
    }
    text.push_str(&fenced("", &output));
    for diff in it.diffs() {
        text.push_str(&fenced("diff", &clean(&diff.text)));
    }
    text
}

/// A code fence that is longer than every fence in the text.
fn fenced(language: &str, text: &str) -> String {
    let mut longest = 2;
    let mut run = 0;
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    format!("{fence}{language}\n{}\n{fence}\n\n", text.trim_end())
}
