//! What a server that wants a sign-in says in its header (RFC 6750 §3, RFC 9728 §5.1).

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// What a challenge says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    pub(super) metadata: Option<String>,
    pub(super) scope: Option<String>,
}

impl Challenge {
    pub(super) fn read(header: &str) -> Challenge {
        let mut it = Challenge::default();
        for (name, value) in parameters(header) {
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => it.metadata = Some(value),
                "scope" => it.scope = Some(value).filter(|it| !it.trim().is_empty()),
                _ => {}
            }
        }
        it
    }

    pub(super) fn of(headers: &HeaderMap) -> Challenge {
        let all = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|it| it.to_str().ok());
        let bearer = all.map(Challenge::read).find(|it| *it != Challenge::default());
        bearer.unwrap_or_default()
    }
}

/// The parameters of a header, in any of its schemes. A quoted text holds none.
fn parameters(header: &str) -> Vec<(String, String)> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:?@".contains(c);
    let (mut found, mut rest) = (Vec::new(), header);
    loop {
        rest = rest.trim_start_matches(|c: char| !is_token(c));
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() {
            return found;
        }
        let Some(value) = after.trim_start().strip_prefix('=').map(str::trim_start) else {
            rest = after;
            continue;
        };
        let (value, after) = match value.strip_prefix('"') {
            Some(inner) => {
                let (mut text, mut letters) = (String::new(), inner.char_indices());
                let mut end = inner.len();
                while let Some((at, letter)) = letters.next() {
                    match letter {
                        '"' => {
                            end = at + 1;
                            break;
                        }
                        '\\' => text.extend(letters.next().map(|(_, it)| it)),
                        _ => text.push(letter),
                    }
                }
                (text, &inner[end..])
            }
            None => {
                let end = value.find([',', ' ']).unwrap_or(value.len());
                (value[..end].to_owned(), &value[end..])
            }
        };
        found.push((name.to_owned(), value));
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken build: one that finds a parameter inside of a quoted text.
    #[test]
    fn a_challenge_names_the_metadata_and_the_scope() {
        let read = |header: &str| {
            let it = Challenge::read(header);
            (it.metadata.unwrap_or_default(), it.scope.unwrap_or_default())
        };
        let both = ("https://a.example/x".to_owned(), "a b".to_owned());
        for header in [
            r#"Bearer resource_metadata="https://a.example/x", scope="a b""#,
            r#"Basic realm="y", Bearer error="insufficient_scope",Scope = "a b" , resource_metadata=https://a.example/x"#,
            r#"Bearer realm="scope=\"no\", resource_metadata=\"no\"", scope="a b", resource_metadata="https://a.example/x""#,
        ] {
            assert_eq!(read(header), both, "{header}");
        }
        for header in ["", "Bearer", "Bearer \"", "=", "Bearer realm=", "Bearer realm=\"x"] {
            assert_eq!(read(header), Default::default(), "{header}");
        }
    }
}
