//! Every setting that has a name of its own, once: its type, what it does, the values that it takes, its default, its flag, and
//! when a change takes effect. The types of the configuration, its known keys, the checks of its numbers, `pixir config`, the
//! flags and the settings of the interface are made from this table.

use std::ops::{Bound, RangeBounds as _};
use std::time::Duration;

use serde::Deserialize;

use super::{Patience, SummaryAuthor};
use protocol::error::{Code, Error, Result};

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
    /// The numbers that it takes, where not every number of its type is one.
    pub bounds: Option<Bounds>,
    /// The flag of the command line that does nothing but set it for one run.
    pub flag: Option<Flag>,
    /// The variable of the environment that sets it.
    pub variable: Option<&'static str>,
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

/// The numbers that a setting takes, and the words for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// The smallest number.
    pub least: Bound<f64>,
    /// The largest one.
    pub most: Bound<f64>,
    /// What is wrong with another number, behind the key: `is not a valid size`.
    wrong: &'static str,
    /// The words before the numbers: `a number of bytes`.
    noun: &'static str,
}

impl Bounds {
    const fn within(least: f64, most: f64, wrong: &'static str, noun: &'static str) -> Bounds {
        Bounds { least: Bound::Included(least), most: Bound::Included(most), wrong, noun }
    }

    const fn above_zero(most: Bound<f64>, wrong: &'static str, noun: &'static str) -> Bounds {
        Bounds { least: Bound::Excluded(0.0), most, wrong, noun }
    }

    fn holds(&self, number: f64) -> bool {
        // `inf` and `nan` are numbers of TOML, and no setting takes them.
        number.is_finite() && (self.least, self.most).contains(&number)
    }

    /// What to give instead: `a number from 1 to 100`.
    fn words(&self) -> String {
        let noun = self.noun;
        match (self.least, self.most) {
            (Bound::Included(least), Bound::Included(most)) => format!("{noun} from {least} to {most}"),
            (Bound::Excluded(least), Bound::Included(most)) => format!("{noun} above {least} and at most {most}"),
            (Bound::Included(least), _) => format!("{noun} of at least {least}"),
            (Bound::Excluded(least), _) => format!("{noun} above {least}"),
            (Bound::Unbounded, _) => noun.to_owned(),
        }
    }
}

/// A flag of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flag {
    /// Its name, without the dashes: `max-rounds`.
    pub name: &'static str,
    /// What the help calls its value.
    pub value: &'static str,
    /// Its line in the help.
    pub help: &'static str,
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
    const fn new(
        key: &'static str,
        title: &'static str,
        form: Form,
        effect: TakesEffect,
        default: Default,
        about: &'static str,
    ) -> SettingSpec {
        SettingSpec { key, title, about, form, effect, bounds: None, flag: None, variable: None, default }
    }

    const fn takes(mut self, bounds: Bounds) -> SettingSpec {
        self.bounds = Some(bounds);
        self
    }

    const fn flag(mut self, name: &'static str, value: &'static str, help: &'static str) -> SettingSpec {
        self.flag = Some(Flag { name, value, help });
        self
    }

    const fn variable(mut self, name: &'static str) -> SettingSpec {
        self.variable = Some(name);
        self
    }

    /// The section that the key is in, and its name there.
    pub fn section(&self) -> (&'static str, &'static str) {
        self.key.split_once('.').unwrap_or(("", self.key))
    }

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

    /// Rejects a number that is out of bounds.
    fn check(&self, value: &toml::Value) -> Result<()> {
        let number = value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
        let (Some(bounds), Some(number)) = (self.bounds, number) else { return Ok(()) };
        if bounds.holds(number) {
            return Ok(());
        }
        let mut fix = bounds.words();
        // A part of a whole means nothing without the whole.
        if let Form::Amount("of the window") = self.form {
            fix = format!("{fix}: {}", self.about);
        }
        Err(Error::new(Code::ConfigInvalid, format!("`{}` {}", self.key, bounds.wrong), fix).with("input", number))
    }
}

/// The whole table, in the order of lists.
pub fn settings() -> impl Iterator<Item = &'static SettingSpec> {
    SECTIONS.iter().flat_map(|(_, rows)| *rows)
}

