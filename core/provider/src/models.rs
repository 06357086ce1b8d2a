//! Windows, efforts and prices of models. The user's `[models]` settings take precedence.

use config::ModelConfig;
pub use config::{Price, Step};
pub use protocol::effort::Effort;
use protocol::event::{Cost, Usage};

#[cfg(test)]
mod second_table; // its prices against those of others
mod table; // the built-in models

use table::{KNOWN, step};

/// How a request in the Messages dialect controls a model's reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// The model cannot reason.
    Never,
    /// A request sets a reasoning budget in tokens.
    Budget,
    /// A request sets an effort and the model decides how much to reason. Without an effort it does not reason.
    Wished,
    /// A request may set an effort. The model reasons in any case.
    Always,
}

/// Properties of one model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The window, tokens.
    pub window: Option<u64>,
    /// The window that pixir works with while the real one is unknown, tokens. Only servers of the user have one.
    pub assumed_window: Option<u64>,
    /// The longest answer, tokens.
    pub max_output: Option<u64>,
    /// The model accepts images. Unknown models are assumed to accept them.
    pub sees_images: bool,
    /// The model takes tools, as far as its server has not said otherwise.
    pub takes_tools: bool,
    /// The server takes an effort for this model, as far as it has not said otherwise.
    pub takes_effort: bool,
    /// The same for a temperature.
    pub takes_temperature: bool,
    /// Efforts that the model accepts, lowest first. `None` means unknown; an empty list means that it accepts none.
    pub efforts: Option<Vec<Effort>>,
    /// How a request in the Messages dialect controls the reasoning.
    pub thinking: Thinking,
    /// The prices, if they are known.
    pub price: Option<Price>,
}

impl Default for ModelInfo {
    /// Returns the properties assumed for an unknown model.
    fn default() -> ModelInfo {
        ModelInfo {
            window: None,
            assumed_window: None,
            max_output: None,
            sees_images: true,
            takes_tools: true,
            takes_effort: true,
            takes_temperature: true,
            efforts: None,
            thinking: Thinking::Never,
            price: None,
        }
    }
}

/// A row of the built-in table.
struct Known {
    /// The start of the names that the row covers.
    name: &'static str,
    /// The domain at which the price holds.
    maker: &'static str,
    window: u64,
    /// Tokens; 0 where no source states it.
    max_output: u64,
    sees_images: bool,
    /// Efforts that the model accepts; `None` where no source states them.
    efforts: Option<&'static [Effort]>,
    thinking: Thinking,
    /// Input, cache read, cache write, output; `None` for a family, whose members differ.
    price: Option<[f64; 4]>,
}

impl ModelInfo {
    /// Combines the built-in properties of a model at a host with the user's settings.
    pub fn of(model: &str, host: &str, configured: Option<&ModelConfig>) -> ModelInfo {
        let name = configured.and_then(|it| it.model_name.as_deref()).unwrap_or(model);
        let mut facts = built_in(name, host);
        if let Some(configured) = configured {
            facts.window = configured.window.or(facts.window);
            facts.max_output = configured.max_output.or(facts.max_output);
            facts.sees_images = configured.vision.unwrap_or(facts.sees_images);
            if let Some(efforts) = &configured.efforts {
                facts.efforts = Some(efforts.iter().filter_map(|name| Effort::parse(name).ok()).collect());
            }
            if let Some(price) = configured.price {
                facts.price = Some(price.into());
            }
        }
        facts
    }

    /// The window to work with: the real one, else the assumed one.
    pub fn working_window(&self) -> Option<u64> {
        self.window.or(self.assumed_window)
    }

    /// Maps a wanted effort to this model: the highest that it accepts up to the wanted one, else the lowest. `None`
    /// for a model that accepts none, or whose server has refused one.
    pub fn effort(&self, wished: Option<&str>) -> Option<&'static str> {
        let wished = Effort::parse(wished?).ok().filter(|_| self.takes_effort)?;
        let Some(takes) = &self.efforts else { return Some(wished.name()) };
        let most = takes.iter().copied().filter(|effort| *effort <= wished).max();
        most.or_else(|| takes.iter().copied().min()).map(Effort::name)
    }

    /// Returns the temperature to send: models with efforts are those that reason, and refuse one.
    pub fn temperature(&self, wished: Option<f64>) -> Option<f64> {
        wished.filter(|_| self.takes_temperature && self.thinks() != Some(true))
    }

    /// Whether the model can reason, if that is known.
    pub fn thinks(&self) -> Option<bool> {
        self.efforts.as_ref().map(|efforts| !efforts.is_empty())
    }

    /// Returns the cost of a request: as reported by the Provider, else from the price, else unknown.
    pub fn cost(&self, usage: &Usage, told: Option<f64>) -> Cost {
        match (told.filter(|usd| usd.is_finite() && *usd >= 0.0), &self.price) {
            (Some(usd), _) => Cost { usd, estimated: false, unpriced: 0 },
            (None, Some(price)) => Cost { usd: price.of(usage), estimated: true, unpriced: 0 },
            (None, None) => Cost::UNKNOWN,
        }
    }
}

