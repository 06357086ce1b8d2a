//! How much of a result a model reads.

/// The least that a small window leaves of a result, bytes.
const LEAST: usize = 800;

/// How much of a stream a model reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The most bytes.
    pub bytes: usize,
    /// The most lines.
    pub lines: u64,
    /// How many tenths of the budget go to the start of a program's output; the rest goes to its end, where the outcome
    /// of a test run is. Text from files has its start only, because the model can read on.
    pub(super) start_tenths: u64,
    pub(super) explore: Explore,
}

/// How much of its results a model reads, as the user set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimits {
    /// The most bytes of the result of a typed tool.
    pub output_bytes: usize,
    /// The most bytes of a page of a file.
    pub page_bytes: usize,
    /// The most bytes of the result of `run`.
    pub run_bytes: usize,
    /// The most lines of the result of `run`.
    pub run_lines: u64,
}

impl Default for ResultLimits {
    fn default() -> ResultLimits {
        ResultLimits {
            output_bytes: Budget::TYPED.bytes,
            page_bytes: Budget::PAGE.bytes,
            run_bytes: Budget::RUN.bytes,
            run_lines: Budget::RUN.lines,
        }
    }
}

impl ResultLimits {
    /// The same, with at most so many bytes of each result.
    pub fn at_most(self, bytes: usize) -> ResultLimits {
        let bytes = bytes.max(LEAST);
        ResultLimits {
            output_bytes: self.output_bytes.min(bytes),
            page_bytes: self.page_bytes.min(bytes),
            run_bytes: self.run_bytes.min(bytes),
            run_lines: self.run_lines,
        }
    }

    pub fn typed(self) -> Budget {
        Budget { bytes: self.output_bytes, ..Budget::TYPED }
    }

    pub fn page(self) -> Budget {
        Budget { bytes: self.page_bytes, ..Budget::PAGE }
    }

    pub fn run(self) -> Budget {
        Budget { bytes: self.run_bytes, lines: self.run_lines, ..Budget::RUN }
    }
}

/// The toolset whose calls are suggested for reading the omitted part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Explore {
    Typed,
    Run,
}

impl Budget {
    /// The budget of a typed tool, unless the user set another.
    pub const TYPED: Budget = Budget { bytes: 16_000, lines: u64::MAX, start_tenths: 2, explore: Explore::Typed };
    /// The budget of a page of a file, likewise.
    pub const PAGE: Budget = Budget { bytes: 48 << 10, lines: u64::MAX, start_tenths: 10, explore: Explore::Typed };
    /// The budget of `run`, likewise.
    pub const RUN: Budget = Budget { bytes: 51_200, lines: 200, start_tenths: 2, explore: Explore::Run };

    /// The budget of stderr, mostly for its end, which usually holds the reason of a failure.
    pub const fn stderr(self) -> Budget {
        let bytes = if self.bytes < 16_000 { self.bytes / 2 } else { 8_000 };
        Budget { bytes, lines: 100, start_tenths: 3, explore: self.explore }
    }

    pub(super) fn share(self, tenths: u64) -> (usize, u64) {
        let lines = if self.lines == u64::MAX { u64::MAX } else { self.lines * tenths / 10 };
        (self.bytes * usize::try_from(tenths).unwrap_or(10) / 10, lines)
    }
}
