//! What a model needs for five tasks: requests, calls, and bytes that it reads: `cargo bench --bench tasks`.

#[path = "../tests/server.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod server;
#[path = "../tests/shell.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod shell;
#[path = "../tests/tasks/tasks.rs"]
mod tasks;
#[path = "../tests/wait.rs"]
#[expect(dead_code, reason = "the stories use more of it")]
mod wait;

use tasks::{TOOLSETS, all};

#[expect(clippy::print_stdout, reason = "a bench prints its table")]
fn main() {
    println!("| task | tools | requests | calls | first request, bytes | all requests, bytes | bound |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for task in all() {
        for (which, toolset) in TOOLSETS.into_iter().enumerate() {
            let it = task.carry_out(which);
            let (name, most) = (task.name, task.most[which]);
            println!("| {name} | {toolset} | {} | {} | {} | {} | {most} |", it.requests, it.calls, it.first, it.all);
        }
    }
}
