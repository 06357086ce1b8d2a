//! Completions of bash: one function that finds the command on the line, and a table of words for each.
//!
//! The script is made here because that of the parser's crate has one block of code for each option of each command: half a
//! megabyte, which every new shell would read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use clap::builder::ValueHint;
use clap::{Arg, ArgAction, Command};

/// What follows a flag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    OneOf(Vec<String>),
    /// A file, or text that only the user knows: bash offers files.
    Other,
}

/// The script.
pub(super) fn script(root: &Command) -> String {
    let mut all = Vec::new();
    collect(root, "", &mut all);
    let mut text = String::from(
        "_pixir() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} path='' word words='' flags=''
    if [[ $cur == = ]]; then cur=''; fi
    if [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi
    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do
        case $path/$word in
",
    );
    let steps: Vec<String> =
        all.iter().filter(|(path, _)| !path.is_empty()).map(|(path, _)| format!("/{path}")).collect();
    let steps: Vec<String> = steps.iter().map(|path| step(path)).collect();
    writeln!(text, "            {}) path=${{path:+$path-}}$word ;;\n        esac\n    done", steps.join(" | "))
        .expect("text");
    text.push_str("    COMPREPLY=()\n    case $path$prev in\n");
    for (pattern, value) in values(&all) {
        let action = match value {
            Value::OneOf(values) => format!("words='{}' ;;", values.join(" ")),
            Value::Other => "return ;;".to_owned(),
        };
        writeln!(text, "        {pattern}) {action}").expect("text");
    }
    text.push_str("        *)\n            case $path in\n");
    for (path, command) in &all {
        let below = command.get_subcommands().map(|it| it.get_name().to_owned());
        let fixed = command.get_positionals().flat_map(possible);
        let words: Vec<String> = below.chain(fixed).collect();
        let key = if path.is_empty() { "''".to_owned() } else { path.replace(' ', "-") };
        writeln!(
            text,
            "                {key})\n                    words='{}'\n                    flags='{}' ;;",
            words.join(" "),
            flags(command).join(" ")
        )
        .expect("text");
    }
    text.push_str(
        "            esac
            if [[ $cur == -* ]]; then words=$flags; fi ;;
    esac
    while IFS= read -r word; do COMPREPLY+=(\"$word\"); done < <(compgen -W \"$words\" -- \"$cur\")
}
complete -o bashdefault -o default -F _pixir pixir
",
    );
    text
}

fn collect<'a>(command: &'a Command, path: &str, all: &mut Vec<(String, &'a Command)>) {
    all.push((path.to_owned(), command));
    for below in command.get_subcommands() {
        collect(below, format!("{path} {}", below.get_name()).trim(), all);
    }
}

/// The pattern that a word makes with the path before it: `sessions/list`.
fn step(path: &str) -> String {
    let path = path.trim_start_matches('/');
    match path.rsplit_once(' ') {
        Some((before, last)) => format!("{}/{last}", before.replace(' ', "-")),
        None => format!("/{path}"),
    }
}

fn possible(arg: &Arg) -> Vec<String> {
    arg.get_possible_values().iter().filter(|it| !it.is_hide_set()).map(|it| it.get_name().to_owned()).collect()
}

fn names(arg: &Arg) -> Vec<String> {
    let long = arg.get_long().into_iter().chain(arg.get_visible_aliases().unwrap_or_default());
    arg.get_short().map(|it| format!("-{it}")).into_iter().chain(long.map(|it| format!("--{it}"))).collect()
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|it| !it.is_hide_set() && !it.is_positional())
}

fn flags(command: &Command) -> Vec<String> {
    shown(command).flat_map(names).chain(["-h".to_owned(), "--help".to_owned()]).collect()
}

/// What follows each flag that takes a value. One that means the same everywhere needs no path.
fn values(all: &[(String, &Command)]) -> Vec<(String, Value)> {
    let mut found: BTreeMap<String, BTreeMap<Value, Vec<&str>>> = BTreeMap::new();
    for (path, command) in all {
        for arg in shown(command).filter(|it| matches!(it.get_action(), ArgAction::Set | ArgAction::Append)) {
            let values = possible(arg);
            let is_open = values.is_empty() || arg.get_value_hint() != ValueHint::Unknown;
            let value = if is_open { Value::Other } else { Value::OneOf(values) };
            for name in names(arg) {
                found.entry(name).or_default().entry(value.clone()).or_default().push(path);
            }
        }
    }
    let mut patterns: BTreeMap<Value, BTreeSet<String>> = BTreeMap::new();
    for (name, meanings) in found {
        let is_one = meanings.len() == 1;
        for (value, paths) in meanings {
            let all = patterns.entry(value).or_default();
            match is_one {
                true => drop(all.insert(format!("*{name}"))),
                false => all.extend(paths.iter().map(|path| format!("{}{name}", path.replace(' ', "-")))),
            }
        }
    }
    patterns.into_iter().map(|(value, all)| (all.into_iter().collect::<Vec<_>>().join(" | "), value)).collect()
}
