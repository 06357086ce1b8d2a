//! The wait that a server asks for, in headers and in the words of an error.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

/// Returns the wait that the words of an error ask for: `Please try again in 6s`, `retry after 1m20.5s`.
pub(super) fn wait_in(text: &str) -> Option<Duration> {
    let lower = text.to_lowercase();
    let phrases = ["try again in ", "retry after ", "retry in ", "try again after "];
    let at = phrases.iter().find_map(|phrase| Some(lower.find(phrase)? + phrase.len()))?;
    duration(lower[at..].trim_start())
}

/// Parses the duration at the start of a text: `6s`, `250ms`, `1m20.5s`, `12 seconds`, `1h2m`.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total: Option<f64> = None;
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let unit = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let seconds = match &after[..unit] {
            "ms" | "millisecond" | "milliseconds" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => break,
        };
        total = Some(total.unwrap_or(0.0) + number * seconds);
        rest = &after[unit..];
    }
    total.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Returns how long the server asks to wait, from the usual headers.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    if let Some(wait) = value("retry-after-ms").and_then(|ms| seconds(ms, 0.001)) {
        return Some(wait);
    }
    if let Some(text) = value("retry-after") {
        return seconds(text, 1.0).or_else(|| until(text, now));
    }
    // Requests and tokens have limits of their own. The used-up ones decide; without a remainder, all of them count.
    let kinds = ["requests", "tokens", "input-tokens", "output-tokens"];
    let named = |prefix: &str, word: &str, kind: &str| value(&format!("{prefix}ratelimit-{word}-{kind}"));
    let reset = |prefix: &str, kind: &str| {
        if named(prefix, "remaining", kind).is_some_and(|left| left != "0") {
            return None;
        }
        let text = named(prefix, "reset", kind)?;
        duration(text).or_else(|| until(text, now))
    };
    let prefixes = ["x-", "anthropic-"];
    prefixes.iter().flat_map(|prefix| kinds.iter().filter_map(|kind| reset(prefix, kind))).max()
}

/// Parses a finite, non-negative number of seconds, also written as `2s` or `1500ms`.
fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 0.001),
        None => match text.strip_suffix('s') {
            Some(number) => (number, 1.0),
            None => (text, unit),
        },
    };
    // `parse` would accept `inf` and `nan`.
    if !number.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let seconds = number.trim().parse::<f64>().ok()? * unit;
    // A wait that is too long for a `Duration` becomes the longest one.
    seconds.is_finite().then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Returns the time until a date in one of the three HTTP formats or RFC 3339. A past date means now.
fn until(date: &str, now: Timestamp) -> Option<Duration> {
    let http = |form: &str| {
        let plain = date.strip_suffix("GMT")?.trim_end();
        jiff::civil::DateTime::strptime(form, plain)
            .ok()?
            .to_zoned(jiff::tz::TimeZone::UTC)
            .ok()
            .map(|it| it.timestamp())
    };
    let at = jiff::fmt::rfc2822::parse(date)
        .ok()
        .map(|it| it.timestamp())
        .or_else(|| http("%A, %d-%b-%y %H:%M:%S"))
        .or_else(|| {
            Some(
                jiff::civil::DateTime::strptime("%a %b %e %H:%M:%S %Y", date)
                    .ok()?
                    .to_zoned(jiff::tz::TimeZone::UTC)
                    .ok()?
                    .timestamp(),
            )
        })
        .or_else(|| date.parse().ok())?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let value = reqwest::header::HeaderValue::from_str(value).expect("a header can hold it");
        HeaderMap::from_iter([(reqwest::header::HeaderName::from_static(name), value)])
    }

    #[test]
    fn forty_ways_to_say_when_to_try_again_are_understood_or_not_believed() {
        let now: Timestamp = "2026-11-22T10:00:00Z".parse().expect("a time");
        let s = Duration::from_secs_f64;
        let rows: [(&'static str, &str, Option<Duration>); 42] = [
            ("retry-after", "0", Some(s(0.0))),
            ("retry-after", "1", Some(s(1.0))),
            ("retry-after", "30", Some(s(30.0))),
            ("retry-after", "120", Some(s(120.0))),
            ("retry-after", "3600", Some(s(3600.0))),
            ("retry-after", " 7 ", Some(s(7.0))),
            ("retry-after", "007", Some(s(7.0))),
            ("retry-after", "1.5", Some(s(1.5))),
            ("retry-after", "0.25", Some(s(0.25))),
            ("retry-after", ".5", Some(s(0.5))),
            ("retry-after", "1e1", Some(s(10.0))),
            ("retry-after", "2s", Some(s(2.0))),
            ("retry-after", "1500ms", Some(s(1.5))),
            ("retry-after", "0.5s", Some(s(0.5))),
            ("retry-after", "99999999999", Some(s(99_999_999_999.0))),
            ("retry-after", "-1", None),
            ("retry-after", "-0", None),
            ("retry-after", "+5", None),
            ("retry-after", "inf", None),
            ("retry-after", "NaN", None),
            ("retry-after", "1e400", None),
            ("retry-after", "", None),
            ("retry-after", "soon", None),
            ("retry-after", "12 seconds", None),
            ("retry-after", "1,5", None),
            ("retry-after", "0x10", None),
            ("retry-after", "5, 10", None),
            ("retry-after-ms", "0", Some(s(0.0))),
            ("retry-after-ms", "250", Some(s(0.25))),
            ("retry-after-ms", "1500.5", Some(s(1.5005))),
            ("retry-after-ms", "-3", None),
            ("retry-after-ms", "x", None),
            ("retry-after", "Sun, 22 Nov 2026 10:00:30 GMT", Some(s(30.0))),
            ("retry-after", "Sun, 22 Nov 2026 10:02:00 +0000", Some(s(120.0))),
            ("retry-after", "Sun, 22 Nov 2026 11:00:45 +0100", Some(s(45.0))),
            ("retry-after", "Sun, 22 Nov 2026 09:59:00 GMT", Some(s(0.0))),
            ("retry-after", "Sunday, 22-Nov-26 10:00:20 GMT", Some(s(20.0))),
            ("retry-after", "Sun Nov 22 10:00:10 2026", Some(s(10.0))),
            ("retry-after", "2026-11-22T10:00:05Z", Some(s(5.0))),
            ("retry-after", "Fri, 22 Nov 2126 10:00:00 GMT", Some(s(3_155_673_600.0))),
            ("retry-after", "Mon, 31 Feb 2026 10:00:00 GMT", None),
            ("retry-after", "22 Nov", None),
        ];
        for (name, value, wanted) in rows {
            let got = retry_after(&headers(name, value), now);
            match (got, wanted) {
                (Some(got), Some(wanted)) => assert!(got.abs_diff(wanted) <= wanted / 20, "{name}: {value} is {got:?}"),
                (got, wanted) => assert_eq!(got, wanted, "{name}: {value}"),
            }
        }
        let mut both = headers("retry-after", "60");
        both.extend(headers("retry-after-ms", "200"));
        assert_eq!(retry_after(&both, now), Some(s(0.2)), "the finer one counts");
    }
}
