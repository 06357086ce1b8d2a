//! How many cases a suite tries: few in `cargo test`, more in `.ci/run`, any number by hand.

use std::env;
use std::fs;
use std::path::Path;

use crate::random::{Random, seed_of_this_run};
use crate::shell::figures;

/// A suite whose number of cases depends on the tier.
struct Suite {
    /// The filter that selects it, as in `cargo test --test pixir -- NAME`.
    name: &'static str,
    /// The unit of its cases.
    of: &'static str,
    /// Cases in `cargo test`.
    quick: usize,
    /// Cases in `.ci/run`.
    long: usize,
    /// Cases of the long runs by hand.
    most: usize,
}

const fn suite(name: &'static str, of: &'static str, [quick, long, most]: [usize; 3]) -> Suite {
    Suite { name, of, quick, long, most }
}

const SUITES: &[Suite] = &[
    suite("kill_9", "kills of a Turn", [30, 300, 10_000]),
    suite("of_eight", "races of eight writers", [4, 8, 1_000]),
    suite("two_pixir_and_an_editor", "rounds of edits", [20, 60, 1_000]),
    suite("every_cut_of_a_stream", "random cuts of each stream", [60, 1_000, 1_000]),
    suite("random_events", "sequences of events", [10, 40, 2_000]),
    suite("processes", "process trees", [15, 50, 500]),
    suite("a_fan_out", "kills of 8 agents", [6, 40, 500]),
    suite("after_a_cancel", "cancels of agents", [16, 80, 1_000]),
    suite("two_writers_change", "edits by two agents", [40, 120, 10_000]),
    suite("a_hundred_questions", "questions at once", [20, 40, 100]),
    suite("a_run_that_is_killed_anywhere", "kills of a run", [3, 10, 300]),
    suite("a_run_that_is_stopped_at_any_moment", "stops of a run", [2, 4, 60]),
    suite("a_flood", "MiB of output", [64, 1_024, 10_240]),
    suite("no_line", "lines of the run language", [120, 400, 20_000]),
    suite("nothing_adversarial_has_an_effect_outside", "commands in `auto`", [16, 143, 858]),
    suite("no_repository_runs_anything", "hostile repositories, besides 8 harmless ones", [10, 34, 34]),
    suite("nothing_adversarial_has_an_effect_unasked", "adversarial commands", [100, 858, 858]),
    suite("no_hostile_repository_starts_or_reaches_anything_in_a_turn", "repositories", [6, 57, 114]),
    suite("no_hostile_repository_starts_or_reaches_anything_in_the_interface", "repositories", [4, 57, 57]),
    suite("no_file_tool_leaves", "calls", [200, 600, 100_000]),
    suite("no_file_tool_writes_a_protected", "writes", [300, 4_000, 100_000]),
    suite("no_unasked_command_leaves", "calls", [160, 560, 50_000]),
    suite("no_hostile_word", "calls of programs that only read", [2_000, 500_000, 500_000]),
    suite("every_part_of_a_command", "commands", [30, 90, 1_000]),
    suite("every_fault_at_every_moment", "faults of a server", [40, 285, 285]),
    suite("harmless_oddities", "oddities of a server", [15, 75, 75]),
    suite("an_interrupt_at_any", "interrupts", [12, 60, 1_000]),
    suite("mutated_streams", "bytes", [500_000, 2_000_000, 100_000_000]),
    suite("every_way_out", "closed windows", [1, 1, 200]),
    suite("chaos", "runs of up to 60 events", [8, 48, 6_000]),
    suite("random_hostile_text", "texts", [80, 400, 5_000]),
    suite("faults_together", "rounds", [8, 30, 14_000]),
    suite("prompts_that_are_cancelled", "cancelled prompts", [15, 50, 1_000]),
    suite("damaged_lines_have", "damaged lines", [300, 1_500, 5_000]),
    suite("answers_are_judged", "schemas", [20, 20, 200]),
    suite("the_tools_of_a_session", "Turns", [6, 6, 100]),
    suite("no_run_leaves_a_server", "runs", [6, 20, 500]),
    suite("an_answer_of_a_gigabyte", "MiB in one message", [64, 64, 1_024]),
    suite("runs_that_start_together", "runs", [12, 12, 50]),
    suite("a_slow_reader", "events of an answer", [16_384, 16_384, 880_000]),
    suite("a_long_conversation", "minutes", [0, 0, 20]),
    suite("every_command_keeps", "commands", [5, 78, 78]),
    suite("nobody_escapes", "attempts to escape, of each policy and user", [24, 110, 110]),
    suite("no_program_reaches_pixir_itself", "programs in each tier of the sandbox", [8, 60, 60]),
    suite("a_failed_system_call", "failures of a system call on the Log", [16, 60, 188]),
    suite("a_tree_whose_log_fails", "failures of a Log under agents, workflows, servers and jobs", [24, 60, 480]),
    suite("each_fault_at_each_moment", "faults of an MCP server", [20, 70, 70]),
    suite("a_model_solves_each_task", "tasks with a toolset", [4, 10, 10]),
    suite(
        "nothing_that_a_command_left",
        "commands of each user in each tier, with the user's next one",
        [12, 120, 1_668],
    ),
    suite("the_users_next_command_is_caught", "commands without pixir", [16, 60, 417]),
    suite("a_task_of_twelve_rounds", "windows of models", [6, 21, 21]),
    suite("no_command_prints_a_character", "commands", [16, 200, 200]),
    suite("over_a_hundred_turns", "Turns in each dialect", [25, 100, 100]),
    suite("names_of_files", "modes, tiers and rules", [5, 18, 18]),
    suite("little_address_space", "limits", [16, 55, 55]),
    suite("commands_on_a_long_session", "commands", [1, 9, 9]),
    suite("builds_and_tests", "tiers of the sandbox for each language", [1, 2, 2]),
    suite("run_unasked_in_auto", "languages", [2, 8, 8]),
    suite("an_hour_in", "sample projects", [1, 2, 2]),
    suite("after_the_mode_has_changed", "roles, changes of the mode and depths", [10, 40, 40]),
    suite("cut_of_a_stream", "places of a single cut in each stream", [150, 100_000, 100_000]),
    suite("fifty_answers", "KB in each answer", [100, 1_056, 1_056]),
    suite("every_screen_of_the_pictures", "sizes of the terminal", [2, 4, 4]),
    suite("a_flood_ends", "floods", [3, 9, 9]),
    suite("the_work_of_an_export", "formats", [1, 3, 3]),
];

