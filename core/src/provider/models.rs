//! What is known of models: windows, efforts, prices. What a person says in `[models]` counts for more.

use crate::config::ModelConfig;
use crate::protocol::error::{Code, Error, Result};
use crate::protocol::event::{Cost, Usage};

mod table; // the models that are known

use table::KNOWN;

/// How hard a model can think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// Not at all.
    None,
    /// As good as not.
    Minimal,
    /// A little.
    Low,
    /// Moderately.
    Medium,
    /// Much.
    High,
    /// Very much.
    XHigh,
    /// Without restraint.
    Max,
}

impl Effort {
    /// Every level, the least first.
    pub const ALL: [Effort; 7] =
        [Effort::None, Effort::Minimal, Effort::Low, Effort::Medium, Effort::High, Effort::XHigh, Effort::Max];

    /// The name on the command line and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Effort::None => "none",
            Effort::Minimal => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
            Effort::XHigh => "xhigh",
            Effort::Max => "max",
        }
    }

    /// The level with this name.
    ///
    /// # Errors
    /// `INVALID_ARGS`, with the names that exist.
    pub fn parse(name: &str) -> Result<Effort> {
        Effort::ALL.into_iter().find(|it| it.name() == name).ok_or_else(|| {
            let names = Effort::ALL.map(Effort::name).join(", ");
            let message = format!("there is no effort `{}`", name.escape_debug());
            Error::new(Code::InvalidArgs, message, format!("use one of: {names}")).with("input", name)
        })
    }
}

/// How a model of the Messages dialect is told to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It cannot.
    Never,
    /// It is given tokens for it.
    Budget,
    /// It is told how hard, and decides itself; untold it does not think.
    Wished,
    /// It is told how hard, and decides itself; it thinks in any case.
    Always,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Sent, and not cached.
    pub input: f64,
    /// Sent, and read from the cache.
    pub cached: f64,
    /// Sent, and written to the cache.
    pub cache_written: f64,
    /// Answered.
    pub output: f64,
}

impl Price {
    /// What a request cost, as far as the base price tells.
    pub fn of(&self, usage: &Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached).saturating_sub(usage.cache_written);
        let parts = [
            (fresh, self.input),
            (usage.cached, self.cached),
            (usage.cache_written, self.cache_written),
            (usage.output, self.output),
        ];
        let usd: f64 = parts.iter().map(|(tokens, price)| *tokens as f64 * price / 1e6).sum();
        // A billionth of a dollar is as fine as anybody counts.
        (usd * 1e9).round() / 1e9
    }
}

/// What is known of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Tokens of its window.
    pub window: Option<u64>,
    /// Tokens of its longest answer.
    pub max_output: Option<u64>,
    /// It can look at images. One that is not known to be blind is believed to.
    pub sees_images: bool,
    /// Efforts that it takes, the least first; unknown is not the same as none.
    pub efforts: Option<Vec<Effort>>,
    /// How it is told to think, in the Messages dialect.
    pub thinking: Thinking,
    /// What it costs.
    pub price: Option<Price>,
}

impl Default for Facts {
    /// Of a model that nobody here has heard of.
    fn default() -> Facts {
        Facts {
            window: None,
            max_output: None,
            sees_images: true,
            efforts: None,
            thinking: Thinking::Never,
            price: None,
        }
    }
}

/// A row of the table.
struct Known {
    /// What its names begin with.
    name: &'static str,
    /// The domain at which the price holds.
    maker: &'static str,
    window: u64,
    /// 0 where no source says.
    max_output: u64,
    sees_images: bool,
    /// Efforts that it takes; `None` where no source says.
    efforts: Option<&'static [Effort]>,
    thinking: Thinking,
    /// Input, read from the cache, written to it, output; `None` for a family, whose members differ.
    price: Option<[f64; 4]>,
}

impl Facts {
    /// What is known of a model at a host, and what a person said of it.
    pub fn of(model: &str, host: &str, said: Option<&ModelConfig>) -> Facts {
        let mut facts = built_in(model, host);
        if let Some(said) = said {
            facts.window = said.window.or(facts.window);
            facts.max_output = said.max_output.or(facts.max_output);
            facts.sees_images = said.vision.unwrap_or(facts.sees_images);
            if let Some(efforts) = &said.efforts {
                facts.efforts = Some(efforts.iter().filter_map(|name| Effort::parse(name).ok()).collect());
            }
            if let Some(price) = said.price {
                facts.price = Some(price.into());
            }
        }
        facts
    }

    /// What a wished effort is called for this model: the highest that it takes and that is not more than was wished,
    /// else the least. Nothing for a model that takes none.
    pub fn effort(&self, wished: Option<&str>) -> Option<&'static str> {
        let wished = Effort::parse(wished?).ok()?;
        let Some(takes) = &self.efforts else { return Some(wished.name()) };
        let most = takes.iter().copied().filter(|effort| *effort <= wished).max();
        most.or_else(|| takes.iter().copied().min()).map(Effort::name)
    }

    /// Whether it thinks, where that is known.
    pub fn thinks(&self) -> Option<bool> {
        self.efforts.as_ref().map(|efforts| !efforts.is_empty())
    }

    /// What a request cost: what its Provider says, else what the price tells, else unknown.
    pub fn cost(&self, usage: &Usage, told: Option<f64>) -> Cost {
        match (told.filter(|usd| usd.is_finite() && *usd >= 0.0), &self.price) {
            (Some(usd), _) => Cost { usd, estimated: false, unpriced: 0 },
            (None, Some(price)) => Cost { usd: price.of(usage), estimated: true, unpriced: 0 },
            (None, None) => Cost::UNKNOWN,
        }
    }
}

