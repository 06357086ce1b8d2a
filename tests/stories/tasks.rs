//! Tasks as a model meets them, from the prompt to the solved task.

use crate::shell::figures;
use crate::tasks::{self, Effort, TOOLSETS};
use crate::tier;

/// Broken builds: a truncated, silent or unnumbered result ends a task; an instruction of 2 KB more passes its ceiling.
#[test]
fn a_model_solves_each_task_with_either_toolset_and_reads_no_more_than_before() {
    let tasks = tasks::all();
    let all: Vec<_> = tasks.iter().flat_map(|task| (0..TOOLSETS.len()).map(move |which| (task, which))).collect();
    let mut wrong = Vec::new();
    for (task, which) in tier::sample("a_model_solves_each_task", all) {
        let toolset = TOOLSETS[which];
        let effort = task.carry_out(which);
        let most = task.most[which];
        let Effort { requests, calls, first, all } = effort;
        figures(&format!(
            "{}, {toolset}: {requests} requests, {calls} calls, {first} bytes first, {all} in all",
            task.name
        ));
        if all > most {
            wrong.push(format!("{} with {toolset} reads {all} bytes, {most} before", task.name));
        }
        // The first request of each toolset, with a small repository.
        if first > [14_336, 6_144][which] {
            wrong.push(format!("{} with {toolset}: {first} bytes first", task.name));
        }
    }
    assert!(wrong.is_empty(), "read why, and then change `most`:\n{}", wrong.join("\n"));
}
