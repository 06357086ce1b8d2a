//! The size that is drawn, also where the kernel does not know that of the terminal: in a container's exec, on a serial
//! line.

/// Asks for the size in cells (XTWINOPS 18).
pub(super) const ASK: &str = "\x1b[18t";
/// Asks for the place of the cursor at the far corner, which older terminals answer too. Only on a screen of pixir's own.
pub(super) const ASK_CORNER: &str = "\x1b7\x1b[999;999H\x1b[6n\x1b8";

/// The size of a terminal that says nothing.
const USUAL: (u16, u16) = (80, 24);

/// Columns and rows; `None` is not known.
pub(super) type Size = (Option<u16>, Option<u16>);

/// What is known of the size beside the kernel's word.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Hints {
    /// `COLUMNS` and `LINES`.
    environment: Size,
    /// What the terminal has reported.
    reported: Size,
}

impl Hints {
    pub(super) fn of_environment() -> Hints {
        let number = |name| std::env::var(name).ok()?.trim().parse().ok().filter(|it| *it > 0);
        Hints { environment: (number("COLUMNS"), number("LINES")), reported: (None, None) }
    }

    /// Takes in a report of the terminal.
    pub(super) fn report(&mut self, columns: u16, rows: u16) {
        self.reported = (Some(columns).filter(|it| *it > 0), Some(rows).filter(|it| *it > 0));
    }

    /// Whether the terminal has to be asked: a part of the size is known neither to the kernel nor to the environment.
    pub(super) fn miss(&self, kernel: (u16, u16)) -> bool {
        let is_missing = |told: u16, hint: Option<u16>| told == 0 && hint.is_none();
        is_missing(kernel.0, self.environment.0) || is_missing(kernel.1, self.environment.1)
    }

    /// The size to draw. The kernel's word counts wherever it is not zero, so the next change of the size corrects a guess.
    pub(super) fn settle(&self, kernel: (u16, u16)) -> (u16, u16) {
        let settle = |told: u16, environment: Option<u16>, reported: Option<u16>, usual: u16| match told {
            0 => environment.or(reported).unwrap_or(usual),
            told => told,
        };
        let Hints { environment, reported } = self;
        (settle(kernel.0, environment.0, reported.0, USUAL.0), settle(kernel.1, environment.1, reported.1, USUAL.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_comes_from_the_kernel_the_environment_a_report_or_is_the_usual_one() {
        let mut hints = Hints { environment: (None, Some(50)), reported: (None, None) };
        assert_eq!((hints.settle((0, 0)), hints.miss((0, 0))), ((80, 50), true));
        hints.report(132, 43);
        assert_eq!(hints.settle((0, 0)), (132, 50));
        assert_eq!((hints.settle((0, 24)), hints.settle((90, 0))), ((132, 24), (90, 50)));
        assert_eq!((hints.settle((1, 1)), hints.miss((1, 0))), ((1, 1), false));
        hints.report(0, 0);
        assert_eq!(hints.settle((0, 24)), (80, 24));
    }
}
