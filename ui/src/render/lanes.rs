//! The layout of a tree as rows with lanes, like `git log --graph` from the oldest to the newest.
//!
//! The branch with the head has the first column from its beginning to its end. Where the conversation forks, the first
//! Turn of each branch stands beside the others, or, where there are many, each under the one before. Chains of Turns
//! that say little are one row. A layout costs time in proportion to the nodes; drawing it, to the visible rows.

/// What the layout has to know of a node. Nodes stand in an order in which a parent comes before its children.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stem {
    pub(crate) parent: Option<usize>,
    /// The node is on the path to the head.
    pub(crate) on_path: bool,
    /// The node may be part of a folded chain.
    pub(crate) folds: bool,
}

/// A row of the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) what: What,
    /// The lane of the node, or the one that forks.
    pub(crate) lane: u8,
    /// The other lanes that pass the row, one bit each.
    pub(crate) others: u64,
}

/// What a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// A node on its lane.
    Node(usize),
    /// The first node of a branch that leaves the lane to its left here.
    Branch {
        node: usize,
        /// The branch has no node above it: it is another beginning of the conversation.
        is_first: bool,
    },
    /// A chain of so many nodes, by its first.
    Chain { first: usize, count: usize },
    /// So many branches leave the lane for the lanes to its right.
    Fork {
        branches: u8,
        /// The branches have no node above them.
        is_first: bool,
    },
}

impl Row {
    /// The node that the row stands for; a chain's is the first.
    pub(crate) fn node(&self) -> Option<usize> {
        match self.what {
            What::Node(node) | What::Branch { node, .. } | What::Chain { first: node, .. } => Some(node),
            What::Fork { .. } => None,
        }
    }
}

/// The shortest chain that is worth folding.
const SHORTEST: usize = 4;
/// The most branches that leave a fork side by side.
const BESIDE: usize = 3;
/// Branches leave side by side only up to this lane.
const BESIDE_UP_TO: usize = 8;

/// A laid out tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lanes {
    pub(crate) rows: Vec<Row>,
    /// For each node, the row that shows it, or the chain that it is in.
    row_of: Vec<Option<u32>>,
    children: Vec<Vec<u32>>,
    /// The number of lanes.
    pub(crate) width: u8,
}

/// What remains to be laid out.
enum Task {
    Node {
        node: usize,
        lane: usize,
        others: u64,
        unfolded: usize,
    },
    Branch {
        node: usize,
        lane: usize,
        others: u64,
        is_first: bool,
    },
    /// `unfolded` nodes of a chain follow that is shown unfolded.
    Children {
        of: Option<usize>,
        lane: usize,
        others: u64,
        unfolded: usize,
    },
}

