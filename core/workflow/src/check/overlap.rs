//! Whether two globs can match the same file.

/// A part of a glob, as far as it matters for what two globs can match together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Letter(char),
    /// One letter, whichever.
    One,
    /// Any text.
    Any,
}

fn parts(glob: &str) -> Vec<Part> {
    let mut all = Vec::new();
    let mut letters = glob.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '*' => {
                while letters.next_if_eq(&'*').is_some() {}
                // `**/` matches no folder too.
                letters.next_if_eq(&'/');
                all.push(Part::Any);
            }
            '?' => all.push(Part::One),
            '[' => {
                letters.by_ref().find(|it| *it == ']');
                all.push(Part::One);
            }
            '{' => {
                letters.by_ref().find(|it| *it == '}');
                all.push(Part::Any);
            }
            '\\' => all.extend(letters.next().map(Part::Letter)),
            _ => all.push(Part::Letter(letter)),
        }
    }
    all
}

/// Whether two globs can match the same file. Sets of letters and alternatives count as any text, so it errs towards yes.
pub(super) fn overlap(a: &str, b: &str) -> bool {
    let (a, b) = (parts(a), parts(b));
    // `reached[j]`: the parts of `a` so far and the first `j` parts of `b` can be the same text.
    let mut reached: Vec<bool> = (0..=b.len()).map(|j| b[..j].iter().all(|it| *it == Part::Any)).collect();
    for one in &a {
        let mut next = vec![reached[0] && *one == Part::Any];
        for (j, other) in b.iter().enumerate() {
            next.push(match (one, other) {
                (Part::Any, _) | (_, Part::Any) => reached[j + 1] || next[j],
                (Part::Letter(one), Part::Letter(other)) => reached[j] && one == other,
                (Part::One, _) | (_, Part::One) => reached[j],
            });
        }
        reached = next;
    }
    reached[b.len()]
}