/// Regions of Bedrock's inference profiles (`us.anthropic.claude-…`).
const REGIONS: [&str; 8] = ["us", "us-gov", "eu", "apac", "jp", "au", "ca", "global"];
/// Makers whose names Bedrock and others put before a model, with a dot.
const MAKERS: [&str; 11] =
    ["anthropic", "openai", "google", "amazon", "meta", "mistral", "deepseek", "moonshot", "moonshotai", "qwen", "zai"];

/// The maker's own name of a model: without the path, region and maker that other hosts put before it, and without the version
/// of their interface (`-v1:0`) behind it.
fn bare(model: &str) -> String {
    let lower = model.rsplit('/').next().unwrap_or(model).to_lowercase();
    let without = |name: &str, known: &[&str]| match name.split_once('.') {
        Some((first, rest)) if known.contains(&first) => rest.to_owned(),
        _ => name.to_owned(),
    };
    let name = without(&without(&lower, &REGIONS), &MAKERS);
    let Some((before, version)) = name.rsplit_once("-v") else { return name };
    let is_version = |it: &str| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit() || b == b':');
    if is_version(version) { before.to_owned() } else { name }
}

/// Returns the row whose name is the longest prefix of the model's name that ends at a word boundary.
fn built_in(model: &str, host: &str) -> ModelInfo {
    let mut name = bare(model);
    // Some hosts write claude-sonnet-4.5.
    if name.starts_with("claude") {
        name = name.replace('.', "-");
    }
    let rest = |row: &Known| {
        let rest = name.strip_prefix(row.name).filter(|rest| rest.is_empty() || rest.starts_with(['-', ':', '@']));
        rest.map(str::to_owned)
    };
    let found = KNOWN.iter().filter_map(|row| Some((row, rest(row)?))).max_by_key(|(row, _)| row.name.len());
    let Some((row, rest)) = found else { return ModelInfo::default() };
    // Another model of a family may have another price, and so may another host.
    let at_home = host == row.maker || host.strip_suffix(row.maker).is_some_and(|sub| sub.ends_with('.'));
    ModelInfo {
        window: Some(row.window),
        assumed_window: None,
        max_output: Some(row.max_output).filter(|most| *most > 0),
        sees_images: row.sees_images,
        takes_tools: true,
        takes_effort: true,
        takes_temperature: true,
        efforts: row.efforts.map(<[Effort]>::to_vec),
        thinking: row.thinking,
        price: row.price.filter(|_| at_home && is_edition(&rest)).map(|[input, cached, cache_written, output]| Price {
            input,
            cached,
            cache_written,
            output,
            step: step(row),
        }),
    }
}

/// Whether the rest of a model's name only names an edition: a date, `latest`, `preview`.
fn is_edition(rest: &str) -> bool {
    let mut words = rest.split(['-', '@', ':']).filter(|word| !word.is_empty()).peekable();
    let digits = |word: &str| word.bytes().all(|b| b.is_ascii_digit());
    // A short number is a version of its own.
    if words.peek().is_some_and(|word| digits(word) && word.len() < 4) {
        return false;
    }
    words.all(|word| digits(word) || ["latest", "preview"].contains(&word))
}

/// Names of models that servers accept only with a date appended.
const DATED: [&str; 4] = ["claude-3-5-haiku", "claude-3-7-sonnet", "claude-sonnet-4", "claude-opus-4"];