/// The setting with this key.
pub fn spec(key: &str) -> Option<&'static SettingSpec> {
    settings().find(|it| it.key == key)
}

/// The keys at the top of a configuration file, in the order of lists.
pub(super) fn top_keys() -> Vec<&'static str> {
    let sections = SECTIONS.iter().map(|(name, _)| *name).filter(|name| !name.is_empty());
    TOP.iter().map(|it| it.key).chain(sections).collect()
}

/// The sections whose keys pixir names, each with these keys.
pub(super) fn sections() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let named = SECTIONS.iter().filter(|(name, rows)| !name.is_empty() && !rows.is_empty());
    named.map(|(name, rows)| (*name, rows.iter().map(|it| it.section().1).collect()))
}

/// Rejects numbers that are out of bounds.
pub(super) fn check(table: &toml::Table) -> Result<()> {
    settings().filter(|it| it.bounds.is_some()).try_for_each(|it| {
        let (section, name) = it.section();
        let value = table.get(section).and_then(|below| below.get(name));
        value.map_or(Ok(()), |value| it.check(value))
    })
}

/// Makes the type of a section and its rows from one list, so that neither can lack a setting.
macro_rules! section {
    (
        $(#[$of_type:meta])* $section:literal $type:ident {
            $($name:ident: $value:ty = ($title:literal, $form:expr, $effect:expr, $default:expr, $about:literal)
                $(.$method:ident($($argument:expr),*))*;)*
        }
    ) => {
        $(#[$of_type])*
        #[serde(default)]
        pub struct $type {
            $(#[doc = $about] pub $name: $value,)*
        }

        impl $type {
            const ROWS: &'static [SettingSpec] = &[$(
                SettingSpec::new(concat!($section, ".", stringify!($name)), $title, $form, $effect, $default, $about)
                    $(.$method($($argument),*))*,
            )*];
        }
    };
}

use Form::{Amount, Choice, Count, List, Switch, Text};
use TakesEffect::{NextStart, Now};

/// The sections, in the order of lists. One without rows has keys that the user names, and its type is in `config`.
const SECTIONS: &[(&str, &[SettingSpec])] = &[
    ("", TOP),
    ("providers", &[]),
    ("models", &[]),
    ("limits", LimitsConfig::ROWS),
    ("requests", RequestsConfig::ROWS),
    ("compaction", CompactionConfig::ROWS),
    ("agents", AgentsConfig::ROWS),
    ("mcp", &[]),
    ("mcp_limits", MCP_LIMITS),
    ("screen", ScreenConfig::ROWS),
    ("acp", AcpConfig::ROWS),
    ("keys", &[]),
];

const LIMIT: Bounds = Bounds::above_zero(Bound::Unbounded, "is not a valid limit", "a number");
/// A result of fewer bytes could not say where the rest is; one of more would fill most windows.
const RESULT_BYTES: Bounds = Bounds::within(2_000.0, 1_000_000.0, "is not a valid size", "a number of bytes");
/// The same for lines.
const RESULT_LINES: Bounds = Bounds::within(10.0, 100_000.0, "is not a valid number of lines", "a number of lines");
const DAY: f64 = 86_400.0;
const TIME: Bounds = Bounds::above_zero(Bound::Included(DAY), "is not a valid time", "a number of seconds");

/// A tree of agents beyond such numbers could not be watched by a person.
const fn agents(least: f64, most: f64) -> Bounds {
    Bounds::within(least, most, "is out of range", "a number")
}