/// What `PIXIR_TESTS` asks for: `long`, `most`, or this number of cases for each suite that the filter selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    Quick,
    Long,
    Most,
    Cases(usize),
}

impl Tier {
    fn of_this_run() -> Tier {
        Tier::of(env::var("PIXIR_TESTS").ok().as_deref())
    }

    fn of(asked: Option<&str>) -> Tier {
        match asked {
            None | Some("quick") => Tier::Quick,
            Some("long") => Tier::Long,
            Some("most") => Tier::Most,
            Some(number) => Tier::Cases(number.parse().expect("PIXIR_TESTS is quick, long, most or a number")),
        }
    }

    fn cases(self, suite: &Suite) -> usize {
        match self {
            Tier::Quick => suite.quick,
            Tier::Long => suite.long,
            Tier::Most => suite.most,
            Tier::Cases(number) => number,
        }
    }
}

fn named(name: &str) -> &'static Suite {
    SUITES.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("tests/tier.rs has no suite {name}"))
}

/// Whether this run asks for a number of cases by hand, of one suite alone.
pub(crate) fn is_by_hand() -> bool {
    matches!(Tier::of_this_run(), Tier::Cases(_))
}

/// How many cases this suite tries in this run.
pub(crate) fn cases(name: &str) -> usize {
    let suite = named(name);
    let number = Tier::of_this_run().cases(suite);
    figures(&format!("{name}: {number} {}", suite.of));
    number
}

/// Whether this run tries as much as the long runs by hand.
pub(crate) fn is_most() -> bool {
    Tier::of_this_run() == Tier::Most
}

/// As many of these cases as the suite tries in this run, in their order. The seed of the run chooses.
pub(crate) fn sample<T>(name: &str, all: Vec<T>) -> Vec<T> {
    let suite = named(name);
    let (seed, number, len) = (seed_of_this_run(), Tier::of_this_run().cases(suite), all.len());
    let chosen = chosen(seed, all, number);
    let again =
        if chosen.len() < len { format!("; PROPTEST_RNG_SEED={seed} repeats the choice") } else { String::new() };
    figures(&format!("{name}: {} of {len} {}{again}", chosen.len(), suite.of));
    chosen
}

