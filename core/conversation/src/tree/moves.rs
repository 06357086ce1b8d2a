//! Where the head was before its moves, as an editor keeps its jumps: back, and forward again.

use crate::history::Jump;

/// The places to which the head can go back, and those from which it came back. The next one is the last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Moves {
    /// Where the head stood before.
    pub back: Vec<Option<u64>>,
    /// Where it stood before it went back.
    pub forward: Vec<Option<u64>>,
}

/// Reads the recorded moves of the head. A move to where the head last was is a way back, and none that is new.
pub fn moves(jumps: &[Jump]) -> Moves {
    let mut moves = Moves::default();
    for jump in jumps {
        if moves.back.last() == Some(&jump.to) {
            moves.back.pop();
            moves.forward.push(jump.from);
        } else if moves.forward.last() == Some(&jump.to) {
            moves.forward.pop();
            moves.back.push(jump.from);
        } else {
            moves.forward.clear();
            moves.back.push(jump.from);
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn going_back_and_forward_ends_where_it_began() {
        let jump = |from, to| Jump { seq: 0, from: Some(from), to: Some(to) };
        let way = [jump(9, 3), jump(5, 1), jump(1, 5), jump(5, 9), jump(9, 5)];
        let seen: Vec<(Vec<u64>, Vec<u64>)> = (1..=way.len())
            .map(|n| {
                let Moves { back, forward } = moves(&way[..n]);
                (back.into_iter().flatten().collect(), forward.into_iter().flatten().collect())
            })
            .collect();
        let expected: [(&[u64], &[u64]); 5] = [(&[9], &[]), (&[9, 5], &[]), (&[9], &[1]), (&[], &[1, 5]), (&[9], &[1])];
        assert_eq!(seen, expected.map(|(back, forward)| (back.to_vec(), forward.to_vec())));
        let elsewhere = [jump(9, 3), jump(3, 9), jump(9, 7)];
        assert_eq!(moves(&elsewhere), Moves { back: vec![Some(9)], forward: Vec::new() });
    }
}
