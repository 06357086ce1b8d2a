//! Every command: its help, and where it runs.

use clap::Subcommand;
use pixir_core::{Code, Error, Remedy, Result};

use crate::args::Args;
use crate::cli::Cli;
use crate::open::Open;

mod acp; // the protocol of editors
mod agent; // a guide for programs that drive pixir
mod agents; // the agents of a Session, and roles
pub(crate) mod auth; // stored keys
mod completions; // for shells
mod config; // settings, and where each comes from
pub(crate) mod demo; // the embedded task in a temporary workspace
mod diagnose; // problems of a Session, and their fixes
pub(crate) mod doctor; // checks of this machine
mod compact; // the older part of a conversation replaced by a summary
mod fork; // a new Session from an entry of another
mod elsewhere; // runs that another process has open
mod found; // words for what was found in files
mod gc; // deletion of unreferenced data
mod init; // a first AGENTS.md
mod inspect; // the exact request
mod man; // manual pages
mod mcp; // servers of the Model Context Protocol
mod models; // the available models
pub(crate) mod permissions; // rules of the user
mod prompt; // `pixir [PROMPT]`, without a command
mod replay; // a Session replayed from its Log
mod restore; // undo and redo
mod resume; // continue a Session
mod run; // a line of the run language
pub(crate) mod schema; // the machine-readable contract
pub(crate) mod sessions; // Sessions that are not open
mod skills; // instructions for certain kinds of work
mod status; // what is here, at a glance
mod themes; // colours and their contrast
mod tools; // the tools of models, without a model
pub(crate) mod tree; // turns and branches
mod workflow; // graphs of steps
pub(crate) mod trust; // what the user trusts of workspaces
mod tui; // the terminal interface without a terminal

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch pixir find, fix and test a bug in a sample project, without a key or a network
    #[command(after_help = "Examples:\n  pixir demo\n  pixir demo --headless --json")]
    Demo,
    /// Continue an earlier session
    #[command(after_help = "Examples:\n  pixir resume --last\n  pixir resume 20261121T203012-0a1b2c \"now the tests\"")]
    Resume(resume::ResumeArgs),
    /// Show what is here: the model that would answer, the mode, trust, the latest session
    #[command(after_help = "Examples:\n  pixir status\n  pixir status --json | jq -r .latest.session_id")]
    Status,
    /// List, show, rename, delete, move, export, import, verify and repair sessions
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir sessions list\n  pixir sessions show last\n  pixir sessions export last > session.md"
    )]
    Sessions {
        #[command(subcommand)]
        command: sessions::SessionsCommand,
    },
    /// Show the agents of a session, and stop them; list, show and check roles
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir agents list\n  pixir agents tree last"
    )]
    Agents {
        #[command(subcommand)]
        command: agents::AgentsCommand,
    },
    /// Run graphs of steps: agents, commands and questions, checked before they run and resumed after any end
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir workflow list\n  pixir workflow run fix-and-verify --dry-run"
    )]
    Workflow {
        #[command(subcommand)]
        command: workflow::WorkflowCommand,
    },
    /// Show the turns and branches of a session
    #[command(
        after_help = "Examples:\n  pixir tree\n  pixir tree 20261121T203012-0a1b2c --json\n  pixir tree last --all"
    )]
    Tree(tree::TreeArgs),
    /// Create a session that continues from an entry of another one
    #[command(
        after_help = "Examples:\n  pixir fork last --at 12\n  pixir fork 20261121T203012-0a1b2c --at 12 --dry-run"
    )]
    Fork(fork::ForkArgs),
    /// Replace the older part of a session's conversation by a summary; nothing is deleted
    #[command(
        after_help = "Examples:\n  pixir compact --dry-run\n  pixir compact last --focus \"the failing tests\"\n  pixir --config compaction.summary=pixir compact last"
    )]
    Compact(compact::CompactArgs),
    /// Undo the file changes of a turn
    #[command(
        after_help = "Examples:\n  pixir undo --dry-run\n  pixir undo last --turn 3\n  pixir undo --changed-since merge"
    )]
    Undo(restore::UndoArgs),
    /// Redo the file changes that the last undo took back
    #[command(after_help = "Examples:\n  pixir redo --dry-run\n  pixir redo")]
    Redo(restore::RedoArgs),
    /// Print the exact request that a session would send, and what each part costs; works offline
    #[command(
        after_help = "Examples:\n  pixir inspect\n  pixir inspect last --seq 12 --json | jq .request\n  pixir inspect last --ledger"
    )]
    Inspect(inspect::InspectArgs),
    /// Sketch an AGENTS.md from the files of this repository: commands, layout, conventions; no model is asked
    #[command(after_help = "Examples:\n  pixir init --dry-run\n  pixir init\n  pixir init --force --json")]
    Init(init::InitArgs),
    /// Replay a session from its log: on the screen, as text if there is no terminal, or as events with --format jsonl
    #[command(
        after_help = "Examples:\n  pixir replay\n  pixir replay last --speed 4\n  pixir replay last --cast talk.cast --size 100x30\n  pixir replay last --format jsonl --from 10"
    )]
    Replay(replay::ReplayArgs),
    /// Report what is wrong with a session and how to fix it; changes nothing
    #[command(after_help = "Examples:\n  pixir diagnose\n  pixir diagnose last --json")]
    Diagnose(diagnose::DiagnoseArgs),
    /// Delete data that no session refers to, and sessions that have been in the trash long enough
    #[command(after_help = "Examples:\n  pixir gc --dry-run\n  pixir gc --yes --trash-days 7")]
    Gc(gc::GcArgs),
    /// Run a line of commands as the `run` tool does; changes need --write
    #[command(
        after_help = "Examples:\n  pixir run 'cat src/main.rs | grep -n TODO | wc -l'\n  pixir run 'write a.txt hello' --dry-run\n  pixir run help"
    )]
    Run(run::RunArgs),
    /// List, show and run the tools that models use
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir tools list\n  pixir tools run read '{\"path\": \"README.md\"}'"
    )]
    Tools {
        #[command(subcommand)]
        command: tools::ToolsCommand,
    },
    /// Show how commands are judged; list, add and revoke the rules by which calls run without asking, or not at all
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir permissions list\n  pixir permissions why 'make test'"
    )]
    Permissions {
        #[command(subcommand)]
        command: permissions::PermissionsCommand,
    },
    /// List, show and check skills: instructions for certain kinds of work
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir skills list\n  pixir skills validate"
    )]
    Skills {
        #[command(subcommand)]
        command: skills::SkillsCommand,
    },
    /// Trust what this workspace brings along: its configuration, skills, prompt templates, roles, workflows and MCP servers are in force as they are now
    #[command(
        after_help = "Examples:\n  pixir trust --dry-run\n  pixir trust\n  pixir trust --revoke\n  pixir trust --list --json"
    )]
    Trust(trust::TrustArgs),
    /// Show settings and where each comes from; get one, set one in your own file
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir config show\n  pixir config set effort high"
    )]
    Config {
        #[command(subcommand)]
        command: config::ConfigCommand,
    },
    /// Add, list, test, approve and remove MCP servers: other people's tools
    #[command(after_help = "Examples:\n  pixir mcp add time -- uvx mcp-server-time\n  pixir mcp list")]
    Mcp {
        #[command(subcommand)]
        command: mcp::McpCommand,
    },
    /// List the available models with their windows, prices and efforts
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir models list\n  pixir models list --online"
    )]
    Models {
        #[command(subcommand)]
        command: models::ModelsCommand,
    },
    /// Run the terminal interface without a terminal: keys come from a script, frames are printed or saved
    #[command(
        after_help = "A script has one step per line:\n  keys hello<Enter>     type text and keys: <Esc> <C-c> <A-y> <S-Tab> <PgUp> <lt>\n  paste two\\nlines     paste text\n  expect Done           wait until the screen shows this text\n  idle                  wait until nothing changes\n  resize 80x24          resize the screen\n  frame NAME            save or print this frame\n\nExamples:\n  pixir tui --script keys.txt --frames out --size 120x40\n  echo 'frame start' | pixir tui --script - --screen json"
    )]
    Tui(tui::TuiArgs),
    /// List, preview and check the themes of the terminal interface
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir themes list\n  pixir themes preview dark"
    )]
    Themes {
        #[command(subcommand)]
        command: themes::ThemesCommand,
    },
    /// Store, show and remove provider keys
    #[command(
        subcommand_required = true,
        arg_required_else_help = true,
        after_help = "Examples:\n  pixir auth status\n  pixir auth login anthropic"
    )]
    Auth {
        #[command(subcommand)]
        command: auth::AuthCommand,
    },
    /// Print the machine-readable contract: commands, flags, exit codes, error kinds, events
    #[command(after_help = "Examples:\n  pixir schema | jq '.exit_codes'\n  pixir schema --events")]
    Schema(schema::SchemaArgs),
    /// Serve an editor over the Agent Client Protocol on stdin and stdout
    #[command(
        after_help = "An editor starts it; the guide has the configuration of each.\n\nExamples:\n  pixir acp\n  pixir acp --mode ask --model anthropic/claude-sonnet-5\n  pixir acp --login"
    )]
    Acp(acp::AcpArgs),
    /// Print a guide for a program or an agent that drives pixir
    #[command(after_help = "Examples:\n  pixir agent\n  pixir agent --json | jq -r .guide")]
    Agent,
    /// Print the completions of a shell
    #[command(
        after_help = "Examples:\n  pixir completions bash > ~/.local/share/bash-completion/completions/pixir\n  pixir completions zsh > ~/.zfunc/_pixir\n  pixir completions fish > ~/.config/fish/completions/pixir.fish\n  pixir completions nushell > ~/.config/nushell/pixir.nu"
    )]
    Completions(completions::CompletionsArgs),
    /// Print the manual page of a command, or write the pages of all commands
    #[command(
        after_help = "Examples:\n  pixir man | man -l -\n  pixir man sessions list | man -l -\n  pixir man --to ~/.local/share/man/man1"
    )]
    Man(man::ManArgs),
    /// Check this machine: configuration, credentials, state folder, terminal, sandbox
    #[command(after_help = "Examples:\n  pixir doctor\n  pixir doctor --online --json")]
    Doctor(doctor::DoctorArgs),
}

