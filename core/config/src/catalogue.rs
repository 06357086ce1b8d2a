//! Every setting that has a name of its own, once: what it does, the values that it takes, its default, and when a change
//! takes effect. `pixir config`, the reference and the settings of the interface are made from this table.

use std::time::Duration;

use super::Patience;

/// What the table says about a setting.
#[derive(Debug, Clone, Copy)]
pub struct SettingSpec {
    /// The key, with dots between its parts.
    pub key: &'static str,
    /// Its name in lists.
    pub title: &'static str,
    /// What it does, as one line.
    pub about: &'static str,
    /// The values that it takes.
    pub form: Form,
    /// When a change takes effect.
    pub effect: TakesEffect,
    default: Default,
}

/// The values that a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One of these.
    Choice(&'static [&'static str]),
    /// True or false.
    Switch,
    /// A whole number.
    Count,
    /// A number, with this unit.
    Amount(&'static str),
    /// A text.
    Text,
    /// Texts.
    List,
}

/// When a change of a setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesEffect {
    /// At once.
    Now,
    /// When pixir starts the next time.
    NextStart,
}

/// The value where nothing sets the key.
#[derive(Debug, Clone, Copy)]
enum Default {
    /// There is none; these words say what holds then.
    None(&'static str),
    Text(&'static str),
    Switch(bool),
    Count(i64),
    Amount(f64),
    Seconds(fn(&Patience) -> Duration),
    /// An empty list; these words say what holds then.
    Empty(&'static str),
}

impl SettingSpec {
    /// The value where nothing sets the key; `None` where there is none.
    pub fn default(&self) -> Option<toml::Value> {
        match self.default {
            Default::None(_) => None,
            Default::Text(text) => Some(text.into()),
            Default::Switch(is_on) => Some(is_on.into()),
            Default::Count(n) => Some(n.into()),
            Default::Amount(n) => Some(n.into()),
            Default::Seconds(of) => Some(of(&Patience::default()).as_secs_f64().into()),
            Default::Empty(_) => Some(toml::Value::Array(Vec::new())),
        }
    }

    /// What holds where nothing sets the key and its default is no value, in words: `no limit`.
    pub fn without(&self) -> Option<&'static str> {
        match self.default {
            Default::None(words) | Default::Empty(words) => Some(words),
            Default::Text(_) | Default::Switch(_) | Default::Count(_) | Default::Amount(_) | Default::Seconds(_) => {
                None
            }
        }
    }
}

/// The setting with this key.
pub fn spec(key: &str) -> Option<&'static SettingSpec> {
    SETTINGS.iter().find(|it| it.key == key)
}

const fn row(
    key: &'static str,
    title: &'static str,
    form: Form,
    effect: TakesEffect,
    default: Default,
    about: &'static str,
) -> SettingSpec {
    SettingSpec { key, title, about, form, effect, default }
}

use Form::{Amount, Choice, Count, List, Switch, Text};
use TakesEffect::{NextStart, Now};

/// The whole table, in the order of lists. Sections whose keys the user names are not in it: `providers`, `models`, `mcp`, `keys`.
#[rustfmt::skip]
pub const SETTINGS: &[SettingSpec] = &[
    row("model", "Model", Text, Now, Default::None("the first that is connected"), "the model that answers, as provider/model"),
    row("favourites", "Favourite models", List, Now, Default::Empty("none"), "models that the list of models names first"),
    row("fallback", "Fallback models", List, NextStart, Default::Empty("none"), "models to ask, in this order, when the model before has not answered"),
    row("effort", "Effort", Choice(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]), Now, Default::None("the model's own"), "how hard the model thinks"),
    row("mode", "Mode", Choice(&["read-only", "ask", "auto"]), Now, Default::Text("ask"), "what may run without asking"),
    row("toolset", "Toolset", Choice(&["typed", "run", "both"]), Now, Default::Text("typed"), "the tools that the model gets: typed ones, the run language, or both"),
    row("sandbox", "Sandbox", Choice(&["ns", "ll", "none"]), NextStart, Default::None("the strongest here"), "the strongest way to confine programs: namespaces, landlock, none"),
    row("environment", "Environment", List, NextStart, Default::Empty("none"), "variables that commands get besides the usual ones"),
    row("theme", "Theme", Text, Now, Default::Text("auto"), "the colours; auto follows the terminal"),
    row("limits.max_rounds", "Rounds", Count, NextStart, Default::None("no limit"), "the most requests with tool calls of a turn"),
    row("limits.max_tokens", "Tokens", Count, NextStart, Default::None("no limit"), "the most tokens of a turn, input and output"),
    row("limits.max_cost", "Cost", Amount("US dollars"), NextStart, Default::None("no limit"), "the most that a turn may cost"),
    row("limits.deadline", "Time", Count, NextStart, Default::None("no limit"), "the most seconds that a turn may take"),
    row("limits.output_bytes", "Tool result", Count, NextStart, Default::Count(16_000), "the most bytes of a tool's result that the model reads"),
    row("limits.page_bytes", "Page of a file", Count, NextStart, Default::Count(49_152), "the most bytes of a page of a file"),
    row("limits.run_bytes", "Result of run", Count, NextStart, Default::Count(51_200), "the most bytes of the result of the tool run"),
    row("limits.run_lines", "Lines of run", Count, NextStart, Default::Count(200), "the most lines of the result of the tool run"),
    row("requests.patience", "Patience", Amount("seconds"), NextStart, Default::Seconds(|it| it.total), "how long a request is tried again while its server is overloaded or unreachable"),
    row("requests.attempts", "Attempts", Count, NextStart, Default::None("no limit"), "the most tries of a request; without it only the time counts"),
    row("requests.first_wait", "First wait", Amount("seconds"), NextStart, Default::Seconds(|it| it.first_wait), "the wait before the second try"),
    row("requests.head", "First byte", Amount("seconds"), NextStart, Default::Seconds(|it| it.head), "how long a server may take to begin its answer"),
    row("requests.idle", "Silence", Amount("seconds"), NextStart, Default::Seconds(|it| it.idle), "how long a server may send nothing"),
    row("requests.progress", "Keep-alives only", Amount("seconds"), NextStart, Default::Seconds(|it| it.progress), "how long a server may send nothing but keep-alives"),
    row("compaction.summary", "Summary by", Choice(&["auto", "model", "pixir"]), NextStart, Default::Text("auto"), "who writes the summary of a compaction"),
    row("compaction.threshold", "Automatic at", Amount("of the window"), NextStart, Default::Amount(0.85), "the used part of the window at which pixir compacts"),
    row("agents.running", "At a time", Count, NextStart, Default::Count(8), "the most agents that run at the same time; others wait"),
    row("agents.per_turn", "In a turn", Count, NextStart, Default::Count(64), "the most agents that a turn starts, those of its agents included"),
    row("agents.depth", "Depth", Count, NextStart, Default::Count(1), "how far agents may start agents: 0 none, 1 only yours do, at most 3"),
    row("agents.rounds", "Rounds of one", Count, NextStart, Default::Count(50), "the most requests with tool calls of an agent's turn"),
    row("agents.seconds", "Time of one", Count, NextStart, Default::Count(900), "the most seconds of an agent's turn, without the time in which it waits for you"),
    row("agents.tokens", "Tokens of one", Count, NextStart, Default::Count(400_000), "the most tokens of an agent's turn"),
    row("agents.tree_tokens", "Tokens of all", Count, NextStart, Default::Count(4_000_000), "the most tokens of all agents of a turn"),
    row("agents.wake", "Wake", Switch, NextStart, Default::Switch(true), "an agent's end that nothing waited for starts a turn"),
    row("agents.copy_ignored", "Copied too", List, NextStart, Default::Empty("none"), "paths that git ignores and copies for agents have, such as node_modules"),
    row("mcp_limits.direct_bytes", "Tools of servers", Count, NextStart, Default::Count(8_192), "the most bytes of definitions of MCP servers that requests hold; the rest is found by search"),
    row("screen.mouse", "Mouse", Switch, Now, Default::Switch(true), "pixir gets clicks and the wheel, not the terminal"),
    row("screen.inline", "Inline", Switch, NextStart, Default::Switch(false), "the conversation stays in the terminal's own scrollback"),
    row("screen.motion", "Motion", Switch, Now, Default::Switch(true), "progress is animated"),
    row("screen.notifications", "Notifications", Switch, Now, Default::Switch(true), "the terminal notifies you when a turn ends or asks and its window is not focused"),
    row("screen.reader", "Screen reader", Switch, NextStart, Default::Switch(false), "output for screen readers: no frames, each line once"),
    row("screen.vim", "Vim keys", Switch, Now, Default::Switch(false), "vim keys in the composer"),
    row("acp.mirror_writes", "Repeat changes", Switch, NextStart, Default::Switch(false), "changes of files are repeated in the buffers of an editor that pixir serves"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit;
    use protocol::effort::Effort;
    use protocol::event::{Mode, Toolset};

    #[test]
    fn every_default_and_every_choice_is_a_value_that_its_key_takes() {
        for it in SETTINGS {
            let choices = if let Choice(names) = it.form { names } else { &[] };
            for name in choices {
                assert!(edit::setting(it.key, name).is_ok(), "{} = {name}", it.key);
            }
            if let Some(value) = it.default() {
                assert!(edit::setting(it.key, &value.to_string()).is_ok(), "{} = {value}", it.key);
            }
        }
        let names = |key: &str| match spec(key).map(|it| it.form) {
            Some(Choice(names)) => names.to_vec(),
            _ => Vec::new(),
        };
        assert_eq!(names("effort"), Effort::ALL.map(Effort::name));
        assert_eq!(names("mode"), Mode::ALL.map(Mode::name));
        assert_eq!(names("toolset"), Toolset::ALL.map(Toolset::name));
    }
}
