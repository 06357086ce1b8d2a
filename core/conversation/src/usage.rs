//! Tokens and cost of a Session's requests: in total, on the current branch, per Turn and per model.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use crate::history::History;
use protocol::event::{Cost, Fact, Usage};

/// The sum over some requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Total {
    /// The number of requests.
    pub requests: u64,
    /// The tokens of the requests.
    pub usage: Usage,
    /// The cost of the requests.
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

/// The sum over the requests of one Turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TurnTotal {
    /// The number of the Turn, from 1.
    pub turn: u32,
    /// Whether the Turn is on the current branch.
    pub on_branch: bool,
    /// The sum over the Turn's requests.
    #[serde(flatten)]
    pub total: Total,
}

/// The sums of a Session.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sums {
    /// All requests of the Session, on every branch.
    pub session: Total,
    /// The requests of the Turns from the root to the Head.
    pub branch: Total,
    /// The Turns, in order.
    pub turns: Vec<TurnTotal>,
    /// The sum for each model, by its name as `provider/model`.
    pub models: BTreeMap<String, Total>,
}

/// Sums up the usage that a Session's Entries record.
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
