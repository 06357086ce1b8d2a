//! The rows of each cell: exact once the cell is laid out at this width, estimated before.
//!
//! A Fenwick tree (P. Fenwick, 1994): update, sum and search take O(log n) for n cells.

/// An estimate without layout: text of `columns` columns, and `rows` more rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guess {
    pub(crate) columns: u32,
    pub(crate) rows: u16,
}

impl Guess {
    fn at(self, width: usize) -> u32 {
        let width = u32::try_from(width).unwrap_or(u32::MAX).max(1);
        self.columns.div_ceil(width) + u32::from(self.rows)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Heights {
    guesses: Vec<Guess>,
    /// The current rows of each cell, exact or estimated.
    rows: Vec<u32>,
    /// `tree[i]` is the sum of the `lowest_bit(i + 1)` cells that end with `i`.
    tree: Vec<u32>,
    width: usize,
}

fn lowest_bit(n: usize) -> usize {
    n & n.wrapping_neg()
}

impl Heights {
    pub(crate) fn push(&mut self, guess: Guess) {
        // Before the first frame there is no width; `at_width` replaces these heights.
        let rows = if self.width == 0 { 1 } else { guess.at(self.width) };
        self.guesses.push(guess);
        let at = self.tree.len();
        // The new node also sums the cells before it that it covers. No earlier node covers a later cell.
        let below = self.above(at) - self.above(at + 1 - lowest_bit(at + 1));
        self.rows.push(rows);
        self.tree.push(u32::try_from(below).unwrap_or(u32::MAX).saturating_add(rows));
    }

    pub(crate) fn truncate(&mut self, length: usize) {
        self.guesses.truncate(length);
        self.rows.truncate(length);
        self.tree.truncate(length);
    }

    /// The width has changed: all heights are estimates again.
    pub(crate) fn at_width(&mut self, width: usize) {
        if self.width == width {
            return;
        }
        self.width = width;
        self.rows = self.guesses.iter().map(|guess| guess.at(width)).collect();
        self.tree.clone_from(&self.rows);
        // Builds the tree in O(n): each node adds itself to its parent, which comes later.
        for at in 0..self.tree.len() {
            let parent = at + lowest_bit(at + 1);
            if parent < self.tree.len() {
                self.tree[parent] = self.tree[parent].saturating_add(self.tree[at]);
            }
        }
    }

    /// The exact height of a cell.
    pub(crate) fn set(&mut self, cell: usize, rows: usize) {
        let Some(there) = self.rows.get_mut(cell) else { return };
        let rows = u32::try_from(rows).unwrap_or(u32::MAX);
        let before = std::mem::replace(there, rows);
        if before == rows {
            return;
        }
        let mut at = cell;
        while at < self.tree.len() {
            self.tree[at] = self.tree[at].saturating_add(rows).saturating_sub(before);
            at += lowest_bit(at + 1);
        }
    }

    /// The sum of the rows of the first `cells` cells.
    pub(crate) fn above(&self, cells: usize) -> usize {
        let (mut sum, mut at) = (0, cells.min(self.tree.len()));
        while at > 0 {
            sum += self.tree[at - 1] as usize;
            at -= lowest_bit(at);
        }
        sum
    }

    /// The cell that holds this row, and the row in it. Past the end it is the position after the last cell.
    pub(crate) fn find(&self, row: usize) -> (usize, usize) {
        let (mut at, mut left) = (0, row);
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            if at + step <= self.tree.len() && self.tree[at + step - 1] as usize <= left {
                at += step;
                left -= self.tree[at - 1] as usize;
            }
            step /= 2;
        }
        (at, left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_searches_are_those_of_a_plain_list() {
        let mut heights = Heights::default();
        let mut plain: Vec<usize> = Vec::new();
        heights.at_width(10);
        for i in 0..500_u32 {
            heights.push(Guess { columns: i % 37, rows: 1 });
            plain.push((i % 37).div_ceil(10) as usize + 1);
            if i % 3 == 0 {
                let at = (i as usize * 7) % plain.len();
                heights.set(at, i as usize % 11);
                plain[at] = i as usize % 11;
            }
            if i % 50 == 49 {
                heights.truncate(plain.len() - 3);
                plain.truncate(plain.len() - 3);
            }
        }
        let mut sum = 0;
        for (at, rows) in plain.iter().enumerate() {
            assert_eq!(heights.above(at), sum);
            for row in 0..*rows {
                assert_eq!(heights.find(sum + row), (at, row));
            }
            sum += rows;
        }
        assert_eq!(heights.find(sum), (plain.len(), 0));
        heights.at_width(5);
        assert_eq!(heights.above(1), 1);
    }
}
