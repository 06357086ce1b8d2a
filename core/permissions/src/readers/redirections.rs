//! Redirections.

use std::path::{Path, PathBuf};

use super::walk::Walk;
use super::words;
use crate::shell::{PartKind, Token, TokenKind};

impl<'a> Walk<'a> {
    /// A redirection that neither writes a file nor reads one outside the workspace.
    pub(super) fn redirection(&self, token: &Token<'a>) -> Result<(), String> {
        let source = token.span.source;
        let TokenKind::Redirection(target) = &token.kind else {
            return Err(match token.kind {
                TokenKind::HereDocument => "a here-document is not judged".into(),
                TokenKind::Parenthesis => "it holds `(`, which is not judged".into(),
                TokenKind::Word(_) | TokenKind::Operator(_) | TokenKind::Redirection(_) => words::holds(source),
            });
        };
        let Some(word) = target else { return Err("a redirection has no target".into()) };
        let operator = source[..source.len() - word.span.source.len()].trim_end_matches([' ', '\t']);
        let kind = operator.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = &operator[..operator.len() - kind.len()];
        let target = word.span.source;
        match kind {
            // Only the three streams that every program has: another number may be one of bash's own.
            _ if !["", "0", "1", "2"].contains(&number) => Err("it redirects a stream of another number".into()),
            ">&" if ["1", "2"].contains(&target) => Ok(()),
            ">" | ">>" | ">|" | "&>" | "&>>" if target == "/dev/null" => Ok(()),
            "<" if number != "1" && number != "2" => {
                let folders: Vec<&Path> = self.now.iter().map(PathBuf::as_path).collect();
                let words = words::arguments(word, &self.loops, &folders, self.ground)?;
                let [word] = words.as_slice() else { return Err("a redirection has no single target".into()) };
                if word.has_unknown {
                    return Err(words::holds(target));
                }
                if target == "/dev/null" {
                    return Ok(());
                }
                for folder in folders {
                    self.ground.locate(&word.text, folder)?;
                }
                Ok(())
            }
            "<<<" => {
                let has_glob = word.parts.iter().any(|it| it.kind == PartKind::Glob);
                if has_glob {
                    Err(words::holds(target))
                } else {
                    words::arguments(word, &self.loops, &[], self.ground).map(drop)
                }
            }
            "<<" | "<<-" => Err("a here-document is not judged".into()),
            ">" | ">>" | ">|" | "&>" | "&>>" | ">&" | "<>" => {
                let shown = word
                    .parts
                    .iter()
                    .map(|it| it.text())
                    .collect::<Option<String>>()
                    .unwrap_or_else(|| target.to_owned());
                Err(format!("writes {}", shown.escape_debug()))
            }
            _ => Err(words::holds(source)),
        }
    }
}
