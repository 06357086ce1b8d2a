//! The programs of the tables, for a test that tries each of them.

use super::options::Takes;
use super::tables::{GIT, Known, Operands, PROGRAMS};

/// A program that runs unasked where its words are proven to only read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnaskedProgram {
    /// Its name, and that of its command: `git`, `diff`.
    pub words: Vec<&'static str>,
    /// What stands before the names of files: a pattern, or a script.
    pub before: Option<&'static str>,
    /// Its options, with their dashes, and whether they take a value. None are listed where a function of its own judges them.
    pub options: Vec<(String, Takes)>,
    /// A function of its own judges its words.
    pub is_judged_apart: bool,
}

/// Every program of the tables.
pub fn unasked_programs() -> Vec<UnaskedProgram> {
    let of = |known: &Known, git: Option<&'static str>| UnaskedProgram {
        words: git.into_iter().chain(known.program.split(' ')).collect(),
        before: match known.operands {
            Operands::PatternThenFiles => Some("x"),
            Operands::SedThenFiles => Some("p"),
            Operands::AwkThenFiles => Some("{print}"),
            Operands::JqThenFiles => Some("."),
            Operands::Files
            | Operands::OneFile
            | Operands::Text
            | Operands::Free
            | Operands::Plus
            | Operands::Words(_)
            | Operands::With(_)
            | Operands::None
            | Operands::Own => None,
        },
        options: known.options.all(),
        is_judged_apart: known.operands == Operands::Own,
    };
    PROGRAMS.iter().map(|it| of(it, None)).chain(GIT.iter().map(|it| of(it, Some("git")))).collect()
}
