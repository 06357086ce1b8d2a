//! Parameters that a request can do without, and refusals that are about one.

use protocol::error::Error;

/// The detail of an error that names the parameter that the server refused.
pub(crate) const REFUSED_PARAMETER: &str = "parameter";

/// A parameter that a request can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Parameter {
    /// How hard the model is to reason.
    Effort,
    /// Whether the model is to reason (the Messages dialect).
    Thinking,
    /// The temperature.
    Temperature,
    /// The key of requests that share a cached prefix.
    CacheKey,
    /// Usage in the stream.
    StreamOptions,
}

impl Parameter {
    const ALL: [Parameter; 5] =
        [Parameter::Effort, Parameter::Thinking, Parameter::Temperature, Parameter::CacheKey, Parameter::StreamOptions];

    /// Its name for the user and for programs.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Parameter::Effort => "effort",
            Parameter::Thinking => "thinking",
            Parameter::Temperature => "temperature",
            Parameter::CacheKey => "prompt_cache_key",
            Parameter::StreamOptions => "stream_options",
        }
    }

    /// The names that servers have for it. Of a path such as `reasoning.effort`, the last name that is one of these counts.
    const fn fields(self) -> &'static [&'static str] {
        match self {
            Parameter::Effort => &["effort", "reasoning_effort", "output_config", "reasoning", "reasoningeffort"],
            Parameter::Thinking => &["thinking", "budget_tokens", "adaptive"],
            Parameter::Temperature => &["temperature"],
            Parameter::CacheKey => &["prompt_cache_key"],
            Parameter::StreamOptions => &["stream_options", "include_usage"],
        }
    }

    /// The parameter that an error of a request is about.
    pub(crate) fn of(error: &Error) -> Option<Parameter> {
        let name = error.details.get(REFUSED_PARAMETER)?.as_str()?;
        Parameter::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// How servers say that they do not take a parameter, or its value.
const REFUSING: [&str; 22] = [
    "unsupported",
    "not supported",
    "not support",
    "not available",
    "unrecognized",
    "unknown",
    "unexpected",
    "extra inputs",
    "extra_forbidden",
    "additional properties",
    "not permitted",
    "not allowed",
    "not accept",
    "not enabled",
    "invalid",
    "not valid",
    "only the default",
    "deprecated",
    "no longer",
    "out of range",
    "less than or equal",
    "greater than or equal",
];

/// What refusals of the definition of a tool contain.
const OF_TOOLS: [&str; 4] = ["schema", "tools.", "tools[", "function"];

/// The parameter that a refusal with this status is about: `param` is the field for it, `text` are its words.
pub(super) fn refused_parameter(status: u16, param: &str, text: &str) -> Option<Parameter> {
    let lower = text.to_lowercase();
    // Definitions of tools have such names too.
    if OF_TOOLS.iter().any(|words| lower.contains(words)) {
        return None;
    }
    if !matches!(status, 400 | 422) || !REFUSING.iter().any(|words| lower.contains(words)) {
        return None;
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let named = |word: &str| Parameter::ALL.into_iter().find(|it| it.fields().contains(&word));
    let in_path = |path: &str| path.rsplit(|c| !is_of_name(c)).find_map(named);
    in_path(&param.to_lowercase()).or_else(|| lower.split(|c| !is_of_name(c)).find_map(named))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Broken builds: a message of a conversation that is about temperature counts; `reasoning_content` counts as reasoning; a
    /// name in passing counts.
    #[test]
    fn a_refusal_of_a_parameter_names_it() {
        let of = |status, param: &str, text: &str| refused_parameter(status, param, text).map(Parameter::name);
        for (param, text, name) in [
            ("temperature", "Unsupported parameter: 'temperature' is not supported with this model.", "temperature"),
            (
                "",
                "Unsupported value: 'temperature' does not support 1.1 with this model. Only the default (1) value is supported.",
                "temperature",
            ),
            ("", "temperature: range: 0..1, must be less than or equal to 1", "temperature"),
            ("", "invalid temperature: only 1 is allowed for this model", "temperature"),
            ("", "`temperature` is deprecated for this model.", "temperature"),
            (
                "reasoning.effort",
                "Unsupported value: 'xhigh' is not supported with the 'm' model. Supported values are: 'low'.",
                "effort",
            ),
            ("reasoning_effort", "Unrecognized request argument supplied: reasoning_effort", "effort"),
            ("", "output_config.effort: This model does not support the effort parameter.", "effort"),
            ("", "Invalid JSON payload received. Unknown name \"reasoning_effort\": Cannot find field.", "effort"),
            ("", "adaptive thinking is not supported on this model", "thinking"),
            (
                "",
                "thinking.type: Input tag 'adaptive' found does not match; extra inputs are not permitted",
                "thinking",
            ),
            ("", "prompt_cache_key: Extra inputs are not permitted", "prompt_cache_key"),
            (
                "",
                r#"[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]"#,
                "stream_options",
            ),
        ] {
            assert_eq!(of(400, param, text), Some(name), "{text}");
            assert_eq!(of(422, param, text), Some(name), "{text}");
            assert_eq!(of(500, param, text), None, "{text}");
        }
        for text in [
            "Invalid value for messages[3].content",
            "property 'reasoning_content' is unsupported",
            "the temperature of the model's server is 90 degrees",
            "model `m` does not exist",
            "Invalid schema for function 'oven': temperature must be a number",
            "tools.3.custom.input_schema.properties.effort: invalid",
            "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
            "`max_tokens` must be greater than `thinking.budget_tokens`",
            "messages.3: expected `thinking`, but found `text`. When `thinking` is enabled, a message must start with it",
        ] {
            assert_eq!(of(400, "", text), None, "{text}");
        }
    }
}
