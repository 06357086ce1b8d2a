//! Flags and commands of other programs, and what does the same here.

use pixir_core::Remedy;

use crate::remedies::Piece::{Command, Flag, Text};
use crate::remedies::{Piece, instead};

/// Names, and what does the same here.
type Table = &'static [(&'static str, &'static [Piece])];

/// Flags, without their dashes.
const FLAGS: Table = &[
    ("output-format", &[Flag("--format json"), Text(", or "), Flag("--format jsonl"), Text(" for a stream")]),
    ("input-format", &[Flag("--input jsonl")]),
    ("stream-json", &[Flag("--format jsonl")]),
    ("max-turns", &[Flag("--max-rounds N")]),
    ("max-steps", &[Flag("--max-rounds N")]),
    ("max-budget-usd", &[Flag("--max-cost USD")]),
    ("timeout", &[Flag("--deadline SECONDS")]),
    ("dangerously-skip-permissions", &[Flag("--write")]),
    ("dangerously-bypass-approvals-and-sandbox", &[Flag("--write")]),
    ("yolo", &[Flag("--write")]),
    ("full-auto", &[Flag("--write")]),
    ("auto-approve", &[Flag("--write")]),
    ("yes-always", &[Flag("--write")]),
    ("allowedTools", &[Flag("--allow RULE")]),
    ("allowed-tools", &[Flag("--allow RULE")]),
    ("allow-tool", &[Flag("--allow RULE")]),
    ("allow-mcp", &[Flag("--allow 'mcp(SERVER.TOOL)'")]),
    ("disallowedTools", &[Command("pixir permissions add --deny RULE")]),
    ("disallowed-tools", &[Command("pixir permissions add --deny RULE")]),
    ("deny-tool", &[Command("pixir permissions add --deny RULE")]),
    ("permission-mode", &[Flag("--mode read-only"), Text(", ask or auto")]),
    ("approval-mode", &[Flag("--mode read-only"), Text(", ask or auto")]),
    (
        "ask-for-approval",
        &[Text("the mode ask, in which the terminal interface begins; without a screen "), Flag("--allow RULE")],
    ),
    ("resume", &[Command("pixir resume ID")]),
    ("last", &[Command("pixir resume --last")]),
    ("fork-session", &[Command("pixir fork ID")]),
    ("cd", &[Flag("-C DIR")]),
    ("cwd", &[Flag("-C DIR")]),
    ("image", &[Flag("--attach FILE")]),
    ("file", &[Flag("--attach FILE")]),
    ("json-schema", &[Flag("--output-schema FILE")]),
    ("output-last-message", &[Flag("-o FILE")]),
    ("output", &[Flag("-o FILE")]),
    ("no-session-persistence", &[Flag("--ephemeral")]),
    ("no-session", &[Flag("--ephemeral")]),
    ("system-prompt", &[Flag("--append-system-prompt TEXT")]),
    ("append-system-prompt-file", &[Flag("--append-system-prompt TEXT")]),
    ("message", &[Text("the prompt as an argument: "), Command("pixir -p PROMPT")]),
    ("prompt", &[Text("the prompt as an argument: "), Command("pixir -p PROMPT")]),
    ("reasoning-effort", &[Flag("--effort LEVEL")]),
    ("thinking", &[Flag("--effort LEVEL")]),
    ("profile", &[Flag("--config KEY=VALUE")]),
    ("settings", &[Flag("--config KEY=VALUE")]),
    (
        "verbose",
        &[
            Text("PIXIR_LOG=debug, and read the file log/pixir.log of the state folder, which "),
            Command("pixir doctor"),
            Text(" names"),
        ],
    ),
    (
        "debug",
        &[
            Text("PIXIR_LOG=debug, and read the file log/pixir.log of the state folder, which "),
            Command("pixir doctor"),
            Text(" names"),
        ],
    ),
    ("quiet", &[Text("2>/dev/null; stdout has the result alone")]),
    ("color", &[Text("NO_COLOR=1")]),
    ("no-color", &[Text("NO_COLOR=1")]),
    ("list-sessions", &[Command("pixir sessions list")]),
    ("list-models", &[Command("pixir models list")]),
    ("fallback-model", &[Flag("--config 'fallback=[\"PROVIDER/NAME\"]'")]),
    ("oss", &[Text("a local server: "), Command("pixir -p --provider ollama PROMPT")]),
    ("local-provider", &[Text("a local server: "), Command("pixir -p --provider ollama PROMPT")]),
    ("search", &[Text("an MCP server that searches: "), Command("pixir mcp add NAME -- COMMAND")]),
    ("mcp-config", &[Text("a server in your configuration: "), Command("pixir mcp add NAME -- COMMAND")]),
    ("allowed-mcp-server-names", &[Flag("--allow 'mcp(SERVER)'")]),
    ("strict-mcp-config", &[Text("the servers that this lists, which are all: "), Command("pixir mcp list")]),
    ("sandbox-mode", &[Flag("--mode read-only"), Text(", ask or auto")]),
    ("session", &[Command("pixir resume ID")]),
    ("new-session", &[Command("pixir -p PROMPT")]),
    ("name", &[Command("pixir sessions rename ID NAME")]),
    (
        "print-logs",
        &[
            Text("PIXIR_LOG=debug, and read the file log/pixir.log of the state folder, which "),
            Command("pixir doctor"),
            Text(" names"),
        ],
    ),
    (
        "log-level",
        &[
            Text("PIXIR_LOG=debug, and read the file log/pixir.log of the state folder, which "),
            Command("pixir doctor"),
            Text(" names"),
        ],
    ),
    ("include-directories", &[Flag("--add-dir FOLDER")]),
    ("add-directory", &[Flag("--add-dir FOLDER")]),
    ("all-files", &[Text("no flag: the model finds the files of the workspace by itself")]),
    ("read", &[Text("@FILE in the prompt")]),
    (
        "tools",
        &[Flag("--toolset typed"), Text(", run or both; a role names single tools: "), Command("pixir agents list")],
    ),
    ("agents", &[Text("files in .pixir/agents: "), Command("pixir agents list")]),
    ("disable-slash-commands", &[Text("a space before the prompt, which makes it text")]),
    ("system-prompt-file", &[Flag("--append-system-prompt TEXT")]),
    ("enable", &[Flag("--config KEY=VALUE")]),
    ("disable", &[Flag("--config KEY=VALUE")]),
    ("variant", &[Flag("--effort LEVEL")]),
    ("ide", &[Text("an editor that speaks ACP: "), Command("pixir acp")]),
    ("chrome", &[Text("an MCP server of a browser: "), Command("pixir mcp add NAME -- COMMAND")]),
    ("share", &[Command("pixir sessions export last")]),
    ("no-alt-screen", &[Flag("--inline")]),
    ("skip-git-repo-check", &[Text("no flag: pixir works without a repository")]),
    ("full-access", &[Flag("--write")]),
    ("allow-all-tools", &[Flag("--write")]),
    ("yes", &[Flag("--write")]),
    ("worktree", &[Text("agents, which work in copies: "), Command("pixir agents --help")]),
];

