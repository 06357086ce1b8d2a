//! The output of a running program so far, with its colours.

use serde::{Deserialize, Serialize};

use super::Colouring;

/// The most changes of colour that are stored. With more, the whole text becomes plain.
const MOST_COLOURS: usize = 4_000;

/// Text and the colours that the program set in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Printed {
    /// The text, made safe to show.
    pub text: String,
    /// The changes of colour, ordered by their byte offset in `text`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub colours: Vec<Colouring>,
}

impl Printed {
    /// Appends output. The last colour continues until the output changes it.
    pub fn push(&mut self, next: &Printed) {
        let begin = self.text.len() as u64;
        self.text.push_str(&next.text);
        self.colours.extend(next.colours.iter().map(|it| Colouring { at: begin + it.at, sgr: it.sgr.clone() }));
        if self.colours.len() > MOST_COLOURS {
            self.colours = vec![Colouring { at: 0, sgr: "0".to_owned() }];
        }
    }

    /// Cuts the text to its last `most` bytes once it exceeds twice that length, so that the cost of cutting stays
    /// small.
    pub fn keep_end(&mut self, most: usize) {
        if self.text.len() <= 2 * most {
            return;
        }
        let from = self.text.ceil_char_boundary(self.text.len() - most);
        self.text.drain(..from);
        let from = from as u64;
        let gone = self.colours.partition_point(|it| it.at <= from);
        // Colours that were set before the cut and not reset since apply from the start.
        let reset = self.colours[..gone].iter().rposition(|it| it.sgr.is_empty() || it.sgr == "0");
        self.colours.drain(..reset.map_or(0, |at| at + 1));
        self.colours.iter_mut().for_each(|it| it.at = it.at.saturating_sub(from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, colours: &[(u64, &str)]) -> Printed {
        let colours = colours.iter().map(|(at, sgr)| Colouring { at: *at, sgr: (*sgr).to_owned() }).collect();
        Printed { text: text.to_owned(), colours }
    }

    #[test]
    fn what_is_kept_of_the_end_looks_as_it_did() {
        let mut all = of("ab", &[(1, "1")]);
        all.push(&of("cd", &[(0, "31"), (2, "0")]));
        assert_eq!(all, of("abcd", &[(1, "1"), (2, "31"), (4, "0")]));
        all.keep_end(2);
        assert_eq!(all.text, "abcd", "up to twice as many");
        all.push(&of("efghi", &[(1, "32")]));
        all.keep_end(4);
        assert_eq!(all, of("fghi", &[(0, "32")]), "what was taken back is over");
        all.push(&of("jklm", &[(3, "4")]));
        all.keep_end(3);
        assert_eq!(all, of("klm", &[(0, "32"), (2, "4")]), "and what was not goes on");
        let mut flood = Printed::default();
        for _ in 0..5_000 {
            flood.push(&of("x", &[(0, "31")]));
        }
        assert!(flood.text.len() == 5_000 && flood.colours.len() <= MOST_COLOURS);
    }
}