#[rustfmt::skip]
const TOP: &[SettingSpec] = &[
    SettingSpec::new("model", "Model", Text, Now, Default::None("the first that is connected"), "the model that answers, as provider/model").variable("PIXIR_MODEL"),
    SettingSpec::new("favourites", "Favourite models", List, Now, Default::Empty("none"), "models that the list of models names first"),
    SettingSpec::new("fallback", "Fallback models", List, NextStart, Default::Empty("none"), "models to ask, in this order, when the model before has not answered"),
    SettingSpec::new("effort", "Effort", Choice(&["none", "minimal", "low", "medium", "high", "xhigh", "max"]), Now, Default::None("the model's own"), "how hard the model thinks").variable("PIXIR_EFFORT"),
    SettingSpec::new("mode", "Mode", Choice(&["read-only", "ask", "auto"]), Now, Default::Text("ask"), "what may run without asking").variable("PIXIR_MODE"),
    SettingSpec::new("toolset", "Toolset", Choice(&["typed", "run", "both", "none"]), Now, Default::Text("typed"), "the tools of the model: typed ones, the run language, both, or none").variable("PIXIR_TOOLSET"),
    SettingSpec::new("sandbox", "Sandbox", Choice(&["ns", "ll", "none"]), NextStart, Default::None("the strongest here"), "the strongest way to confine programs: namespaces, landlock, none").variable("PIXIR_SANDBOX"),
    SettingSpec::new("environment", "Environment", List, NextStart, Default::Empty("none"), "variables that commands get besides the usual ones"),
    SettingSpec::new("theme", "Theme", Text, Now, Default::Text("auto"), "the colours; auto follows the terminal").variable("PIXIR_THEME"),
];

section! {
    /// Limits of each Turn.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
    "limits" LimitsConfig {
        max_rounds: Option<u32> = ("Rounds", Count, NextStart, Default::None("no limit"), "the most requests with tool calls of a turn").takes(LIMIT).flag("max-rounds", "N", "Maximum number of tool rounds in a turn");
        max_tokens: Option<u64> = ("Tokens", Count, NextStart, Default::None("no limit"), "the most tokens of a turn, input and output").takes(LIMIT).flag("max-tokens", "N", "Maximum tokens of a turn, input and output of all its requests");
        max_cost: Option<f64> = ("Cost", Amount("US dollars"), NextStart, Default::None("no limit"), "the most that a turn may cost").takes(LIMIT).flag("max-cost", "USD", "Maximum cost of a turn, where the model's price is known");
        deadline: Option<u64> = ("Time", Count, NextStart, Default::None("no limit"), "the most seconds that a turn may take").takes(LIMIT).flag("deadline", "SECONDS", "Maximum duration of a turn");
        output_bytes: Option<usize> = ("Tool result", Count, NextStart, Default::Count(16_000), "the most bytes of a tool's result that the model reads").takes(RESULT_BYTES);
        page_bytes: Option<usize> = ("Page of a file", Count, NextStart, Default::Count(49_152), "the most bytes of a page of a file").takes(RESULT_BYTES);
        run_bytes: Option<usize> = ("Result of run", Count, NextStart, Default::Count(51_200), "the most bytes of the result of the tool run").takes(RESULT_BYTES);
        run_lines: Option<u64> = ("Lines of run", Count, NextStart, Default::Count(200), "the most lines of the result of the tool run").takes(RESULT_LINES);
    }
}

section! {
    /// Time limits of requests, seconds, and how long failed ones are tried again.
    #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
    "requests" RequestsConfig {
        patience: Option<f64> = ("Patience", Amount("seconds"), NextStart, Default::Seconds(|it| it.total), "how long a request is tried again while its server is overloaded or unreachable").takes(Bounds::within(0.0, DAY, "is not a valid time", "a number of seconds")).flag("patience", "SECONDS", "How long to try again while the server is overloaded or unreachable; 0 means not at all");
        attempts: Option<u32> = ("Attempts", Count, NextStart, Default::None("no limit"), "the most tries of a request; without it only the time counts").takes(Bounds::within(1.0, 100.0, "is not a valid number of attempts", "a number"));
        first_wait: Option<f64> = ("First wait", Amount("seconds"), NextStart, Default::Seconds(|it| it.first_wait), "the wait before the second try").takes(TIME);
        head: Option<f64> = ("First byte", Amount("seconds"), NextStart, Default::Seconds(|it| it.head), "how long a server may take to begin its answer").takes(TIME);
        idle: Option<f64> = ("Silence", Amount("seconds"), NextStart, Default::Seconds(|it| it.idle), "how long a server may send nothing").takes(TIME);
        progress: Option<f64> = ("Keep-alives only", Amount("seconds"), NextStart, Default::Seconds(|it| it.progress), "how long a server may send nothing but keep-alives").takes(TIME);
        end_loops: Option<bool> = ("End loops", Switch, NextStart, Default::Switch(true), "an answer that repeats itself without end is ended");
    }
}