/// Runs a command and returns its exit code.
pub(crate) fn run(args: Args, cli: &Cli) -> Result<u8> {
    pixir_core::adopt_orphans();
    match args.command {
        None if args.goes_on => prompt::present(cli, &Open::Latest, args.prompt),
        None => prompt::run(cli, args.prompt),
        // It would be lost: `pixir -c tree` continues nothing.
        Some(_) if args.goes_on => {
            let fix = Remedy::command("pixir resume --last PROMPT");
            Err(Error::new(Code::Usage, "--continue goes with a prompt, and not with a command", fix)
                .with("input", "--continue"))
        }
        Some(Command::Demo) => demo::run(cli),
        Some(Command::Resume(args)) => resume::run(cli, args),
        Some(Command::Sessions { command }) => sessions::run(cli, command),
        Some(Command::Agents { command }) => agents::run(cli, &command),
        Some(Command::Workflow { command }) => workflow::run(cli, &command),
        Some(Command::Tree(args)) => tree::run(cli, &args),
        Some(Command::Fork(args)) => fork::run(cli, &args),
        Some(Command::Compact(args)) => compact::run(cli, &args),
        Some(Command::Undo(args)) => restore::undo(cli, &args),
        Some(Command::Redo(args)) => restore::redo(cli, &args),
        Some(Command::Inspect(args)) => inspect::run(cli, &args),
        Some(Command::Init(args)) => init::run(cli, &args),
        Some(Command::Replay(args)) => replay::run(cli, &args),
        Some(Command::Diagnose(args)) => diagnose::run(cli, &args),
        Some(Command::Gc(args)) => gc::run(cli, &args),
        Some(Command::Run(args)) => run::run(cli, args),
        Some(Command::Tools { command }) => tools::run(cli, command),
        Some(Command::Permissions { command }) => permissions::run(cli, command),
        Some(Command::Skills { command }) => skills::run(cli, command),
        Some(Command::Trust(args)) => trust::run(cli, &args),
        Some(Command::Config { command }) => config::run(cli, command),
        Some(Command::Mcp { command }) => mcp::run(cli, command),
        Some(Command::Models { command }) => models::run(cli, command),
        Some(Command::Tui(args)) => tui::run(cli, &args),
        Some(Command::Themes { command }) => themes::run(cli, command),
        Some(Command::Auth { command }) => auth::run(cli, command),
        Some(Command::Schema(args)) => schema::run(cli, &args),
        Some(Command::Acp(args)) => acp::run(cli, &args),
        Some(Command::Status) => status::run(cli),
        Some(Command::Agent) => agent::run(cli),
        Some(Command::Completions(args)) => completions::run(cli, &args),
        Some(Command::Man(args)) => man::run(cli, &args),
        Some(Command::Doctor(args)) => doctor::run(cli, &args),
    }
}
