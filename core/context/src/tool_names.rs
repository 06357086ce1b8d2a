//! Names of pixir's tools, as its own files, roles and models of other programs write them.

/// Names of tools in other programs, and ours.
const TOOLS: [(&str, &str); 56] = [
    ("Bash", "bash"),
    ("shell", "bash"),
    ("execute_command", "bash"),
    ("run_terminal_cmd", "bash"),
    ("run_shell_command", "bash"),
    ("run_command", "bash"),
    ("terminal", "bash"),
    ("container.exec", "bash"),
    ("BashOutput", "job_output"),
    ("KillShell", "job_kill"),
    ("KillBash", "job_kill"),
    ("Read", "read"),
    ("read_file", "read"),
    ("view", "read"),
    ("View", "read"),
    ("open_file", "read"),
    ("Write", "write"),
    ("write_file", "write"),
    ("write_to_file", "write"),
    ("create_file", "write"),
    ("Edit", "edit"),
    ("MultiEdit", "edit"),
    ("str_replace", "edit"),
    ("str_replace_editor", "edit"),
    ("str_replace_based_edit_tool", "edit"),
    ("replace", "edit"),
    ("replace_in_file", "edit"),
    ("edit_file", "edit"),
    ("search_replace", "edit"),
    ("patch", "apply_patch"),
    ("ApplyPatch", "apply_patch"),
    ("applyPatch", "apply_patch"),
    ("apply_diff", "apply_patch"),
    ("Grep", "grep"),
    ("grep_search", "grep"),
    ("search_file_content", "grep"),
    ("search_files", "grep"),
    ("codebase_search", "grep"),
    ("Glob", "find"),
    ("glob", "find"),
    ("file_search", "find"),
    ("find_files", "find"),
    ("LS", "ls"),
    ("list_dir", "ls"),
    ("list_directory", "ls"),
    ("list_files", "ls"),
    ("TodoWrite", "update_plan"),
    ("todowrite", "update_plan"),
    ("todo_write", "update_plan"),
    ("AskUserQuestion", "ask_user"),
    ("ask_followup_question", "ask_user"),
    ("question", "ask_user"),
    ("Skill", "skill_view"),
    ("skill", "skill_view"),
    ("Task", "spawn_agent"),
    ("Agent", "spawn_agent"),
];

/// The tools of a Session that a role can name. `run` is not among them: each of its commands is one of these.
pub const NAMES: [&str; 19] = [
    "apply_patch",
    "ask_user",
    "bash",
    "edit",
    "find",
    "grep",
    "job_kill",
    "job_output",
    "ls",
    "read",
    "recall",
    "show_agent",
    "skill_view",
    "skills_list",
    "spawn_agent",
    "tell_agent",
    "update_plan",
    "wait_agent",
    "write",
];

/// The tools that change files.
pub(crate) const CHANGE_FILES: [&str; 3] = ["apply_patch", "edit", "write"];

/// The tools that can change files, by themselves or by a command.
pub const MAY_CHANGE_FILES: [&str; 4] = ["apply_patch", "bash", "edit", "write"];

/// Our name of a tool, for a name of another program.
pub fn ours(name: &str) -> Option<&'static str> {
    TOOLS.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
}

/// Our name of a tool, however it is written; `None` where there is no such tool.
pub fn known(name: &str) -> Option<&'static str> {
    let lower = name.to_lowercase();
    ours(name).or_else(|| NAMES.into_iter().find(|it| *it == name || *it == lower))
}
