//! Instructions, counted by valgrind where it is installed: they are the same on every run.

use std::process::Command;

/// The arguments of a run that is counted, if this process is one.
pub(crate) fn arguments() -> Option<Vec<String>> {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    (!args.is_empty()).then_some(args)
}

/// Instructions of one step: those of a run with many steps without those of one with none, each in a process of its own. Two
/// columns of a table: the count, and how many times that of the first row it is.
pub(crate) fn of_step(args: &[&str], steps: usize, first: &mut Option<u64>) -> String {
    let counted = || Some(instructions(args, steps)?.saturating_sub(instructions(args, 0)?) / steps as u64);
    let Some(count) = counted() else { return "valgrind is not installed |".to_owned() };
    let first = *first.get_or_insert(count);
    format!("{count} | {:.2}", count as f64 / first.max(1) as f64)
}

fn instructions(args: &[&str], steps: usize) -> Option<u64> {
    let own = std::env::current_exe().ok()?;
    let counted = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args(args)
        .arg(steps.to_string())
        .output()
        .ok()?;
    let said = String::from_utf8_lossy(&counted.stderr).into_owned();
    said.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}
