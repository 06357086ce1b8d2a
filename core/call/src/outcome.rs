//! What came of a call, in a few words for the user: counts from the tool, or the summary of a test runner.

mod test_run;

/// What a tool states about its outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing that its exit code and its changes do not show.
    #[default]
    Plain,
    /// What it has counted: `120 lines`.
    Counted(String),
    /// It ran programs, and one of them may be a test runner, whose summary is in the output.
    OfPrograms,
}

impl Outcome {
    /// Counted things: `1 line`, `120 lines`.
    pub fn counted(count: u64, one: &str, many: &str) -> Outcome {
        Outcome::Counted(quantity(count, one, many))
    }

    /// The words, once the whole output is known. `is_whole` is false if parts of the output are left out.
    pub(super) fn words(self, stdout: &str, stderr: &str, is_whole: bool) -> Option<String> {
        match self {
            Outcome::Plain => None,
            Outcome::Counted(words) => Some(words),
            Outcome::OfPrograms => test_run::summary(stdout, is_whole).or_else(|| test_run::summary(stderr, is_whole)),
        }
    }
}

/// `1 line`, `120 lines`.
pub fn quantity(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}
