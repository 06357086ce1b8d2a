//! What a Session's requests took: in all, on the branch as it stands, per Turn and per model.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::conversation::history::History;
use crate::protocol::event::{Cost, Fact, Usage};

/// What some requests took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Total {
    /// How many they were.
    pub requests: u64,
    /// Their tokens.
    pub usage: Usage,
    /// Their cost.
    pub cost: Cost,
}

impl Total {
    fn add(&mut self, usage: Usage, cost: Cost) {
        self.requests += 1;
        self.usage += usage;
        self.cost += cost;
    }
}

impl std::fmt::Display for Total {
    /// `1200 in (1024 cached), 96 out, 3 requests, ~$0.01`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in", self.usage.input)?;
        if self.usage.cached > 0 {
            write!(f, " ({} cached)", self.usage.cached)?;
        }
        write!(
            f,
            ", {} out, {} request{}",
            self.usage.output,
            self.requests,
            if self.requests == 1 { "" } else { "s" }
        )?;
        let cost = self.cost.to_string();
        if cost.is_empty() { Ok(()) } else { write!(f, ", {cost}") }
    }
}

/// What one Turn took.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnTotal {
    /// Its number, from 1.
    pub turn: u32,
    /// It is on the branch as it stands.
    pub on_branch: bool,
    /// What its requests took.
    #[serde(flatten)]
    pub total: Total,
}

/// What a Session took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sums {
    /// Everything.
    pub session: Total,
    /// The Turns from the root to the head.
    pub branch: Total,
    /// Each Turn, in order.
    pub turns: Vec<TurnTotal>,
    /// Each model, as `provider/model`.
    pub models: BTreeMap<String, Total>,
}

/// Adds up what a Session's entries say.
pub fn sums(history: &History) -> Sums {
    let on_branch: HashSet<u32> = history.path().filter_map(|entry| entry.turn).collect();
    let mut sums = Sums::default();
    for entry in history.entries() {
        let Fact::ProviderUsage(it) = &entry.fact else { continue };
        let (usage, cost) = (it.usage, it.cost);
        sums.session.add(usage, cost);
        let model = if it.provider.is_empty() { it.model.clone() } else { format!("{}/{}", it.provider, it.model) };
        sums.models.entry(model).or_default().add(usage, cost);
        let Some(turn) = entry.turn else { continue };
        let is_on_branch = on_branch.contains(&turn);
        if is_on_branch {
            sums.branch.add(usage, cost);
        }
        match sums.turns.last_mut().filter(|it| it.turn == turn) {
            Some(it) => it.total.add(usage, cost),
            None => {
                let mut total = Total::default();
                total.add(usage, cost);
                sums.turns.push(TurnTotal { turn, on_branch: is_on_branch, total });
            }
        }
    }
    sums
}
