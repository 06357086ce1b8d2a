//! The built-in models, as their makers and models.dev describe them (November 2026).
//!
//! Prices are those of the base tier, US dollars per million tokens: input, cache read, cache write, output. They hold
//! at the maker's own servers, which the second column names; other hosts set other prices.

use super::Effort::{High, Low, Max, Medium, Minimal, None as Nothing, XHigh};
use super::{Effort, Known, Step, Thinking};

const SEES: bool = true;
const BLIND: bool = false;
const NONE_AT_ALL: Option<&[Effort]> = Some(&[]);
const UNKNOWN: Option<&[Effort]> = None;
/// Every effort becomes a reasoning budget, so all of these are valid.
const BUDGETS: Option<&[Effort]> = Some(&[Nothing, Low, Medium, High, XHigh]);

#[expect(clippy::too_many_arguments, reason = "each argument is a column of the table")]
const fn known(
    name: &'static str,
    maker: &'static str,
    window: u64,
    max_output: u64,
    sees_images: bool,
    efforts: Option<&'static [Effort]>,
    thinking: Thinking,
    price: Option<[f64; 4]>,
) -> Known {
    Known { name, maker, window, max_output, sees_images, efforts, thinking, price }
}

/// What long requests cost more: by the beginning of the name, for models that take that much. Sources: the price pages of the
/// makers (platform.openai.com, platform.claude.com, ai.google.dev, docs.x.ai), November 2026.
const STEPS: [(&str, Step); 8] = [
    ("gpt-5.4", Step { above: 272_000, input: 2.0, output: 1.5 }),
    ("gpt-5.5", Step { above: 272_000, input: 2.0, output: 1.5 }),
    ("gpt-5.6", Step { above: 272_000, input: 2.0, output: 1.5 }),
    ("gpt-6", Step { above: 272_000, input: 2.0, output: 1.5 }),
    ("claude-haiku-5-5", Step { above: 100_000, input: 5.0, output: 5.0 }),
    ("gemini-2.5-pro", Step { above: 200_000, input: 2.0, output: 1.5 }),
    ("gemini-3", Step { above: 200_000, input: 2.0, output: 1.5 }),
    ("grok-4", Step { above: 200_000, input: 2.0, output: 2.0 }),
];

/// What a long request to the model of a row costs more.
pub(super) fn step(row: &Known) -> Option<Step> {
    let is_long = |step: &Step| row.window > step.above;
    // Of Gemini 3, only the large models.
    let is_exempt = row.name.starts_with("gemini-3") && !row.name.contains("-pro");
    let of_name = STEPS.iter().filter(|(name, _)| !is_exempt && row.name.starts_with(name));
    of_name.map(|it| it.1).find(is_long)
}

