//! Commands on a Session at rest, by how much memory a long one takes.

use crate::driver::{log_of, say};
use crate::shell::{Shell, figures, peak, ran};
use crate::tier;
use pixir_core::event::SettingsChanged;
use pixir_core::store::Store;
use std::process::Command;

/// Messages of the long Session; its Log has about 16 MB.
const TURNS: u32 = 8_000;

/// A Session of this many Turns that goes on with this Provider; returns the size of its Log in bytes.
fn session(shell: &Shell, turns: u32, provider: &str) -> u64 {
    let workspace = shell.workspace().canonicalize().expect("a folder");
    let mut log = log_of(&Store::new(&shell.home()).folder_of(&workspace), &workspace);
    let answer = "The parser reads each token once, and **nothing** is copied twice.\n".repeat(20);
    (1..=turns).for_each(|turn| say(&mut log, turn, &format!("question {turn}: how is it read?"), &answer));
    let chosen =
        SettingsChanged { provider: Some(provider.into()), model: Some("m".into()), ..SettingsChanged::default() };
    log.append(None, chosen.into()).expect("append");
    log.establish().expect("establish");
    std::fs::metadata(&shell.logs()[0]).expect("a log").len()
}

/// Broken builds: an export, an import or a fork holds the Log, its Entries and its result at the same time; the request that
/// `inspect` prints is made as a JSON value, for a server or for the demo, which has none.
#[test]
fn commands_on_a_long_session_take_at_most_2_5_times_its_log() {
    let sessions = |provider| {
        let (long, short) = (Shell::new(&[]), Shell::new(&[]));
        let (size, small) = (session(&long, TURNS, provider), session(&short, 1, provider));
        (long, short, size, small)
    };
    let (of_server, of_demo) = (sessions("script"), sessions("demo"));
    let export = |format| vec!["sessions", "export", "last", "--to", format, "--output", "out"];
    let cases = [export("md"), export("html"), export("json"), vec!["sessions", "import", "out"], vec!["fork", "last"]];
    let inspections = [vec!["inspect", "last", "--json"], vec!["inspect", "last"]];
    let of_server = cases.into_iter().chain(inspections.clone()).map(|args| (args, &of_server));
    let of_demo = inspections.into_iter().map(|args| (args, &of_demo));
    let all = of_server.chain(of_demo).collect();
    for (args, (long, short, size, small)) in tier::sample("commands_on_a_long_session", all) {
        let imports = args.contains(&"import");
        if imports {
            for shell in [long, short] {
                let _ = std::fs::remove_file(shell.workspace().join("out"));
                assert_eq!(shell.run(export("json")).code, 0, "the export that is imported");
            }
        }
        let used = |of: &Shell| {
            let elsewhere = Shell::new(&[]);
            let shell = if imports { &elsewhere } else { of };
            if imports {
                std::fs::copy(of.workspace().join("out"), shell.workspace().join("out")).expect("an export");
            }
            let _ = std::fs::remove_file(of.workspace().join("out"));
            let (kb, ran) = peak(shell, &args);
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
            if imports {
                std::fs::copy(shell.workspace().join("out"), of.workspace().join("out")).expect("an export");
            }
            kb * 1024
        };
        // A look at a process can miss its peak, so the largest of several runs is the closest to it.
        let most = |of: &Shell| (0..5).map(|_| used(of)).max().expect("five runs");
        let more = most(long).saturating_sub(most(short));
        let times = more as f64 / (size - small) as f64;
        figures(&format!("{} of a Log of {} MB: {times:.1} times its size", args.join(" "), size >> 20));
        assert!(times <= 2.5, "{args:?} takes {times:.1} times the Log");
    }
}

/// The processor time of a run whose output is thrown away, seconds: the least of three runs.
fn processor_time(shell: &Shell, args: &[&str]) -> f64 {
    let once = || {
        let plain = shell.command(args);
        let mut command = Command::new("bash");
        command.args(["-c", "TIMEFORMAT='%3U %3S'; time \"$0\" \"$@\" > /dev/null"]).arg(plain.get_program());
        command.args(plain.get_args()).current_dir(shell.workspace()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = ran(command.output().expect("bash runs"));
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
        let last = ran.stderr.lines().last().expect("the times").to_owned();
        last.split(' ').map(|seconds| seconds.parse::<f64>().expect("seconds")).sum::<f64>()
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

/// Ten times the Session takes about ten times the work. The bound leaves room for a machine that is busy.
///
/// Broken build: each block of the document walks the path of the whole conversation.
#[test]
fn the_work_of_an_export_grows_with_the_session() {
    let shells = [1, TURNS / 10, TURNS].map(|turns| {
        let shell = Shell::new(&[]);
        session(&shell, turns, "script");
        shell
    });
    for format in tier::sample("the_work_of_an_export", vec!["md", "html", "json"]) {
        let args = ["sessions", "export", "last", "--to", format];
        let [start, one, ten] = [0, 1, 2].map(|at| processor_time(&shells[at], &args));
        let times = (ten - start) / (one - start).max(0.001);
        figures(&format!(
            "export --to {format}: {one:.3} s of processor time for {} turns, {ten:.3} s for {TURNS}: {times:.1} times",
            TURNS / 10
        ));
        assert!(times <= 15.0, "{format}: ten times the session takes {times:.1} times the work");
    }
}