/// Returns the built-in models at a host, by names that the host accepts.
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
        let facts = |model: &str, host: &str| ModelInfo::of(model, host, None);
        assert_eq!(facts("anthropic/claude-sonnet-4.5", anthropic), facts("claude-sonnet-4-5-20250929", anthropic));
        assert!(facts("claude-sonnet-4-5", anthropic).price.is_some());
        assert!(facts("gpt-5-mini-2025-08-07", openai).price.is_some());
        assert_ne!(facts("gpt-5-mini", openai).price, facts("gpt-5", openai).price);
        // Another model of the family, or the same model at another host.
        for (model, host) in [
            ("gpt-5-turbo-x", openai),
            ("claude-sonnet-4-9", anthropic),
            ("gpt-5", "localhost"),
            ("gpt-5", "notopenai.com"),
        ] {
            let sibling = facts(model, host);
            assert!(sibling.window.is_some() && sibling.price.is_none(), "{model} at {host}");
        }
        assert_eq!(facts("my-own", openai), ModelInfo::default());
        assert_eq!(facts("gpt-50", openai), ModelInfo::default());
    }

    /// A whole request costs more above a step, its cached input too.
    ///
    /// Broken builds: one price for every length; only the tokens above the step cost more; a model with a small window has a
    /// step; the cache of gpt-6.2-astra costs as much as its input.
    #[test]
    fn a_long_request_costs_what_its_maker_says() {
        let of = |input, cached, cache_written, output| Usage { input, cached, cache_written, output, reasoning: 0 };
        for (model, host, usage, usd) in [
            ("gpt-6.2-sol", "api.openai.com", of(272_000, 0, 0, 10_000), 0.644),
            ("gpt-6.2-sol", "api.openai.com", of(272_001, 0, 0, 10_000), 1.238_004),
            ("gpt-6.2-sol", "api.openai.com", of(400_000, 300_000, 50_000, 0), 0.51),
            ("gpt-6.2-astra", "api.openai.com", of(100_000, 90_000, 10_000, 1_000), 0.176),
            ("gpt-5.4", "api.openai.com", of(300_000, 0, 0, 1_000), 1.522_5),
            ("gpt-5.1", "api.openai.com", of(270_000, 0, 0, 1_000), 0.347_5),
            ("claude-haiku-5-5", "api.anthropic.com", of(100_000, 0, 0, 1_000), 0.010_5),
            ("claude-haiku-5-5", "api.anthropic.com", of(200_000, 100_000, 0, 1_000), 0.057_5),
            ("claude-opus-5-5", "api.anthropic.com", of(900_000, 0, 0, 0), 3.6),
            ("gemini-3.1-pro", "generativelanguage.googleapis.com", of(200_001, 0, 0, 1_000), 0.818_004),
            ("gemini-3.8-flash", "generativelanguage.googleapis.com", of(400_000, 0, 0, 0), 0.3),
            ("grok-4.7", "api.x.ai", of(300_000, 0, 0, 1_000), 1.212),
        ] {
            let price = ModelInfo::of(model, host, None).price.expect("it has a price");
            let cost = price.of(&usage);
            assert!((cost - usd).abs() < 1e-6, "{model} {usage:?}: {cost} in place of {usd}");
        }
        assert_eq!(
            ModelInfo::of("gpt-5.2", "api.openai.com", None).window,
            Some(272_000),
            "the most input that it takes"
        );
    }

    #[test]
    fn what_a_person_says_counts_for_more() {
        let configured = ModelConfig { window: Some(9), vision: Some(false), ..ModelConfig::default() };
        let facts = ModelInfo::of("gpt-5", "", Some(&configured));
        assert_eq!((facts.window, facts.sees_images), (Some(9), false));
        assert_eq!(facts.max_output, ModelInfo::of("gpt-5", "", None).max_output);
    }

    #[test]
    fn an_effort_is_the_nearest_that_the_model_takes() {
        let of = |efforts: &[Effort]| ModelInfo { efforts: Some(efforts.to_vec()), ..ModelInfo::default() };
        let three = of(&[Effort::Low, Effort::Medium, Effort::High]);
        let rows = [("none", "low"), ("minimal", "low"), ("medium", "medium"), ("xhigh", "high"), ("max", "high")];
        for (wished, got) in rows {
            assert_eq!(three.effort(Some(wished)), Some(got), "{wished}");
        }
        assert_eq!(three.effort(None), None);
        assert_eq!(of(&[]).effort(Some("high")), None);
        assert_eq!(
            ModelInfo::default().effort(Some("xhigh")),
            Some("xhigh"),
            "an unknown model gets the effort unchanged"
        );
    }

    #[test]
    fn a_cost_counts_every_kind_of_token_once() {
        let price = Price { input: 10.0, cached: 1.0, cache_written: 12.5, output: 50.0, step: None };
        let usage =
            Usage { input: 1_000_000, cached: 600_000, cache_written: 100_000, output: 10_000, reasoning: 9_000 };
        assert!((price.of(&usage) - (3.0 + 0.6 + 1.25 + 0.5)).abs() < 1e-9);
        let facts = ModelInfo { price: Some(price), ..ModelInfo::default() };
        assert!(facts.cost(&usage, None).estimated);
        assert_eq!(facts.cost(&usage, Some(0.5)), Cost { usd: 0.5, estimated: false, unpriced: 0 });
        assert_eq!(ModelInfo::default().cost(&usage, None), Cost::UNKNOWN);
    }
}