// The windows are the most input that the servers take, where that is less than the window: gpt-5 to gpt-5.3 have 400,000 tokens,
// and take 272,000, as gpt-5.4-mini and gpt-5.4-nano do. DeepSeek asks half of its price outside of peak hours; these are the prices
// of peak hours, so that a limit on cost holds at any time.
#[rustfmt::skip]
pub(super) const KNOWN: &[Known] = &[
    known("gpt-4.1", "openai.com", 1_047_576, 32_768, SEES, NONE_AT_ALL, Thinking::Never, Some([2.0, 0.5, 2.0, 8.0])),
    known("gpt-4.1-mini", "openai.com", 1_047_576, 32_768, SEES, NONE_AT_ALL, Thinking::Never, Some([0.4, 0.1, 0.4, 1.6])),
    known("gpt-4.1-nano", "openai.com", 1_047_576, 32_768, SEES, NONE_AT_ALL, Thinking::Never, Some([0.1, 0.025, 0.1, 0.4])),
    known("gpt-4o", "openai.com", 128_000, 16_384, SEES, NONE_AT_ALL, Thinking::Never, Some([2.5, 1.25, 2.5, 10.0])),
    known("gpt-4o-mini", "openai.com", 128_000, 16_384, SEES, NONE_AT_ALL, Thinking::Never, Some([0.15, 0.075, 0.15, 0.6])),
    known("o3", "openai.com", 200_000, 100_000, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([2.0, 0.5, 2.0, 8.0])),
    known("o3-mini", "openai.com", 200_000, 100_000, BLIND, Some(&[Low, Medium, High]), Thinking::Never, Some([1.1, 0.55, 1.1, 4.4])),
    known("o4-mini", "openai.com", 200_000, 100_000, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([1.1, 0.275, 1.1, 4.4])),
    known("gpt-5", "openai.com", 272_000, 128_000, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([1.25, 0.125, 1.25, 10.0])),
    known("gpt-5-mini", "openai.com", 272_000, 128_000, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([0.25, 0.025, 0.25, 2.0])),
    known("gpt-5-nano", "openai.com", 272_000, 128_000, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([0.05, 0.005, 0.05, 0.4])),
    known("gpt-5-pro", "openai.com", 272_000, 272_000, SEES, Some(&[High]), Thinking::Never, Some([15.0, 15.0, 15.0, 120.0])),
    known("gpt-5-codex", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([1.25, 0.125, 1.25, 10.0])),
    known("gpt-5.1", "openai.com", 272_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High]), Thinking::Never, Some([1.25, 0.125, 1.25, 10.0])),
    known("gpt-5.1-chat", "openai.com", 128_000, 16_384, SEES, Some(&[Medium]), Thinking::Never, Some([1.25, 0.125, 1.25, 10.0])),
    known("gpt-5.1-codex", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([1.25, 0.125, 1.25, 10.0])),
    known("gpt-5.1-codex-max", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([1.25, 0.125, 1.25, 10.0])),
    known("gpt-5.1-codex-mini", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([0.25, 0.025, 0.25, 2.0])),
    known("gpt-5.2", "openai.com", 272_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh]), Thinking::Never, Some([1.75, 0.175, 1.75, 14.0])),
    known("gpt-5.2-chat", "openai.com", 128_000, 16_384, SEES, Some(&[Medium]), Thinking::Never, Some([1.75, 0.175, 1.75, 14.0])),
    known("gpt-5.2-codex", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([1.75, 0.175, 1.75, 14.0])),
    known("gpt-5.2-pro", "openai.com", 272_000, 128_000, SEES, Some(&[Medium, High, XHigh]), Thinking::Never, Some([21.0, 21.0, 21.0, 168.0])),
    known("gpt-5.3-codex", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([1.75, 0.175, 1.75, 14.0])),
    known("gpt-5.3-codex-spark", "openai.com", 128_000, 32_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([1.75, 0.175, 1.75, 14.0])),
    known("gpt-5.4", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh]), Thinking::Never, Some([2.5, 0.25, 2.5, 15.0])),
    known("gpt-5.4-mini", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([0.75, 0.075, 0.75, 4.5])),
    known("gpt-5.4-nano", "openai.com", 272_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([0.2, 0.02, 0.2, 1.25])),
    known("gpt-5.4-pro", "openai.com", 1_050_000, 128_000, SEES, Some(&[Medium, High, XHigh]), Thinking::Never, Some([30.0, 30.0, 30.0, 180.0])),
    known("gpt-5.5", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh]), Thinking::Never, Some([5.0, 0.5, 5.0, 30.0])),
    known("gpt-5.5-pro", "openai.com", 1_050_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([30.0, 30.0, 30.0, 180.0])),
    known("gpt-5.6", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Never, Some([4.0, 0.4, 5.0, 20.0])),
    known("gpt-5.6-sol", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Never, Some([4.0, 0.4, 5.0, 20.0])),
    known("gpt-5.6-terra", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Never, Some([2.0, 0.2, 2.5, 12.0])),
    known("gpt-5.6-luna", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Never, Some([0.2, 0.02, 0.25, 1.2])),
    known("gpt-6-astra", "openai.com", 1_050_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Never, Some([10.0, 1.0, 12.5, 50.0])),
    known("gpt-6-sol", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Never, Some([2.0, 0.2, 2.5, 10.0])),
    known("gpt-6-luna", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Never, Some([0.1, 0.01, 0.125, 0.5])),
    known("gpt-6.1-sol", "openai.com", 1_050_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Never, Some([2.0, 0.1, 2.5, 10.0])),
    known("gpt-6.1-terra", "openai.com", 1_050_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Never, Some([1.0, 0.05, 1.25, 5.0])),
    known("gpt-6.2-sol", "openai.com", 1_050_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Never, Some([2.0, 0.1, 2.5, 10.0])),
    known("gpt-6.2-astra", "openai.com", 1_050_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Never, Some([8.0, 0.4, 10.0, 40.0])),
    known("gpt-oss-20b", "openai.com", 131_072, 0, BLIND, UNKNOWN, Thinking::Never, None),
    known("gpt-oss-120b", "openai.com", 131_072, 0, BLIND, UNKNOWN, Thinking::Never, None),
    known("claude-3-5-haiku", "anthropic.com", 200_000, 8_192, SEES, NONE_AT_ALL, Thinking::Never, Some([0.8, 0.08, 1.0, 4.0])),
    known("claude-3-7-sonnet", "anthropic.com", 200_000, 64_000, SEES, BUDGETS, Thinking::Budget, Some([3.0, 0.3, 3.75, 15.0])),
    known("claude-sonnet-4", "anthropic.com", 200_000, 64_000, SEES, BUDGETS, Thinking::Budget, Some([3.0, 0.3, 3.75, 15.0])),
    known("claude-opus-4", "anthropic.com", 200_000, 32_000, SEES, BUDGETS, Thinking::Budget, Some([15.0, 1.5, 18.75, 75.0])),
    known("claude-opus-4-1", "anthropic.com", 200_000, 32_000, SEES, BUDGETS, Thinking::Budget, Some([15.0, 1.5, 18.75, 75.0])),
    known("claude-sonnet-4-5", "anthropic.com", 200_000, 64_000, SEES, BUDGETS, Thinking::Budget, Some([3.0, 0.3, 3.75, 15.0])),
    known("claude-haiku-4-5", "anthropic.com", 200_000, 64_000, SEES, BUDGETS, Thinking::Budget, Some([1.0, 0.1, 1.25, 5.0])),
    known("claude-opus-4-5", "anthropic.com", 200_000, 64_000, SEES, BUDGETS, Thinking::Budget, Some([5.0, 0.5, 6.25, 25.0])),
    known("claude-opus-4-6", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, Max]), Thinking::Wished, Some([5.0, 0.5, 6.25, 25.0])),
    known("claude-sonnet-4-6", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, Max]), Thinking::Wished, Some([3.0, 0.3, 3.75, 15.0])),
    known("claude-opus-4-7", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Wished, Some([5.0, 0.5, 6.25, 25.0])),
    known("claude-opus-4-8", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Nothing, Low, Medium, High, XHigh, Max]), Thinking::Wished, Some([5.0, 0.5, 6.25, 25.0])),
    known("claude-sonnet-5", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([2.0, 0.2, 2.5, 10.0])),
    known("claude-opus-5", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([5.0, 0.5, 6.25, 25.0])),
    known("claude-sonnet-5-5", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([2.0, 0.1, 2.5, 10.0])),
    known("claude-opus-5-5", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([4.0, 0.2, 5.0, 20.0])),
    known("claude-haiku-5-5", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([0.1, 0.01, 0.125, 0.5])),
    known("claude-fable-5", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([10.0, 1.0, 12.5, 50.0])),
    known("claude-fable-5-1", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([10.0, 0.25, 12.5, 50.0])),
    known("claude-fable-5-2", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([8.0, 0.2, 10.0, 40.0])),
    known("claude-mythos-5", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([10.0, 1.0, 12.5, 50.0])),
    known("claude-mythos-5-1", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, Some([10.0, 0.25, 12.5, 50.0])),
    known("claude-mythos-5-2", "anthropic.com", 1_000_000, 128_000, SEES, Some(&[Low, Medium, High, XHigh, Max]), Thinking::Always, None),
    known("gemini-2.5-pro", "googleapis.com", 1_048_576, 65_536, SEES, UNKNOWN, Thinking::Never, Some([1.25, 0.125, 1.25, 10.0])),
    known("gemini-2.5-flash", "googleapis.com", 1_048_576, 65_536, SEES, UNKNOWN, Thinking::Never, Some([0.3, 0.03, 0.3, 2.5])),
    known("gemini-2.5-flash-lite", "googleapis.com", 1_048_576, 65_536, SEES, UNKNOWN, Thinking::Never, Some([0.1, 0.01, 0.1, 0.4])),
    known("gemini-3-pro", "googleapis.com", 1_000_000, 64_000, SEES, Some(&[Low, High]), Thinking::Never, Some([2.0, 0.2, 2.0, 12.0])),
    known("gemini-3-flash", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([0.5, 0.05, 0.5, 3.0])),
    known("gemini-3.1-pro", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([2.0, 0.2, 2.0, 12.0])),
    known("gemini-3.1-pro-preview-customtools", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([2.0, 0.2, 2.0, 12.0])),
    known("gemini-3.1-flash-lite", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([0.25, 0.025, 0.0833, 1.5])),
    known("gemini-3.5-flash", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([1.5, 0.15, 1.5, 9.0])),
    known("gemini-3.5-flash-lite", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([0.3, 0.03, 0.3, 2.5])),
    known("gemini-3.6-flash", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Minimal, Low, Medium, High]), Thinking::Never, Some([1.5, 0.15, 1.5, 7.5])),
    known("gemini-3.7-flash", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([0.75, 0.075, 0.75, 3.75])),
    known("gemini-3.8-flash", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([0.75, 0.075, 0.75, 3.75])),
    known("gemini-4-hydrogen", "googleapis.com", 1_048_576, 65_536, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([1.5, 0.075, 1.5, 7.5])),
    known("deepseek-chat", "deepseek.com", 1_000_000, 8_192, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.28, 0.028, 0.28, 0.42])),
    known("deepseek-reasoner", "deepseek.com", 1_000_000, 128_000, BLIND, UNKNOWN, Thinking::Never, Some([0.28, 0.028, 0.28, 0.42])),
    known("deepseek-flash", "deepseek.com", 1_000_000, 393_216, SEES, Some(&[Low, High, Max]), Thinking::Never, Some([0.3, 0.006, 0.3, 1.2])),
    known("deepseek-v4-flash", "deepseek.com", 1_000_000, 384_000, BLIND, Some(&[Low, High, Max]), Thinking::Never, Some([0.3, 0.006, 0.3, 1.2])),
    known("deepseek-v4-pro", "deepseek.com", 1_048_576, 384_000, BLIND, Some(&[Low, High, Max]), Thinking::Never, Some([1.32, 0.044, 1.32, 3.96])),
    known("kimi-k2-0711", "moonshot.ai", 131_072, 16_384, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.6, 0.15, 0.6, 2.5])),
    known("kimi-k2-0905", "moonshot.ai", 262_144, 262_144, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.6, 0.15, 0.6, 2.5])),
    known("kimi-k2-turbo", "moonshot.ai", 262_144, 262_144, BLIND, NONE_AT_ALL, Thinking::Never, Some([2.4, 0.6, 2.4, 10.0])),
    known("kimi-k2-thinking", "moonshot.ai", 262_144, 262_144, BLIND, UNKNOWN, Thinking::Never, Some([0.6, 0.15, 0.6, 2.5])),
    known("kimi-k2-thinking-turbo", "moonshot.ai", 262_144, 262_144, BLIND, UNKNOWN, Thinking::Never, Some([1.15, 0.15, 1.15, 8.0])),
    known("kimi-k2.5", "moonshot.ai", 262_144, 262_144, SEES, UNKNOWN, Thinking::Never, Some([0.6, 0.1, 0.6, 3.0])),
    known("kimi-k2.6", "moonshot.ai", 262_144, 262_144, SEES, UNKNOWN, Thinking::Never, Some([0.95, 0.16, 0.95, 4.0])),
    known("kimi-k2.7-code", "moonshot.ai", 262_144, 0, SEES, UNKNOWN, Thinking::Never, Some([0.95, 0.19, 0.95, 4.0])),
    known("kimi-k3", "moonshot.ai", 1_048_576, 1_048_576, SEES, Some(&[Low, High, Max]), Thinking::Never, Some([3.0, 0.3, 3.0, 15.0])),
    known("glm-4.5", "z.ai", 131_072, 98_304, BLIND, UNKNOWN, Thinking::Never, Some([0.6, 0.11, 0.6, 2.2])),
    known("glm-4.5-air", "z.ai", 131_072, 98_304, BLIND, UNKNOWN, Thinking::Never, Some([0.2, 0.03, 0.2, 1.1])),
    known("glm-4.5-flash", "z.ai", 131_072, 98_304, BLIND, UNKNOWN, Thinking::Never, Some([0.0, 0.0, 0.0, 0.0])),
    known("glm-4.5v", "z.ai", 64_000, 16_384, SEES, UNKNOWN, Thinking::Never, Some([0.6, 0.6, 0.6, 1.8])),
    known("glm-4.6", "z.ai", 204_800, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([0.6, 0.11, 0.6, 2.2])),
    known("glm-4.6v", "z.ai", 128_000, 32_768, SEES, UNKNOWN, Thinking::Never, Some([0.3, 0.3, 0.3, 0.9])),
    known("glm-4.7", "z.ai", 204_800, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([0.6, 0.11, 0.6, 2.2])),
    known("glm-4.7-flash", "z.ai", 200_000, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([0.0, 0.0, 0.0, 0.0])),
    known("glm-5", "z.ai", 204_800, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([1.0, 0.2, 1.0, 3.2])),
    known("glm-5-turbo", "z.ai", 200_000, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([1.2, 0.24, 1.2, 4.0])),
    known("glm-5v-turbo", "z.ai", 200_000, 131_072, SEES, UNKNOWN, Thinking::Never, Some([1.2, 0.24, 1.2, 4.0])),
    known("glm-5.1", "z.ai", 204_800, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([1.4, 0.26, 1.4, 4.4])),
    known("glm-5.2", "z.ai", 1_000_000, 131_072, BLIND, Some(&[High, XHigh]), Thinking::Never, Some([1.4, 0.26, 1.4, 4.4])),
    known("glm-5.3", "z.ai", 1_000_000, 131_072, BLIND, Some(&[Low, High, Max]), Thinking::Never, Some([1.4, 0.26, 1.4, 4.4])),
    known("glm-5.3-flash", "z.ai", 1_000_000, 0, SEES, Some(&[Low, High, XHigh]), Thinking::Never, Some([0.15, 0.03, 0.15, 0.5])),
    known("devstral-2512", "mistral.ai", 262_144, 262_144, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.4, 0.4, 0.4, 2.0])),
    known("devstral-medium", "mistral.ai", 262_144, 262_144, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.4, 0.4, 0.4, 2.0])),
    known("devstral-medium-2507", "mistral.ai", 128_000, 128_000, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.4, 0.4, 0.4, 2.0])),
    known("devstral-small-2507", "mistral.ai", 128_000, 128_000, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.1, 0.1, 0.1, 0.3])),
    known("labs-devstral-small-2512", "mistral.ai", 256_000, 256_000, SEES, NONE_AT_ALL, Thinking::Never, Some([0.0, 0.0, 0.0, 0.0])),
    known("codestral", "mistral.ai", 256_000, 4_096, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.3, 0.3, 0.3, 0.9])),
    known("magistral-medium", "mistral.ai", 128_000, 16_384, BLIND, Some(&[Nothing, High]), Thinking::Never, Some([2.0, 2.0, 2.0, 5.0])),
    known("magistral-small", "mistral.ai", 128_000, 128_000, SEES, UNKNOWN, Thinking::Never, Some([0.5, 0.5, 0.5, 1.5])),
    known("grok-4", "x.ai", 256_000, 256_000, SEES, UNKNOWN, Thinking::Never, Some([3.0, 0.75, 3.0, 15.0])),
    known("grok-4-fast", "x.ai", 2_000_000, 30_000, SEES, UNKNOWN, Thinking::Never, Some([0.2, 0.05, 0.2, 0.5])),
    known("grok-4-1-fast", "x.ai", 2_000_000, 30_000, SEES, UNKNOWN, Thinking::Never, Some([0.2, 0.05, 0.2, 0.5])),
    known("grok-4.20-0309-reasoning", "x.ai", 1_000_000, 30_000, SEES, UNKNOWN, Thinking::Never, Some([1.25, 0.2, 1.25, 2.5])),
    known("grok-4.20-0309-non-reasoning", "x.ai", 1_000_000, 30_000, SEES, NONE_AT_ALL, Thinking::Never, Some([1.25, 0.2, 1.25, 2.5])),
    known("grok-4.3", "x.ai", 1_000_000, 30_000, SEES, UNKNOWN, Thinking::Never, Some([1.25, 0.2, 1.25, 2.5])),
    known("grok-4.5", "x.ai", 500_000, 500_000, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([2.0, 0.5, 2.0, 6.0])),
    known("grok-4.6", "x.ai", 500_000, 500_000, SEES, Some(&[Low, Medium, High]), Thinking::Never, Some([2.0, 0.5, 2.0, 6.0])),
    known("grok-4.7", "x.ai", 500_000, 500_000, SEES, Some(&[Low, Medium, High, XHigh]), Thinking::Never, Some([2.0, 0.5, 2.0, 6.0])),
    known("grok-code-fast-1", "x.ai", 256_000, 10_000, BLIND, UNKNOWN, Thinking::Never, Some([0.2, 0.02, 0.2, 1.5])),
    known("qwen3-coder-plus", "aliyuncs.com", 1_000_000, 65_536, BLIND, NONE_AT_ALL, Thinking::Never, Some([1.0, 0.2, 1.25, 5.0])),
    known("qwen3-coder-flash", "aliyuncs.com", 1_000_000, 65_536, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.3, 0.06, 0.375, 1.5])),
    known("qwen3-coder-480b-a35b-instruct", "aliyuncs.com", 262_144, 65_536, BLIND, NONE_AT_ALL, Thinking::Never, Some([1.5, 1.5, 1.5, 7.5])),
    known("qwen3-coder-30b-a3b-instruct", "aliyuncs.com", 262_144, 65_536, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.45, 0.45, 0.45, 2.25])),
    known("qwen3-coder-next", "aliyuncs.com", 262_144, 65_536, BLIND, NONE_AT_ALL, Thinking::Never, None),
    known("qwen3-max", "aliyuncs.com", 262_144, 65_536, BLIND, NONE_AT_ALL, Thinking::Never, Some([1.2, 0.24, 1.5, 6.0])),
    known("qwen3.6-plus", "aliyuncs.com", 1_000_000, 65_536, SEES, UNKNOWN, Thinking::Never, Some([0.5, 0.05, 0.625, 3.0])),
    known("qwen3.7-plus", "aliyuncs.com", 1_000_000, 65_536, SEES, UNKNOWN, Thinking::Never, Some([0.4, 0.08, 0.5, 1.6])),
    known("qwen3.7-max", "aliyuncs.com", 1_000_000, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([2.5, 0.25, 3.125, 7.5])),
    known("minimax-m2", "minimax.io", 196_608, 128_000, BLIND, UNKNOWN, Thinking::Never, Some([0.3, 0.03, 0.375, 1.2])),
    known("minimax-m2.1", "minimax.io", 204_800, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([0.3, 0.03, 0.375, 1.2])),
    known("minimax-m2.5", "minimax.io", 204_800, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([0.3, 0.03, 0.375, 1.2])),
    known("minimax-m2.7", "minimax.io", 204_800, 131_072, BLIND, UNKNOWN, Thinking::Never, None),
    known("minimax-m3", "minimax.io", 1_000_000, 131_072, BLIND, UNKNOWN, Thinking::Never, Some([0.35, 0.07, 0.4, 1.4])),
    // Families: common properties of the members that are not listed above.
    known("pixir-demo", "", 128_000, 0, BLIND, NONE_AT_ALL, Thinking::Never, Some([0.0; 4])),
    known("claude", "", 200_000, 32_000, SEES, BUDGETS, Thinking::Always, None),
    known("gpt-6", "", 400_000, 128_000, SEES, UNKNOWN, Thinking::Never, None),
    known("gemini", "", 1_048_576, 65_536, SEES, UNKNOWN, Thinking::Never, None),
    known("deepseek", "", 128_000, 0, BLIND, UNKNOWN, Thinking::Never, None),
    known("kimi-k2", "", 262_144, 0, BLIND, UNKNOWN, Thinking::Never, None),
    known("qwen3-coder", "", 262_144, 65_536, BLIND, NONE_AT_ALL, Thinking::Never, None),
    known("gpt-oss", "", 131_072, 0, BLIND, UNKNOWN, Thinking::Never, None),
    known("starcoder2", "", 16_384, 0, BLIND, NONE_AT_ALL, Thinking::Never, None),
    known("o1-mini", "", 128_000, 65_536, BLIND, UNKNOWN, Thinking::Never, None),
];