/// The row whose name is the longest beginning of the model's, at the end of a word.
fn built_in(model: &str, host: &str) -> Facts {
    let mut name = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    // Some hosts write claude-sonnet-4.5.
    if name.starts_with("claude") {
        name = name.replace('.', "-");
    }
    let rest = |row: &Known| {
        let rest = name.strip_prefix(row.name).filter(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@']));
        rest.map(str::to_owned)
    };
    let found = KNOWN.iter().filter_map(|row| Some((row, rest(row)?))).max_by_key(|(row, _)| row.name.len());
    let Some((row, rest)) = found else { return Facts::default() };
    // A sibling with another name may well have another price, and so may another host.
    let at_home = host == row.maker || host.strip_suffix(row.maker).is_some_and(|sub| sub.ends_with('.'));
    Facts {
        window: Some(row.window),
        max_output: Some(row.max_output).filter(|most| *most > 0),
        sees_images: row.sees_images,
        efforts: row.efforts.map(<[Effort]>::to_vec),
        thinking: row.thinking,
        price: row.price.filter(|_| at_home && is_edition(&rest)).map(|[input, cached, cache_written, output]| Price {
            input,
            cached,
            cache_written,
            output,
        }),
    }
}

/// Whether what follows a model's name only says which edition of it: a date, `latest`, `preview`.
fn is_edition(rest: &str) -> bool {
    let mut words = rest.split(['-', '@', ':']).filter(|word| !word.is_empty()).peekable();
    let digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    // A short number is a version of its own.
    if words.peek().is_some_and(|word| digits(word) && word.len() < 4) {
        return false;
    }
    words.all(|word| digits(word) || ["latest", "preview"].contains(&word))
}

/// Beginnings of names: these models are only to be had with a date behind.
const DATED: [&str; 4] = ["claude-3-5-haiku", "claude-3-7-sonnet", "claude-sonnet-4", "claude-opus-4"];

/// The models that are known at a host, by names that it takes.
pub fn known_at(host: &str) -> impl Iterator<Item = &'static str> {
    let made_here = move |row: &&Known| !row.maker.is_empty() && host.ends_with(row.maker);
    KNOWN.iter().filter(made_here).map(|row| row.name).filter(|name| !DATED.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_known_by_the_longest_name_and_a_sibling_keeps_its_price_to_itself() {
        let (openai, anthropic) = ("api.openai.com", "api.anthropic.com");
        let facts = |model: &str, host: &str| Facts::of(model, host, None);
        assert_eq!(facts("anthropic/claude-sonnet-4.5", anthropic), facts("claude-sonnet-4-5-20250929", anthropic));
        assert!(facts("claude-sonnet-4-5", anthropic).price.is_some());
        assert!(facts("gpt-5-mini-2025-08-07", openai).price.is_some());
        assert_ne!(facts("gpt-5-mini", openai).price, facts("gpt-5", openai).price);
        // Of the family, but not the same model; or the same model, but somewhere else.
        for (model, host) in [
            ("gpt-5-turbo-x", openai),
            ("claude-sonnet-4-9", anthropic),
            ("gpt-5", "localhost"),
            ("gpt-5", "notopenai.com"),
        ] {
            let sibling = facts(model, host);
            assert!(sibling.window.is_some() && sibling.price.is_none(), "{model} at {host}");
        }
        assert_eq!(facts("my-own", openai), Facts::default());
        assert_eq!(facts("gpt-50", openai), Facts::default());
    }

    #[test]
    fn what_a_person_says_counts_for_more() {
        let said = ModelConfig { window: Some(9), vision: Some(false), ..ModelConfig::default() };
        let facts = Facts::of("gpt-5", "", Some(&said));
        assert_eq!((facts.window, facts.sees_images), (Some(9), false));
        assert_eq!(facts.max_output, Facts::of("gpt-5", "", None).max_output);
    }

    #[test]
    fn an_effort_is_the_nearest_that_the_model_takes() {
        let of = |efforts: &[Effort]| Facts { efforts: Some(efforts.to_vec()), ..Facts::default() };
        let three = of(&[Effort::Low, Effort::Medium, Effort::High]);
        let rows = [("none", "low"), ("minimal", "low"), ("medium", "medium"), ("xhigh", "high"), ("max", "high")];
        for (wished, got) in rows {
            assert_eq!(three.effort(Some(wished)), Some(got), "{wished}");
        }
        assert_eq!(three.effort(None), None);
        assert_eq!(of(&[]).effort(Some("high")), None);
        assert_eq!(Facts::default().effort(Some("xhigh")), Some("xhigh"), "a model that is not known decides itself");
    }

    #[test]
    fn a_cost_counts_every_kind_of_token_once() {
        let price = Price { input: 10.0, cached: 1.0, cache_written: 12.5, output: 50.0 };
        let usage =
            Usage { input: 1_000_000, cached: 600_000, cache_written: 100_000, output: 10_000, reasoning: 9_000 };
        assert!((price.of(&usage) - (3.0 + 0.6 + 1.25 + 0.5)).abs() < 1e-9);
        let facts = Facts { price: Some(price), ..Facts::default() };
        assert!(facts.cost(&usage, None).estimated);
        assert_eq!(facts.cost(&usage, Some(0.5)), Cost { usd: 0.5, estimated: false, unpriced: 0 });
        assert_eq!(Facts::default().cost(&usage, None), Cost::UNKNOWN);
    }
}
