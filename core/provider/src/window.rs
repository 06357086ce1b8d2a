//! The window that a server names when a request does not fit into it.

use serde_json::Value;

use protocol::error::{Code, Error};

/// The detail of an overflow that holds the window, tokens.
pub(super) const WINDOW: &str = "window";
/// Numbers that may be a window.
const LIKELY_WINDOWS: std::ops::RangeInclusive<u64> = 512..=100_000_000;

/// Adds the window that an overflow names, tokens.
pub(super) fn with_window(told: Error, error: &Value, text: &str) -> Error {
    let window = || error["n_ctx"].as_u64().or_else(|| window_in(text)).filter(|n| LIKELY_WINDOWS.contains(n));
    match window().filter(|_| told.code == Code::ContextOverflow) {
        Some(window) => told.with(WINDOW, window),
        None => told,
    }
}

/// Returns the window that the words of an overflow name, in the words of the usual servers.
fn window_in(text: &str) -> Option<u64> {
    let text = text.to_lowercase().replace(',', "");
    let first_number = |text: &str| {
        let start = text.find(|c: char| c.is_ascii_digit()).filter(|at| *at < 40)?;
        let digits = &text[start..];
        digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())].parse::<u64>().ok()
    };
    // `9 + 9 > 8` and `9 tokens > 8 maximum`: the limit is on the right.
    if let Some((_, limit)) = text.split_once(" > ") {
        return first_number(limit);
    }
    const BEFORE: [&str; 8] = [
        "maximum context length",
        "context length",
        "context size",
        "context window",
        "maximum prompt length",
        "token limit",
        "max_model_len",
        "maximum number of tokens",
    ];
    BEFORE
        .iter()
        .find_map(|words| text.match_indices(words).find_map(|(at, _)| first_number(&text[at + words.len()..])))
}
