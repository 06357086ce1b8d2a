//! Flags and commands of other programs, and what does the same here.

/// Flags, without their dashes.
const FLAGS: &[(&str, &str)] = &[
    ("output-format", "--format json, or --format jsonl for a stream"),
    ("input-format", "--input jsonl"),
    ("stream-json", "--format jsonl"),
    ("max-turns", "--max-rounds N"),
    ("max-steps", "--max-rounds N"),
    ("max-budget-usd", "--max-cost USD"),
    ("timeout", "--deadline SECONDS"),
    ("dangerously-skip-permissions", "--write"),
    ("dangerously-bypass-approvals-and-sandbox", "--write"),
    ("yolo", "--write"),
    ("full-auto", "--write"),
    ("auto-approve", "--write"),
    ("yes-always", "--write"),
    ("allowedTools", "--allow RULE"),
    ("allowed-tools", "--allow RULE"),
    ("allow-tool", "--allow RULE"),
    ("allow-mcp", "--allow 'mcp(SERVER.TOOL)'"),
    ("disallowedTools", "pixir permissions add --deny RULE"),
    ("disallowed-tools", "pixir permissions add --deny RULE"),
    ("deny-tool", "pixir permissions add --deny RULE"),
    ("permission-mode", "--mode read-only, ask or auto"),
    ("approval-mode", "--mode read-only, ask or auto"),
    ("ask-for-approval", "--mode ask"),
    ("resume", "pixir resume ID"),
    ("last", "pixir resume --last"),
    ("fork-session", "pixir fork ID"),
    ("cd", "-C DIR"),
    ("cwd", "-C DIR"),
    ("image", "--attach FILE"),
    ("file", "--attach FILE"),
    ("json-schema", "--output-schema FILE"),
    ("output-last-message", "-o FILE"),
    ("output", "-o FILE"),
    ("no-session-persistence", "--ephemeral"),
    ("no-session", "--ephemeral"),
    ("system-prompt", "--append-system-prompt TEXT"),
    ("append-system-prompt-file", "--append-system-prompt TEXT"),
    ("message", "the prompt as an argument: pixir -p \"…\""),
    ("prompt", "the prompt as an argument: pixir -p \"…\""),
    ("reasoning-effort", "--effort LEVEL"),
    ("thinking", "--effort LEVEL"),
    ("profile", "--config KEY=VALUE"),
    ("settings", "--config KEY=VALUE"),
    ("verbose", "PIXIR_LOG=debug, and the log file that pixir doctor names"),
    ("debug", "PIXIR_LOG=debug, and the log file that pixir doctor names"),
    ("quiet", "2>/dev/null; stdout has the result alone"),
    ("color", "NO_COLOR=1"),
    ("no-color", "NO_COLOR=1"),
    ("list-sessions", "pixir sessions list"),
    ("list-models", "pixir models list"),
    ("worktree", "pixir agents, which work in copies"),
];

/// Short flags.
const SHORT: &[(&str, &str)] = &[
    ("-r", "pixir resume ID"),
    ("-i", "--attach FILE"),
    ("-a", "--mode ask"),
    ("-s", "--sandbox TIER"),
    ("-d", "-C DIR"),
    ("-q", "2>/dev/null; stdout has the result alone"),
    ("-v", "PIXIR_LOG=debug, and the log file that pixir doctor names"),
];

/// Commands.
const COMMANDS: &[(&str, &str)] = &[
    ("exec", "pixir -p \"your prompt\""),
    ("chat", "pixir"),
    ("ask", "pixir -p \"your prompt\""),
    ("login", "pixir auth login PROVIDER"),
    ("logout", "pixir auth logout PROVIDER"),
    ("update", "the package manager that installed pixir"),
    ("history", "pixir sessions list"),
    ("session", "pixir sessions list"),
    ("completion", "pixir completions SHELL"),
];

/// What does here what this flag of another program does.
pub(super) fn flag(wrong: &str) -> Option<&'static str> {
    let name = wrong.split('=').next().unwrap_or(wrong);
    let in_table = |table: &'static [(&str, &str)], name: &str| {
        table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, ours)| *ours)
    };
    match name.strip_prefix("--") {
        Some(long) => in_table(FLAGS, long),
        None => in_table(SHORT, name.get(..2)?),
    }
}

/// What does here what this command of another program does.
pub(crate) fn command(wrong: &str) -> Option<&'static str> {
    COMMANDS.iter().find(|(known, _)| *known == wrong).map(|(_, ours)| *ours)
}
