//! The prices of the built-in table against a second one: `prices.json`, which has the shape of LiteLLM's
//! `model_prices_and_context_window.json` and of it the models that pixir lists. Source: the package litellm 1.110.2 of PyPI
//! (MIT licence), read on 2026-11-27. A newer table goes there in the same shape; review each new difference: it goes into
//! [`REVIEWED`] with its reason, or into the built-in table.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ModelInfo;

/// Differences that were looked at: the model, what differs, pixir's price and the other, US dollars per million tokens.
const REVIEWED: [(&str, &str, f64, f64); 17] = [
    // Google's page gives a lower price of the newer flash models until 2026-12-31. It is not said of this one, so the lasting
    // price counts.
    ("gemini/gemini-3.6-flash", "cached", 0.15, 0.075),
    ("gemini/gemini-3.6-flash", "input", 1.5, 0.75),
    ("gemini/gemini-3.6-flash", "output", 7.5, 3.75),
    // Mistral does not say on its page that cached input costs less.
    ("mistral/codestral-latest", "cached", 0.3, 0.03),
    ("mistral/devstral-medium-latest", "cached", 0.4, 0.04),
    // The other table has the version of these names that came later; the page of the older one is pixir's source.
    ("mistral/magistral-medium-latest", "cached", 2.0, 0.15),
    ("mistral/magistral-medium-latest", "input", 2.0, 1.5),
    ("mistral/magistral-medium-latest", "output", 5.0, 7.5),
    ("mistral/magistral-small-latest", "cached", 0.5, 0.015),
    ("mistral/magistral-small-latest", "input", 0.5, 0.15),
    ("mistral/magistral-small-latest", "output", 1.5, 0.6),
    ("xai/grok-4.5", "cached", 0.5, 0.3),
    ("xai/grok-4.5", "cached above the step", 1.0, 0.6),
    // The other table has the price of the model that answers to this name since it was retired.
    ("xai/grok-code-fast-1", "cached", 0.02, 0.2),
    ("xai/grok-code-fast-1", "input", 0.2, 1.0),
    ("xai/grok-code-fast-1", "output", 1.5, 2.0),
    ("xai/grok-code-fast-1", "step", 0.0, 200_000.0),
];

/// The host of a maker, by its name in the other table.
fn host(provider: &str) -> &'static str {
    match provider {
        "openai" => "api.openai.com",
        "anthropic" => "api.anthropic.com",
        "gemini" => "generativelanguage.googleapis.com",
        "deepseek" => "api.deepseek.com",
        "moonshot" => "api.moonshot.ai",
        "zai" => "api.z.ai",
        "mistral" => "api.mistral.ai",
        "xai" => "api.x.ai",
        other => panic!("the maker {other} has no host"),
    }
}

/// Above how many tokens the other table has another price, if it has one.
fn step_of(row: &Value) -> Option<u64> {
    let fields = row.as_object()?.keys();
    fields
        .filter_map(|field| field.strip_prefix("input_cost_per_token_above_")?.strip_suffix("k_tokens")?.parse().ok())
        .next()
}

/// What differs between a row of the other table and the built-in one: pixir's number and the other.
fn differences(key: &str, row: &Value) -> Vec<(String, f64, f64)> {
    let name = key.rsplit('/').next().unwrap_or(key);
    let provider = row["litellm_provider"].as_str().expect("each row has its provider");
    let price = ModelInfo::of(name, host(provider), None).price;
    let price = price.unwrap_or_else(|| panic!("pixir has no price of {key}"));
    let mut found = Vec::new();
    let mut compare = |what: &str, ours: f64, field: &str| {
        // A maker that does not charge for writing the cache has 0 there, and reports no such tokens.
        let theirs = row[field]
            .as_f64()
            .map(|usd| usd * 1e6)
            .filter(|usd| field != "cache_creation_input_token_cost" || *usd > 0.0);
        if let Some(theirs) = theirs.filter(|theirs| (theirs - ours).abs() > 1e-6) {
            found.push((what.to_owned(), ours, (theirs * 1e6).round() / 1e6));
        }
    };
    compare("input", price.input, "input_cost_per_token");
    compare("cached", price.cached, "cache_read_input_token_cost");
    compare("cache_written", price.cache_written, "cache_creation_input_token_cost");
    compare("output", price.output, "output_cost_per_token");
    let (ours, theirs) = (price.step.map(|it| it.above), step_of(row).map(|thousands| thousands * 1_000));
    match (price.step, theirs) {
        (Some(step), Some(above)) if step.above == above => {
            let of = |field: &str| format!("{field}_above_{}k_tokens", above / 1_000);
            compare("input above the step", price.input * step.input, &of("input_cost_per_token"));
            compare("cached above the step", price.cached * step.input, &of("cache_read_input_token_cost"));
            compare(
                "cache_written above the step",
                price.cache_written * step.input,
                &of("cache_creation_input_token_cost"),
            );
            compare("output above the step", price.output * step.output, &of("output_cost_per_token"));
        }
        (None, None) => {}
        _ => found.push(("step".to_owned(), ours.unwrap_or(0) as f64, theirs.unwrap_or(0) as f64)),
    }
    found
}

/// Broken builds: a price or a step is mistyped; a step is missing; a difference that has ended is still in the list.
#[test]
fn prices_agree_with_a_second_table_but_for_reviewed_differences() {
    let table: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("prices.json")).expect("an object of models");
    assert!(table.len() >= 100, "{} models", table.len());
    let all = table.iter().flat_map(|(key, row)| differences(key, row).into_iter().map(move |it| (key.clone(), it)));
    let mut found: Vec<(String, String, f64, f64)> =
        all.map(|(key, (what, ours, theirs))| (key, what, ours, theirs)).collect();
    found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    let reviewed: Vec<_> = REVIEWED.iter().map(|it| (it.0.to_owned(), it.1.to_owned(), it.2, it.3)).collect();
    assert_eq!(found, reviewed);
}

/// Broken build: the window is more than the server takes, so that a compaction would begin behind the refusal.
#[test]
fn compaction_begins_below_the_largest_input_that_a_server_takes() {
    let table: BTreeMap<String, Value> =
        serde_json::from_str(include_str!("prices.json")).expect("an object of models");
    // The pages of DeepSeek and Mistral have 1M and 256k for what these names mean now.
    let reviewed = ["deepseek/deepseek-chat", "deepseek/deepseek-reasoner", "mistral/codestral-latest"];
    for (key, row) in table.iter().filter(|(key, _)| !reviewed.contains(&key.as_str())) {
        let name = key.rsplit('/').next().unwrap_or(key);
        let window = ModelInfo::of(name, host(row["litellm_provider"].as_str().expect("a provider")), None).window;
        let (window, most) = (window.expect("it is known"), row["max_input_tokens"].as_u64().expect("it has a limit"));
        assert!(window * 85 / 100 <= most, "{key}: {window} of {most}");
    }
}