/// Short flags.
const SHORT: Table = &[
    ("-r", &[Command("pixir resume ID")]),
    ("-i", &[Flag("--attach FILE")]),
    ("-a", &[Text("the mode ask, in which the terminal interface begins; without a screen "), Flag("--allow RULE")]),
    ("-s", &[Flag("--sandbox TIER")]),
    ("-d", &[Flag("-C DIR")]),
    ("-q", &[Text("2>/dev/null; stdout has the result alone")]),
    (
        "-v",
        &[
            Text("PIXIR_LOG=debug, and read the file log/pixir.log of the state folder, which "),
            Command("pixir doctor"),
            Text(" names"),
        ],
    ),
];

/// Commands.
const COMMANDS: Table = &[
    ("exec", &[Command("pixir -p PROMPT")]),
    ("chat", &[Command("pixir")]),
    ("ask", &[Command("pixir -p PROMPT")]),
    ("login", &[Command("pixir auth login PROVIDER")]),
    ("logout", &[Command("pixir auth logout PROVIDER")]),
    ("update", &[Text("the package manager that installed pixir")]),
    ("history", &[Command("pixir sessions list")]),
    ("session", &[Command("pixir sessions list")]),
    ("plugin", &[Text("MCP servers, skills and roles: "), Command("pixir mcp list")]),
    ("plugins", &[Text("MCP servers, skills and roles: "), Command("pixir mcp list")]),
    ("extensions", &[Text("MCP servers, skills and roles: "), Command("pixir mcp list")]),
    ("e", &[Command("pixir -p PROMPT")]),
    ("upgrade", &[Text("the package manager that installed pixir")]),
    ("stats", &[Command("pixir sessions list")]),
    ("export", &[Command("pixir sessions export last")]),
    ("import", &[Command("pixir sessions import FILE")]),
    ("review", &[Text("the changes on stdin: "), Command("git diff | pixir -p 'review this change'")]),
    ("continue", &[Command("pixir resume --last")]),
    ("serve", &[Command("pixir mcp serve"), Text(", or "), Command("pixir acp"), Text(" for an editor")]),
    ("setup-token", &[Command("pixir auth login PROVIDER")]),
    ("completion", &[Command("pixir completions SHELL")]),
];

/// What does here what this flag of another program does.
pub(super) fn flag(wrong: &str) -> Option<Remedy> {
    let name = wrong.split('=').next().unwrap_or(wrong);
    let in_table = |table: Table, name: &str| {
        table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, ours)| instead(ours))
    };
    match name.strip_prefix("--") {
        Some(long) => in_table(FLAGS, long),
        None => in_table(SHORT, name.get(..2)?),
    }
}

/// What does here what this command of another program does.
pub(super) fn command(wrong: &str) -> Option<Remedy> {
    COMMANDS.iter().find(|(known, _)| *known == wrong).map(|(_, ours)| instead(ours))
}