fn chosen<T>(seed: u64, all: Vec<T>, number: usize) -> Vec<T> {
    let mut random = Random(seed | 1);
    let mut left = all.len();
    let mut wanted = number.min(left);
    let takes = |_: &T| {
        // Each that is left has the same chance.
        let takes = random.index(left) < wanted;
        left -= 1;
        wanted -= usize::from(takes);
        takes
    };
    all.into_iter().filter(takes).collect()
}

/// The table of docs/reliability.md.
fn table() -> String {
    let mut table = String::from(
        "| suite | a case is one of its | `cargo test` | `.ci/run` | by hand |\n| --- | --- | --- | --- | --- |\n",
    );
    for Suite { name, of, quick, long, most } in SUITES {
        table += &format!("| `{name}` | {of} | {} | {} | {} |\n", grouped(*quick), grouped(*long), grouped(*most));
    }
    table
}

/// The digits of a number in groups of three.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const BEGIN: &str = "<!-- cases: PIXIR_UPDATE_DOCS=1 cargo test --test pixir -- tier -->\n";
    const END: &str = "<!-- end -->\n";

    /// Broken build: the document names other numbers than the suites try.
    #[test]
    fn the_document_has_the_cases_of_each_tier() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reliability.md");
        let document = fs::read_to_string(&path).expect("the document is there");
        let (before, rest) = document.split_once(BEGIN).expect("the table begins");
        let (shown, after) = rest.split_once(END).expect("the table ends");
        if env::var_os("PIXIR_UPDATE_DOCS").is_some() {
            fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).expect("write");
        } else {
            assert_eq!(shown, table(), "PIXIR_UPDATE_DOCS=1 cargo test --test pixir -- tier writes the table anew");
        }
    }

    /// Broken builds: the long tier has fewer cases; a suite of the table reads another variable, or none.
    #[test]
    fn every_suite_of_the_table_asks_for_its_cases() {
        let mut asked = BTreeSet::new();
        let stories = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
        for folder in [stories.clone()].into_iter().chain(folders(&stories)) {
            for entry in fs::read_dir(&folder).expect("a folder").flatten().filter(|it| it.path().is_file()) {
                let text: String = fs::read_to_string(entry.path()).unwrap_or_default().split_whitespace().collect();
                assert!(!text.contains("PIXIR_TESTS\""), "{}: only tests/tier.rs reads it", entry.path().display());
                for call in ["tier::cases(\"", "tier::sample(\""] {
                    let names = text.split(call).skip(1).filter_map(|rest| rest.split('"').next());
                    asked.extend(names.map(str::to_owned));
                }
            }
        }
        let named: BTreeSet<String> = SUITES.iter().map(|it| it.name.to_owned()).collect();
        assert_eq!(asked, named);
        for it in SUITES {
            assert!(it.quick <= it.long && it.long <= it.most, "{}", it.name);
        }
    }

    fn folders(of: &Path) -> Vec<std::path::PathBuf> {
        fs::read_dir(of).expect("a folder").flatten().map(|it| it.path()).filter(|it| it.is_dir()).collect()
    }

    #[test]
    fn a_seed_chooses_the_same_cases_and_another_seed_others() {
        let all = || (0..100).collect::<Vec<_>>();
        assert_eq!(chosen(7, all(), 10), chosen(7, all(), 10));
        assert_ne!(chosen(7, all(), 10), chosen(8, all(), 10));
        let some = chosen(7, all(), 10);
        assert_eq!(some.len(), 10);
        assert!(some.is_sorted());
        assert_eq!(chosen(7, all(), 500), all());
    }

    #[test]
    fn one_variable_chooses_the_tier() {
        let suite = suite("x", "cases", [1, 2, 3]);
        let cases = |asked| Tier::of(asked).cases(&suite);
        assert_eq!([None, Some("quick"), Some("long"), Some("most"), Some("77")].map(cases), [1, 1, 2, 3, 77]);
    }
}