section! {
    /// How conversations are compacted.
    #[derive(Debug, Clone, Default, PartialEq, Deserialize)]
    "compaction" CompactionConfig {
        summary: SummaryAuthor = ("Summary by", Choice(&["auto", "model", "pixir"]), NextStart, Default::Text("auto"), "who writes the summary of a compaction");
        threshold: Option<f64> = ("Automatic at", Amount("of the window"), NextStart, Default::Amount(0.85), "the used part of the window at which pixir compacts").takes(Bounds::within(0.3, 0.95, "is out of range", "a number"));
        below_price_step: Option<bool> = ("Below a price step", Switch, NextStart, Default::Switch(false), "pixir compacts before requests are so long that the model's maker asks more for them");
    }
}

section! {
    /// `[agents]`: how many agents may work, and what each may use.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    "agents" AgentsConfig {
        running: Option<usize> = ("At a time", Count, NextStart, Default::Count(8), "the most agents that run at the same time; others wait").takes(agents(1.0, 100.0));
        per_turn: Option<u32> = ("In a turn", Count, NextStart, Default::Count(64), "the most agents that a turn starts, those of its agents included").takes(agents(1.0, 1_000.0));
        depth: Option<u32> = ("Depth", Count, NextStart, Default::Count(1), "how far agents may start agents: 0 none, 1 only yours do, at most 3").takes(agents(0.0, 3.0));
        rounds: Option<u32> = ("Rounds of one", Count, NextStart, Default::Count(50), "the most requests with tool calls of an agent's turn").takes(agents(1.0, 10_000.0));
        seconds: Option<u64> = ("Time of one", Count, NextStart, Default::Count(900), "the most seconds of an agent's turn, without the time in which it waits for you").takes(agents(1.0, DAY));
        tokens: Option<u64> = ("Tokens of one", Count, NextStart, Default::Count(400_000), "the most tokens of an agent's turn").takes(agents(1_000.0, 1e9));
        tree_tokens: Option<u64> = ("Tokens of all", Count, NextStart, Default::Count(4_000_000), "the most tokens of all agents of a turn").takes(agents(1_000.0, 1e10));
        wake: Option<bool> = ("Wake", Switch, NextStart, Default::Switch(true), "an agent's end that nothing waited for starts a turn");
        copy_ignored: Vec<String> = ("Copied too", List, NextStart, Default::Empty("none"), "paths that git ignores and copies for agents have, such as node_modules");
    }
}

/// `McpLimits` has a default of its own, so only its rows are here.
#[rustfmt::skip]
const MCP_LIMITS: &[SettingSpec] = &[
    SettingSpec::new("mcp_limits.direct_bytes", "Tools of servers", Count, NextStart, Default::Count(8_192), "the most bytes of definitions of MCP servers that requests hold; the rest is found by search"),
];

section! {
    /// Settings of the terminal interface.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    "screen" ScreenConfig {
        mouse: Option<bool> = ("Mouse", Switch, Now, Default::Switch(true), "pixir gets clicks and the wheel, not the terminal");
        inline: bool = ("Inline", Switch, NextStart, Default::Switch(false), "the conversation stays in the terminal's own scrollback");
        motion: Option<bool> = ("Motion", Switch, Now, Default::Switch(true), "progress is animated");
        notifications: Option<bool> = ("Notifications", Switch, Now, Default::Switch(true), "the terminal notifies you when a turn ends or asks and its window is not focused");
        reader: bool = ("Screen reader", Switch, NextStart, Default::Switch(false), "output for screen readers: no frames, each line once");
        vim: bool = ("Vim keys", Switch, Now, Default::Switch(false), "vim keys in the composer");
    }
}

section! {
    /// Settings of the service for editors.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    "acp" AcpConfig {
        mirror_writes: bool = ("Repeat changes", Switch, NextStart, Default::Switch(false), "changes of files are repeated in the buffers of an editor that pixir serves");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit;
    use protocol::effort::Effort;
    use protocol::event::{Mode, Toolset};

    #[test]
    fn every_default_and_every_choice_is_a_value_that_its_key_takes() {
        for it in settings() {
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