impl Lanes {
    /// Lays out a tree. `is_open` says whether the chain that begins with a node is shown unfolded.
    pub(crate) fn of(stems: &[Stem], is_open: impl Fn(usize) -> bool) -> Lanes {
        let mut children: Vec<Vec<u32>> = vec![Vec::new(); stems.len()];
        let mut roots: Vec<u32> = Vec::new();
        let mut sizes = vec![1_u32; stems.len()];
        for (at, stem) in stems.iter().enumerate() {
            let siblings = stem.parent.map_or(&mut roots, |parent| &mut children[parent]);
            siblings.push(u32::try_from(at).unwrap_or(u32::MAX));
        }
        // How many nodes of a chain fold from here on.
        let mut chain = vec![0_usize; stems.len()];
        for at in (0..stems.len()).rev() {
            if let Some(parent) = stems[at].parent {
                sizes[parent] += sizes[at];
            }
            if let ([child], true) = (children[at].as_slice(), stems[at].folds) {
                chain[at] = 1 + chain[*child as usize];
            }
        }
        // The branch that goes straight on: the head's, else the largest, so that few lanes are needed.
        let main_first = |siblings: &mut Vec<u32>| {
            let straight = siblings.iter().copied().max_by_key(|at| {
                let at = *at as usize;
                (stems[at].on_path, sizes[at], at)
            });
            siblings.sort_by_key(|at| (Some(*at) != straight, *at));
        };
        main_first(&mut roots);
        children.iter_mut().filter(|it| it.len() > 1).for_each(main_first);

        let mut lanes =
            Lanes { rows: Vec::with_capacity(stems.len()), row_of: vec![None; stems.len()], children, width: 1 };
        let mut tasks = vec![Task::Children { of: None, lane: 0, others: 0, unfolded: 0 }];
        while let Some(task) = tasks.pop() {
            match task {
                Task::Node { node, lane, others, unfolded } => {
                    lanes.push(What::Node(node), lane, others);
                    tasks.push(Task::Children { of: Some(node), lane, others, unfolded });
                }
                Task::Branch { node, lane, others, is_first } => {
                    lanes.push(What::Branch { node, is_first }, lane, others);
                    tasks.push(Task::Children { of: Some(node), lane, others, unfolded: 0 });
                }
                Task::Children { of, lane, others, unfolded } => {
                    let siblings = of.map_or(roots.as_slice(), |node| lanes.children[node].as_slice());
                    match *siblings {
                        [] => {}
                        [only] => {
                            let only = only as usize;
                            // The end of a branch and the beginning of the conversation are always shown.
                            let count = if of.is_some() { chain[only] } else { 0 };
                            if unfolded == 0 && count >= SHORTEST && !is_open(only) {
                                let last = lanes.fold(only, count, lane, others);
                                tasks.push(Task::Children { of: Some(last), lane, others, unfolded: 0 });
                            } else {
                                let unfolded = unfolded.max(count).saturating_sub(1);
                                tasks.push(Task::Node { node: only, lane, others, unfolded });
                            }
                        }
                        [main, ref sides @ ..] => {
                            let (main, sides) = (main as usize, sides.to_vec());
                            let is_first = of.is_none();
                            if sides.len() <= BESIDE && lane + sides.len() <= BESIDE_UP_TO {
                                lanes.beside(main, &sides, lane, others, is_first, &mut tasks);
                            } else {
                                tasks.push(Task::Node { node: main, lane, others, unfolded: 0 });
                                let others = others | bit(lane);
                                for (n, side) in sides.iter().enumerate().rev() {
                                    let (node, is_first) = (*side as usize, is_first && n == 0);
                                    tasks.push(Task::Branch { node, lane: lane + 1, others, is_first });
                                }
                            }
                        }
                    }
                }
            }
        }
        lanes
    }

    /// Forks: the first node of the branch that goes straight on, then the others from the right to the left, so that no
    /// line crosses another.
    fn beside(&mut self, main: usize, sides: &[u32], lane: usize, others: u64, is_first: bool, tasks: &mut Vec<Task>) {
        let beside = |n: usize| (1..=n).fold(0, |bits, side| bits | bit(lane + side));
        let branches = u8::try_from(sides.len()).unwrap_or(u8::MAX);
        self.push(What::Fork { branches, is_first }, lane, others);
        self.push(What::Node(main), lane, others | beside(sides.len()));
        tasks.push(Task::Children { of: Some(main), lane, others, unfolded: 0 });
        let goes_on = if self.children[main].is_empty() { 0 } else { bit(lane) };
        // The last task is the first to be done: the branch on the right.
        for (n, side) in sides.iter().enumerate() {
            let others = others | goes_on | beside(n);
            tasks.push(Task::Node { node: *side as usize, lane: lane + n + 1, others, unfolded: 0 });
        }
    }

    fn push(&mut self, what: What, lane: usize, others: u64) {
        let row = Row { what, lane: u8::try_from(lane).unwrap_or(u8::MAX), others };
        let reach = match what {
            What::Fork { branches, .. } => lane + usize::from(branches),
            What::Node(_) | What::Branch { .. } | What::Chain { .. } => lane,
        };
        self.width = self.width.max(u8::try_from(reach + 1).unwrap_or(u8::MAX));
        if let Some(node) = row.node() {
            self.row_of[node] = u32::try_from(self.rows.len()).ok();
        }
        self.rows.push(row);
    }

    /// Adds a folded chain and returns its last node.
    fn fold(&mut self, first: usize, count: usize, lane: usize, others: u64) -> usize {
        self.push(What::Chain { first, count }, lane, others);
        let mut last = first;
        for node in self.chain(first, count).collect::<Vec<_>>() {
            self.row_of[node] = self.row_of[first];
            last = node;
        }
        last
    }

