//! Patterns for names of files. A file is found by its own name too, whatever a pattern would make of `[id]`, `{a}` or `*`.

use std::path::Path;

use globset::{Error, GlobBuilder, GlobMatcher};

/// A pattern, and the names that it has as they stand.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    /// As a glob, and as one in which only `*` and `?` stand for others.
    globs: Vec<GlobMatcher>,
    /// It is compared with the whole path, because it has a slash.
    pub is_of_paths: bool,
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// It is neither a glob nor a name.
    pub fn new(text: &str) -> Result<Pattern, Error> {
        let is_of_paths = text.contains('/');
        let text = text.trim_start_matches("./").to_owned();
        let build = |text: &str| GlobBuilder::new(text).literal_separator(is_of_paths).build();
        let literal: String = text.chars().fold(String::new(), |mut all, c| {
            if "[]{}!\\".contains(c) {
                all.push('\\');
            }
            all.push(c);
            all
        });
        let all = [build(&text), build(&literal)];
        let [of_globs, of_names] = all;
        let globs = match (of_globs, of_names) {
            (Ok(glob), Ok(name)) => vec![glob.compile_matcher(), name.compile_matcher()],
            (Ok(one), Err(_)) | (Err(_), Ok(one)) => vec![one.compile_matcher()],
            (Err(error), Err(_)) => return Err(error),
        };
        Ok(Pattern { text, globs, is_of_paths })
    }

    /// Whether a name, or for a pattern of paths a path, is one of those that the pattern has.
    pub fn matches(&self, path: &Path) -> bool {
        path == Path::new(&self.text) || self.globs.iter().any(|glob| glob.is_match(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: only the glob counts; only the name counts; a bracket that is not closed is an error.
    #[test]
    fn a_file_is_found_by_its_own_name() {
        for (pattern, path, wanted) in [
            ("[id].tsx", "[id].tsx", true),
            ("[id].tsx", "i.tsx", true),
            ("[id].tsx", "x.tsx", false),
            ("[...slug].ts", "[...slug].ts", true),
            ("[[...all]].vue", "[[...all]].vue", true),
            ("app/[id]/*.tsx", "app/[id]/page.tsx", true),
            ("app/**/[id]/page.tsx", "app/a/b/[id]/page.tsx", true),
            ("app/[id]/*.tsx", "app/[id]/x/page.tsx", false),
            ("(group)", "(group)", true),
            ("{a}", "{a}", true),
            ("{a,b}.c", "b.c", true),
            ("*", "*", true),
            ("a*b", "a*b", true),
            ("!x", "!x", true),
            ("[id", "[id", true),
            ("{a", "{a", true),
            ("what?", "what?", true),
            ("back\\slash", "back\\slash", true),
            ("*.rs", "main.rs", true),
            ("src/*.rs", "src/a/main.rs", false),
        ] {
            assert_eq!(Pattern::new(pattern).expect(pattern).matches(Path::new(path)), wanted, "{pattern} {path}");
        }
    }
}
