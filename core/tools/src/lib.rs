//! The built-in tools of the `typed` toolset, one per file.
#![forbid(unsafe_code)]

use std::sync::Arc;

use call::Tool;

pub mod agent; // child Sessions: start, wait, tell, show
pub mod apply_patch; // one patch over several files
mod ask; // ask_user: a form for the user
mod bash; // run a command line
pub mod edit; // replace exact text in a file
mod find; // files by name
mod grep; // lines by pattern
pub mod job; // background jobs: their output, and stopping them
mod ls; // one folder
pub mod plan; // the model's own list of steps
pub mod read; // a file, or a page of it
pub mod recall; // search past Sessions
pub mod skill; // list skills, read one
pub mod waiting; // a wait for a job: its port, a line of its output
pub mod write; // a whole file

/// All built-in tools.
pub fn builtin() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(agent::ShowAgent),
        Arc::new(agent::SpawnAgent),
        Arc::new(agent::TellAgent),
        Arc::new(agent::WaitAgent),
        Arc::new(apply_patch::ApplyPatch),
        Arc::new(ask::AskUser),
        Arc::new(bash::Bash),
        Arc::new(edit::Edit),
        Arc::new(find::Find),
        Arc::new(grep::Grep),
        Arc::new(job::JobKill),
        Arc::new(job::JobOutput),
        Arc::new(ls::Ls),
        Arc::new(read::Read),
        Arc::new(recall::Recall),
        Arc::new(skill::SkillView),
        Arc::new(skill::SkillsList),
        Arc::new(plan::UpdatePlan),
        Arc::new(write::Write),
    ]
}
