//! The flags that only set a setting for one run, made from the table of settings.

use clap::builder::{BoolValueParser, PossibleValuesParser, RangedU64ValueParser, TypedValueParser as _, ValueParser};
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use pixir_core::catalogue::{self, Flag, Form, SettingSpec};

/// The settings that such flags set on this command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags(Vec<(&'static SettingSpec, String)>);

impl SettingFlags {
    /// The flag, the key that it sets, and the value.
    pub(crate) fn given(&self) -> impl Iterator<Item = (String, &'static str, &str)> {
        self.0.iter().filter_map(|(it, value)| Some((format!("--{}", it.flag?.name), it.key, value.as_str())))
    }
}

impl Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        command.args(rows().map(|(it, flag)| arg(it, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        SettingFlags::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingFlags, Error> {
        let given = rows().filter_map(|(it, _)| Some((it, matches.get_one::<String>(id(it))?.clone())));
        Ok(SettingFlags(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = SettingFlags::from_arg_matches(matches)?;
        Ok(())
    }
}

fn rows() -> impl Iterator<Item = (&'static SettingSpec, Flag)> {
    catalogue::settings().filter_map(|it| Some((it, it.flag?)))
}

/// The section of the setting whose flag has this id.
pub(super) fn section(id_of_flag: &str) -> Option<&'static str> {
    rows().find(|(it, _)| id(it) == id_of_flag).map(|(it, _)| it.section().0)
}

fn id(it: &SettingSpec) -> &'static str {
    it.section().1
}

fn arg(it: &'static SettingSpec, flag: Flag) -> Arg {
    Arg::new(id(it)).long(flag.name).global(true).value_name(flag.value).help(flag.help).value_parser(parser(it))
}

/// Checks a value as its setting does. The result stays text, which the layers of settings parse.
fn parser(it: &SettingSpec) -> ValueParser {
    match it.form {
        Form::Choice(names) => PossibleValuesParser::new(names).into(),
        Form::Switch => BoolValueParser::new().map(|is_on| is_on.to_string()).into(),
        Form::Amount("US dollars") => dollars.into(),
        Form::Count | Form::Amount(_) => {
            let whole = RangedU64ValueParser::<u64>::new();
            let whole = match it.bounds {
                Some(bounds) => whole.range((bounds.least.map(|n| n as u64), bounds.most.map(|n| n as u64))),
                None => whole,
            };
            whole.map(|n| n.to_string()).into()
        }
        Form::Text | Form::List => ValueParser::string(),
    }
}

/// Reads an amount of US dollars.
fn dollars(text: &str) -> Result<String, String> {
    let amount = text.strip_prefix('$').unwrap_or(text).parse::<f64>().ok();
    let amount = amount.filter(|usd| usd.is_finite() && *usd > 0.0);
    amount.map(|usd| usd.to_string()).ok_or_else(|| "use an amount above 0, like 0.50".to_owned())
}
