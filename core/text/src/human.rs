//! Formats durations, sizes and names for the user.

use std::time::Duration;

/// A name with its control characters escaped, so that it stays on one line and cannot control the terminal.
pub fn on_one_line(name: &str) -> String {
    let shown = name.chars().map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() });
    shown.collect()
}

/// Formats a duration: `12ms`, `3.2s`, `45s`, `2m05s`.
pub fn human_duration(took: Duration) -> String {
    let ms = took.as_millis();
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..10_000 => format!("{}s", strip_zero(ms as f64 / 1000.0)),
        10_000..60_000 => format!("{}s", ms / 1000),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
    }
}

/// Words the next attempt of a failed request: `try 2 of 3 in 0.5 s`, `try 4 in 4.0 s, gives up in 2m52s`. `left_ms` is the
/// patience that is left after the wait.
pub fn next_attempt(attempt: u32, of: Option<u32>, wait_ms: u64, left_ms: Option<u64>) -> String {
    let of = of.map_or_else(String::new, |of| format!(" of {of}"));
    let limit = match left_ms {
        None => String::new(),
        Some(0) => ", the last one".to_owned(),
        Some(left) => {
            let whole = Duration::from_secs(wait_ms.saturating_add(left).div_ceil(1000));
            format!(", gives up in {}", human_duration(whole))
        }
    };
    format!("try {attempt}{of} in {:.1} s{limit}", wait_ms as f64 / 1000.0)
}

/// Formats a size: `182B`, `182KB`, `1.2MB`. Units are powers of 1024, with one decimal and no `.0`.
pub fn human_size(bytes: u64) -> String {
    let mut size = bytes as f64;
    let mut unit = "B";
    for larger in ["KB", "MB", "GB", "TB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    format!("{}{unit}", strip_zero(size))
}

/// Formats a count: `912`, `12.4k`, `1.2M`.
pub fn human_count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}k", strip_zero(n as f64 / 1e3)),
        _ => format!("{}M", strip_zero(n as f64 / 1e6)),
    }
}

fn strip_zero(n: f64) -> String {
    let text = format!("{n:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
