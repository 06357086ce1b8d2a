//! Two places of the tree beside each other: what both share, and what only one has.

use super::Tree;

/// What two nodes of a tree share, and what only one has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The last node that both share.
    pub common: Option<usize>,
    /// The nodes that follow it on the way to the first.
    pub left: Vec<usize>,
    /// The nodes that follow it on the way to the second.
    pub right: Vec<usize>,
}

impl Tree {
    /// Compares the conversations that end with these two nodes.
    pub fn compare(&self, left: usize, right: usize) -> Comparison {
        let (mut left, mut right) = (self.path(left), self.path(right));
        let shared = left.iter().zip(&right).take_while(|(a, b)| a == b).count();
        let common = shared.checked_sub(1).map(|last| left[last]);
        Comparison { common, left: left.split_off(shared), right: right.split_off(shared) }
    }

    /// The Entries of some nodes, in order.
    pub fn entries_of(&self, nodes: &[usize]) -> Vec<u64> {
        nodes.iter().flat_map(|node| self.entries(*node)).map(|entry| entry.seq).collect()
    }

    /// The nodes from the beginning of the conversation to this one.
    fn path(&self, node: usize) -> Vec<usize> {
        let mut path: Vec<usize> =
            std::iter::successors(Some(node), |at| self.parents.get(*at).copied().flatten()).collect();
        path.reverse();
        path
    }
}