    /// The nodes of a chain, from its first.
    pub(crate) fn chain(&self, first: usize, count: usize) -> impl Iterator<Item = usize> {
        let next = |at: &usize| self.children[*at].first().map(|child| *child as usize);
        std::iter::successors(Some(first), next).take(count)
    }

    /// The row that shows a node.
    pub(crate) fn row_of(&self, node: usize) -> Option<usize> {
        self.row_of.get(node).copied().flatten().map(|row| row as usize)
    }

    /// The branches that continue a node, the one that goes straight on first.
    pub(crate) fn children(&self, node: usize) -> &[u32] {
        self.children.get(node).map_or(&[], Vec::as_slice)
    }
}

fn bit(lane: usize) -> u64 {
    1_u64.checked_shl(u32::try_from(lane).unwrap_or(u32::MAX)).unwrap_or(0)
}

/// A part of a row's lines, and the lane that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stroke {
    pub(crate) text: &'static str,
    pub(crate) lane: usize,
}

/// The lines of a row, two columns for each lane. The node's mark, which is the caller's, stands at `lane`.
pub(crate) fn strokes(row: &Row) -> Vec<Stroke> {
    let (lane, is_open) = (usize::from(row.lane), |at: usize| row.others & bit(at) != 0);
    let stroke = |text, lane| Stroke { text, lane };
    let passing = |at: usize| stroke(if is_open(at) { "│ " } else { "  " }, at);
    let mut strokes: Vec<Stroke> = Vec::new();
    match row.what {
        What::Node(_) | What::Chain { .. } => {
            strokes.extend((0..lane).map(passing));
            strokes.push(stroke("", lane));
            let last = (lane + 1..u64::BITS as usize).rev().find(|at| is_open(*at)).unwrap_or(lane);
            strokes.extend((lane + 1..=last).map(passing));
        }
        What::Branch { is_first, .. } => {
            let from = lane.saturating_sub(1);
            strokes.extend((0..from).map(passing));
            strokes.push(stroke(if is_first { "╭" } else { "├" }, from));
            strokes.push(stroke("─", lane));
            strokes.push(stroke("", lane));
        }
        What::Fork { branches, is_first } => {
            strokes.extend((0..lane).map(passing));
            strokes.push(stroke(if is_first { "╭" } else { "├" }, lane));
            for side in 1..=usize::from(branches) {
                let corner = if side == usize::from(branches) { "─╮" } else { "─┬" };
                strokes.push(stroke(corner, lane + side));
            }
        }
    }
    strokes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(lanes: &Lanes) -> String {
        let line = |row: &Row| {
            let mark = match row.what {
                What::Node(node) | What::Branch { node, .. } => format!("{node} "),
                What::Chain { count, .. } => format!("…{count} "),
                What::Fork { .. } => String::new(),
            };
            let parts =
                strokes(row).into_iter().map(|it| if it.text.is_empty() { mark.clone() } else { it.text.into() });
            parts.collect::<String>().trim_end().to_owned()
        };
        lanes.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    fn stems(parents: &[Option<usize>], head: Option<usize>) -> Vec<Stem> {
        let mut stems: Vec<Stem> =
            parents.iter().map(|parent| Stem { parent: *parent, on_path: false, folds: false }).collect();
        let mut at = head;
        while let Some(node) = at {
            stems[node].on_path = true;
            at = stems[node].parent;
        }
        stems
    }

    #[test]
    fn the_head_s_branch_is_the_first_column_and_forks_stand_beside_each_other() {
        let parents = [None, Some(0), Some(1), Some(1), Some(3), Some(2), Some(5), Some(5), Some(6)];
        let lanes = Lanes::of(&stems(&parents, Some(8)), |_| true);
        assert_eq!(drawn(&lanes), "0\n1\n├─╮\n2 │\n│ 3\n│ 4\n5\n├─╮\n6 │\n│ 7\n8");
    }

    #[test]
    fn many_branches_of_one_turn_stand_under_each_other() {
        let parents = [None, Some(0), Some(0), Some(0), Some(0), Some(0), Some(5)];
        let lanes = Lanes::of(&stems(&parents, Some(6)), |_| true);
        assert_eq!(drawn(&lanes), "0\n├─1\n├─2\n├─3\n├─4\n5\n6");
    }

    #[test]
    fn a_first_prompt_that_was_edited_is_another_beginning() {
        let lanes = Lanes::of(&stems(&[None, None, Some(1)], Some(2)), |_| true);
        assert_eq!(drawn(&lanes), "╭─╮\n1 │\n│ 0\n2");
    }

    #[test]
    fn a_chain_that_says_little_is_one_row_until_it_is_opened() {
        let mut all = stems(&[None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)], Some(6));
        (1..=5).for_each(|at| all[at].folds = true);
        let folded = Lanes::of(&all, |_| false);
        assert_eq!(drawn(&folded), "0\n…5\n6");
        assert_eq!(folded.row_of(3), Some(1));
        assert_eq!(Lanes::of(&all, |at| at == 1).rows.len(), 7);
    }

    /// Follows the lines from a row upwards to the node that they lead to.
    fn above(lanes: &Lanes, mut row: usize) -> Option<usize> {
        let start = lanes.rows[row];
        let mut lane = usize::from(start.lane);
        if let What::Branch { is_first, .. } = start.what {
            if is_first {
                return None;
            }
            lane -= 1;
        }
        while row > 0 {
            row -= 1;
            let here = lanes.rows[row];
            let own = usize::from(here.lane);
            match here.what {
                What::Fork { branches, is_first } if (own..=own + usize::from(branches)).contains(&lane) => {
                    if is_first {
                        return None;
                    }
                    lane = own;
                }
                What::Branch { is_first: true, .. } if own == lane + 1 => return None,
                What::Node(node) | What::Branch { node, .. } if own == lane => return Some(node),
                What::Chain { first, count } if own == lane => return lanes.chain(first, count).last(),
                _ if here.others & bit(lane) != 0 => {}
                _ => return None,
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_lines_of_any_tree_lead_from_each_turn_to_the_one_before(
            choices in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..12, any::<bool>()), 1..120),
            head in any::<prop::sample::Index>(),
        ) {
            let parents: Vec<Option<usize>> = choices.iter().enumerate().map(|(at, (index, kind, _))| match kind {
                0 => None,
                1..=3 => at.checked_sub(1).map(|_| index.index(at)),
                _ => at.checked_sub(1),
            }).collect();
            let mut stems = stems(&parents, Some(head.index(parents.len())));
            for (stem, (.., folds)) in stems.iter_mut().zip(&choices) {
                stem.folds = *folds;
            }
            let lanes = Lanes::of(&stems, |_| false);
            let mut shown = vec![0; stems.len()];
            for (at, row) in lanes.rows.iter().enumerate() {
                let nodes: Vec<usize> = match row.what {
                    What::Chain { first, count } => lanes.chain(first, count).collect(),
                    _ => row.node().into_iter().collect(),
                };
                prop_assert_eq!(row.others & bit(usize::from(row.lane)), 0, "a lane passes a node");
                for node in &nodes {
                    shown[*node] += 1;
                    prop_assert_eq!(lanes.row_of(*node), Some(at));
                    prop_assert!(!stems[*node].on_path || row.lane == 0, "the head's branch is the first column");
                    prop_assert!(nodes.len() == 1 || lanes.children(*node).len() == 1, "a chain has no fork");
                }
                if let Some(first) = nodes.first() {
                    prop_assert_eq!(above(&lanes, at), stems[*first].parent, "row {} of\n{}", at, drawn(&lanes));
                }
                // No line of a branch crosses another lane.
                let crossed = match row.what {
                    What::Fork { branches, .. } => {
                        (1..=usize::from(branches)).any(|n| row.others & bit(usize::from(row.lane) + n) != 0)
                    }
                    What::Node(_) | What::Branch { .. } | What::Chain { .. } => false,
                };
                prop_assert!(!crossed, "crossing lanes at row {} of\n{}", at, drawn(&lanes));
            }
            prop_assert!(shown.iter().all(|times| *times == 1), "each turn once: {:?}", shown);
            let bound = BESIDE_UP_TO + 2 + stems.len().ilog2() as usize;
            prop_assert!(usize::from(lanes.width) <= bound, "{} lanes for {} turns", lanes.width, stems.len());
        }
    }
}
