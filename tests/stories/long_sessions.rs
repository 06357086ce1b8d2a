//! Commands on a Session at rest, by how much memory a long one takes.

use crate::driver::{log_of, say};
use crate::shell::{Shell, figures, peak};
use pixir_core::store::Store;

/// Messages of the long Session; its Log has about 16 MB.
const TURNS: u32 = 8_000;

/// A Session of this many Turns; returns the size of its Log in bytes.
fn session(shell: &Shell, turns: u32) -> u64 {
    let workspace = shell.workspace().canonicalize().expect("a folder");
    let mut log = log_of(&Store::new(&shell.home()).folder_of(&workspace), &workspace);
    let answer = "The parser reads each token once, and **nothing** is copied twice.\n".repeat(20);
    (1..=turns).for_each(|turn| say(&mut log, turn, &format!("question {turn}: how is it read?"), &answer));
    log.establish().expect("establish");
    std::fs::metadata(&shell.logs()[0]).expect("a log").len()
}

/// Broken builds: an export, an import or a fork holds the Log, its Entries and its result at the same time.
#[test]
fn exports_imports_and_forks_of_a_long_session_take_at_most_2_5_times_its_log() {
    let (long, short) = (Shell::new(&[]), Shell::new(&[]));
    let (size, small) = (session(&long, TURNS), session(&short, 1));
    let export = |format| vec!["sessions", "export", "last", "--to", format, "--output", "out"];
    let cases = [export("md"), export("html"), export("json"), vec!["sessions", "import", "out"], vec!["fork", "last"]];
    for args in cases {
        let imports = args.contains(&"import");
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
        let more = most(&long).saturating_sub(most(&short));
        let times = more as f64 / (size - small) as f64;
        figures(&format!("{} of a Log of {} MB: {times:.1} times its size", args.join(" "), size >> 20));
        assert!(times <= 2.5, "{args:?} takes {times:.1} times the Log");
    }
}
