//! Small languages inside a word: scripts of sed, programs of awk, filters of jq, formats of printf.

/// A script of sed that only prints, deletes and replaces.
pub(super) fn check_sed(script: &str) -> Result<(), String> {
    let wrong = || "sed with this script is not known to be read-only".to_owned();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\n']);
        if rest.is_empty() {
            return Ok(());
        }
        rest = address(rest).ok_or_else(wrong)?;
        if let Some(second) = rest.strip_prefix(',') {
            rest = address(second.trim_start_matches(' ')).ok_or_else(wrong)?;
        }
        rest = rest.trim_start_matches([' ', '!']);
        let mut chars = rest.chars();
        rest = match chars.next() {
            Some('p' | 'd' | 'q' | '=' | 'P' | 'D' | 'N' | 'n' | 'l' | 'h' | 'H' | 'g' | 'G' | 'x') => chars.as_str(),
            Some('s') => {
                let mark = chars.next().filter(|c| c.is_ascii_punctuation() && *c != '\\').ok_or_else(wrong)?;
                let after = behind_regex(chars.as_str(), mark).and_then(|rest| until(rest, mark)).ok_or_else(wrong)?;
                after.trim_start_matches(|c: char| "gpiI".contains(c) || c.is_ascii_digit())
            }
            Some(_) | None => return Err(wrong()),
        };
        rest = rest.trim_start_matches(' ');
        if !rest.is_empty() && !rest.starts_with([';', '\n']) {
            return Err(wrong());
        }
    }
}

/// What stands behind an address, which may be missing.
fn address(rest: &str) -> Option<&str> {
    match rest.chars().next()? {
        '/' => Some(behind_regex(&rest[1..], '/')?.trim_start_matches('I')),
        '$' => Some(&rest[1..]),
        _ => Some(rest.trim_start_matches(|c: char| c.is_ascii_digit() || "~+".contains(c))),
    }
}

/// The rest behind a regular expression, where every sed lets it end at the same place: GNU's takes a mark between brackets
/// for a part of it, so that `s/[/]/g;/w x/p` writes `x/p`.
fn behind_regex(text: &str, mark: char) -> Option<&str> {
    let rest = until(text, mark)?;
    let regex = &text[..text.len() - rest.len() - mark.len_utf8()];
    let mut chars = regex.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => chars = behind_bracket(chars.as_str())?.chars(),
            _ => {}
        }
    }
    Some(rest)
}

/// The rest behind a list of characters, without its first bracket; `None` where it is not closed, or not for every reader.
fn behind_bracket(text: &str) -> Option<&str> {
    let text = text.strip_prefix('^').unwrap_or(text);
    // A bracket that stands first belongs to the list.
    let mut rest = text.strip_prefix(']').unwrap_or(text);
    loop {
        let mut chars = rest.chars();
        match (chars.next()?, chars.next()) {
            (']', _) => return Some(&rest[1..]),
            ('[', Some(kind @ (':' | '.' | '='))) => {
                rest = chars.as_str().split_once(&format!("{kind}]")).map(|(_, behind)| behind)?;
            }
            ('\\', Some(']')) => return None,
            ('\\', Some('\\')) => rest = &rest[2..],
            (c, _) => rest = &rest[c.len_utf8()..],
        }
    }
}

/// What stands behind the next such character that no backslash quotes.
fn until(text: &str, mark: char) -> Option<&str> {
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '\\' => {
                chars.next()?;
            }
            c if c == mark => return Some(chars.as_str()),
            _ => {}
        }
    }
}

/// A program of awk that runs no program and names no file.
pub(super) fn check_awk(program: &str) -> Result<(), String> {
    let words = [
        "system",
        "getline",
        "close",
        "fflush",
        "ARGV",
        "ARGC",
        "@",
        "BEGINFILE",
        "SYMTAB",
        "FUNCTAB",
        "PROCINFO",
        "extension",
    ];
    let rest = program.replace("||", "");
    let is_bad = words.iter().any(|word| rest.contains(word))
        || rest.contains('|')
        || (rest.contains('>') && rest.contains("print"));
    if is_bad { Err("awk with this program is not known to be read-only".into()) } else { Ok(()) }
}

/// A filter of jq that takes in no other file.
pub(super) fn check_jq(filter: &str) -> Result<(), String> {
    let is_bad = ["import", "include", "modulemeta", "input_filename", "get_search_list"]
        .iter()
        .any(|word| filter.contains(word));
    if is_bad { Err("jq with this filter is not known to be read-only".into()) } else { Ok(()) }
}

/// A format of printf without `%n`, which assigns a variable and evaluates its index.
pub(super) fn check_printf(format: &str) -> Result<(), String> {
    let mut pieces = format.split('%').skip(1);
    while let Some(piece) = pieces.next() {
        let directive = piece.trim_start_matches(|c: char| "-+ #0'.*hlLjzt".contains(c) || c.is_ascii_digit());
        match directive.chars().next() {
            Some(c) if "sdiuoxXcbqeEfgGaA(".contains(c) => {}
            // `%%`
            None if piece.is_empty() => {
                pieces.next();
            }
            Some(_) | None => return Err("printf with this format is not known to be read-only".into()),
        }
    }
    Ok(())
}
