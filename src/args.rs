//! Every command and flag; help, `schema` and completions come from here.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// A terminal coding assistant: fast, calm, safe, honest.
#[derive(Debug, Parser)]
#[command(
    name = "pixir",
    version,
    max_term_width = 100,
    disable_help_subcommand = false,
    subcommand_negates_reqs = true
)]
#[command(after_help = "Examples:
  pixir                                 open the terminal interface here
  pixir \"why does the build fail?\"      open it and send this
  pixir demo                            see it work, without a key or a network
  pixir --headless --json \"summarise\"   one turn, one JSON document
  pixir resume --last                   go on where you stopped")]
pub(crate) struct Cli {
    /// What you want; without it the terminal interface opens empty
    pub(crate) prompt: Option<String>,

    #[command(flatten)]
    pub(crate) run: RunOptions,

    #[command(flatten)]
    pub(crate) out: OutputOptions,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// How a Session is run.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Run options")]
pub(crate) struct RunOptions {
    /// Run one turn without the terminal interface, then exit; the prompt may come from stdin
    #[arg(long, global = true)]
    pub(crate) headless: bool,
    /// Model, as NAME or PROVIDER/NAME
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Provider that is set up, or script:FILE for a scripted model
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) provider: Option<String>,
    /// Language of the server at --base-url: responses, chat or anthropic
    #[arg(long, global = true, value_name = "D")]
    pub(crate) dialect: Option<String>,
    /// Server to use, like http://127.0.0.1:8080/v1; its key comes from PIXIR_API_KEY
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// How hard the model should think: none, minimal, low, medium, high, xhigh or max
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) effort: Option<String>,
    /// Write what the model says into a new FILE; --provider script:FILE says it again
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// What may run without asking: read-only, ask or auto
    #[arg(long, global = true, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// Let it change things without asking, as --mode auto does
    #[arg(long, global = true, conflicts_with = "mode")]
    pub(crate) write: bool,
    /// Which tools the model gets: typed, run or both
    #[arg(long, global = true, value_name = "TOOLSET")]
    pub(crate) toolset: Option<String>,
    /// Folder to work in
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Skill to activate before the prompt
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) skill: Option<String>,
    /// Most rounds of tool calls in a turn
    #[arg(long, global = true, value_name = "N")]
    pub(crate) max_rounds: Option<u32>,
    /// Most seconds that a turn may take
    #[arg(long, global = true, value_name = "SECONDS")]
    pub(crate) deadline: Option<u64>,
    /// Only plan what would change: tools that change things say what they would do
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    /// Never wait for a person: a question becomes a refusal
    #[arg(long, global = true)]
    pub(crate) no_input: bool,
    /// Theme of the terminal interface
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) theme: Option<String>,
    /// Print the conversation into the terminal's own history, instead of a screen of its own
    #[arg(long, global = true)]
    pub(crate) inline: bool,
}

/// How results and errors are written.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output options")]
pub(crate) struct OutputOptions {
    /// Form of the result on stdout
    #[arg(long, global = true, value_enum)]
    pub(crate) format: Option<Format>,
    /// The same as --format json
    #[arg(long, global = true, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Form of JSON errors on stderr
    #[arg(long, global = true, value_enum, default_value = "envelope")]
    pub(crate) error_format: ErrorFormat,
}

impl OutputOptions {
    pub(crate) fn format(&self) -> Format {
        if self.json { Format::Json } else { self.format.unwrap_or_default() }
    }
}

/// Forms of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people
    #[default]
    Plain,
    /// One JSON document
    Json,
    /// One event a line, then one result
    Jsonl,
    /// Tab-separated lines, for lists
    Tsv,
}

/// Forms of a JSON error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ErrorFormat {
    /// `error` is an object with kind, message and details
    #[default]
    Envelope,
    /// `error` is the message
    Flat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch pixir find, fix and test a bug in a sample project; no key and no network
    #[command(after_help = "Examples:\n  pixir demo\n  pixir demo --headless --json")]
    Demo,
    /// Go on with an earlier session
    #[command(after_help = "Examples:\n  pixir resume --last\n  pixir resume 20261121T203012-0a1b2c \"now the tests\"")]
    Resume {
        /// The session: an id, its unique beginning or a name; `pixir sessions list` shows them
        #[arg(required_unless_present = "last")]
        id: Option<String>,
        /// What you want next
        prompt: Option<String>,
        /// The latest session of this workspace
        #[arg(long)]
        last: bool,
        /// Only look: nothing is written, and another pixir may have it open
        #[arg(long)]
        read_only: bool,
    },
    /// List, show, rename, delete, move, export, import, verify and repair sessions
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Sessions {
        #[command(subcommand)]
        command: SessionsCommand,
    },
    /// Show a session's turns and branches
    #[command(
        after_help = "Examples:\n  pixir tree\n  pixir tree 20261121T203012-0a1b2c --json\n  pixir tree last --all"
    )]
    Tree {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(default_value = "last")]
        id: String,
        /// Also the sessions that were forked from it, and what it was forked from
        #[arg(long)]
        all: bool,
    },
    /// Make a new session that goes on from an entry of another
    #[command(
        after_help = "Examples:\n  pixir fork last --at 12\n  pixir fork 20261121T203012-0a1b2c --at 12 --dry-run"
    )]
    Fork {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(default_value = "last")]
        id: String,
        /// The last entry that it shares; pixir tree shows the numbers. Without, all of it
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
    },
    /// Take back what a turn changed in files
    #[command(
        after_help = "Examples:\n  pixir undo --dry-run\n  pixir undo last --turn 3\n  pixir undo --changed-since merge"
    )]
    Undo {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(default_value = "last")]
        id: String,
        /// The turn; without, the last that changed anything
        #[arg(long, value_name = "N")]
        turn: Option<u32>,
        #[command(flatten)]
        restore: RestoreOptions,
    },
    /// Do again what the last undo took back
    #[command(after_help = "Examples:\n  pixir redo --dry-run\n  pixir redo")]
    Redo {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(default_value = "last")]
        id: String,
        #[command(flatten)]
        restore: RestoreOptions,
    },
    /// Print the exact request that a session would send, offline, and what each part of it costs
    #[command(after_help = "Examples:\n  pixir inspect\n  pixir inspect last --seq 12 --json | jq .request")]
    Inspect {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(default_value = "last")]
        id: String,
        /// As it was when this entry was the newest
        #[arg(long, value_name = "SEQ")]
        seq: Option<u64>,
    },
    /// Tell a session again from its log: on the screen, as text where there is none, or as the events of --format jsonl
    #[command(
        after_help = "Examples:\n  pixir replay\n  pixir replay last --speed 4\n  pixir replay last --cast talk.cast --size 100x30\n  pixir replay last --format jsonl --from 10"
    )]
    Replay {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(default_value = "last")]
        id: String,
        /// Begin at this entry, as text
        #[arg(long, value_name = "SEQ", conflicts_with_all = ["step", "speed", "at", "cast"])]
        from: Option<u64>,
        #[command(flatten)]
        screen: ReplayScreen,
    },
    /// Say what is wrong with a session and what to do about it; changes nothing
    #[command(after_help = "Examples:\n  pixir diagnose\n  pixir diagnose last --json")]
    Diagnose {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(default_value = "last")]
        id: String,
    },
    /// Remove what no session refers to any more, and what has been in the trash for long enough
    #[command(after_help = "Examples:\n  pixir gc --dry-run\n  pixir gc --yes --trash-days 7")]
    Gc {
        /// Do it
        #[arg(long)]
        yes: bool,
        /// Days that a deleted session stays in the trash
        #[arg(long, default_value_t = 30, value_name = "N")]
        trash_days: u32,
    },
    /// Run a line of commands, as the tool run does; what changes things needs --write
    #[command(
        after_help = "Examples:\n  pixir run 'cat src/main.rs | grep -n TODO | wc -l'\n  pixir run 'write a.txt hello' --dry-run\n  pixir run help"
    )]
    Run {
        /// The line; pixir run help lists the commands
        line: String,
        /// Print what it prints, byte for byte, without cutting or a footer
        #[arg(long)]
        raw: bool,
        /// Give our stdin to its first command
        #[arg(long)]
        stdin: bool,
        /// Most seconds that it may take
        #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
        timeout: u64,
        /// End with the exit code of the line
        #[arg(long)]
        propagate_exit: bool,
    },
    /// List, show and run the tools that models use
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Tools {
        #[command(subcommand)]
        command: ToolsCommand,
    },
    /// Which models can be asked for here, and what is known of them
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Models {
        #[command(subcommand)]
        command: ModelsCommand,
    },
    /// Run the interface without a terminal: keys from a script, screens as text
    #[command(
        after_help = "A script has one step a line:\n  keys hello<Enter>     text and keys: <Esc> <C-c> <A-y> <S-Tab> <PgUp> <lt>\n  paste two\\nlines     text that is put in at once\n  expect Done           wait until the screen shows it\n  idle                  wait until nothing moves\n  resize 80x24\n  frame NAME            keep this screen\n\nExamples:\n  pixir tui --script keys.txt --frames out --size 120x40\n  echo 'frame start' | pixir tui --script - --screen json"
    )]
    Tui {
        /// The script; - is stdin
        #[arg(long, value_name = "FILE")]
        script: String,
        /// Columns and rows
        #[arg(long, value_name = "COLUMNSxROWS", default_value = "120x40")]
        size: String,
        /// Write each frame there, as NAME.txt, NAME.ansi and NAME.svg
        #[arg(long, value_name = "FOLDER")]
        frames: Option<PathBuf>,
        /// Print each frame as text, or as a tree of what is on it and where
        #[arg(long, value_enum, default_value_t = ScreenFormat::Text)]
        screen: ScreenFormat,
        /// Show the demo, on its own little repository
        #[arg(long)]
        demo: bool,
    },
    /// Colours of the interface: which there are, what they look like, how well they can be read
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Themes {
        #[command(subcommand)]
        command: ThemesCommand,
    },
    /// Keep, show and forget the keys of providers
    #[command(subcommand_required = true, arg_required_else_help = true)]
    Auth {
        #[command(subcommand)]
        command: AuthCommand,
    },
    /// Print the machine-readable contract: commands, flags, exit codes, error kinds, events
    #[command(after_help = "Examples:\n  pixir schema | jq '.exit_codes'\n  pixir schema --events")]
    Schema {
        /// JSON Schema of every event instead
        #[arg(long, conflicts_with = "script")]
        events: bool,
        /// JSON Schema of script files instead
        #[arg(long)]
        script: bool,
    },
    /// Check this machine: settings, credentials, state folder, terminal, sandbox
    #[command(after_help = "Examples:\n  pixir doctor\n  pixir doctor --online --json")]
    Doctor {
        /// Also ask the chosen provider for its models
        #[arg(long)]
        online: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Sessions of this workspace, the latest first
    #[command(after_help = "Examples:\n  pixir sessions list\n  pixir sessions list --all --format tsv")]
    List {
        /// Those of every workspace
        #[arg(long)]
        all: bool,
        /// Those in the trash
        #[arg(long, conflicts_with = "all")]
        trash: bool,
        /// Most lines
        #[arg(long, default_value_t = 50, value_name = "N")]
        limit: usize,
        /// Go on after this session; a cut list says which
        #[arg(long, value_name = "ID")]
        cursor: Option<String>,
        /// Only these fields, like id,usage.input
        #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
        select: Vec<String>,
    },
    /// One session: where it lies, what was said, what it cost, what it changed
    #[command(
        after_help = "Examples:\n  pixir sessions show last\n  pixir sessions show 20261121T203012-0a1b2c --json"
    )]
    Show {
        /// The session: an id, its unique beginning, a name, or last
        id: String,
    },
    /// Name a session
    #[command(after_help = "Examples:\n  pixir sessions rename last \"the parser\"")]
    Rename {
        /// The session: an id, its unique beginning, a name, or last
        id: String,
        /// Its new name; empty takes the name away
        name: String,
    },
    /// Move a session to the trash, or get it back
    #[command(
        after_help = "Examples:\n  pixir sessions delete 20261121T203012-0a1b2c --yes\n  pixir sessions delete 20261121T203012-0a1b2c --undo"
    )]
    Delete {
        /// The session's whole id
        id: String,
        /// Do it
        #[arg(long, conflicts_with = "undo")]
        yes: bool,
        /// Get it back from the trash
        #[arg(long)]
        undo: bool,
    },
    /// Let a session work in this folder from now on, for example after its folder was moved
    #[command(
        after_help = "Examples:\n  pixir sessions move 20261121T203012-0a1b2c\n  pixir sessions move ID --workspace ../app --dry-run"
    )]
    Move {
        /// The session: an id, its unique beginning or a name
        id: String,
    },
    /// Write a session as Markdown, as one HTML page, or as JSON that loses nothing
    #[command(
        after_help = "Examples:\n  pixir sessions export last > session.md\n  pixir sessions export last --to html --output session.html"
    )]
    Export {
        /// The session: an id, its unique beginning, a name, or last
        id: String,
        /// What to write; Markdown, unless --json says otherwise
        #[arg(long, value_enum)]
        to: Option<ExportForm>,
        /// File to write; it must not be there yet. Without, stdout
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// JSON without the versions of files and the long outputs
        #[arg(long)]
        no_files: bool,
    },
    /// Make a session of an exported JSON file, here
    #[command(after_help = "Examples:\n  pixir sessions import session.json")]
    Import {
        /// The file
        file: PathBuf,
    },
    /// Check every line of a session's log against its chain
    #[command(after_help = "Examples:\n  pixir sessions verify last\n  pixir sessions verify --all --json")]
    Verify {
        /// The session: an id, its unique beginning, a name, or last
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Those of every workspace
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
    /// Make a damaged log whole: what can be read stays, the damaged log is kept beside it
    #[command(after_help = "Examples:\n  pixir sessions repair last --dry-run\n  pixir sessions repair last")]
    Repair {
        /// The session: an id, its unique beginning, a name, or last
        id: String,
    },
}

/// What a session can be exported as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportForm {
    /// Markdown
    Md,
    /// One page that needs nothing else
    Html,
    /// Everything, to be imported again
    Json,
}

/// How files are set back.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RestoreOptions {
    /// For files that somebody changed since: keep, merge or overwrite
    #[arg(long, value_name = "CHOICE", default_value = "keep")]
    pub(crate) changed_since: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// Names and what they do
    #[command(after_help = "Examples:\n  pixir tools list\n  pixir tools list --json")]
    List,
    /// One tool in full: arguments, streams, whether it changes things
    #[command(after_help = "Examples:\n  pixir tools show edit")]
    Show {
        /// The tool
        name: String,
    },
    /// Run one tool, as a model would; what changes things needs --write
    #[command(
        after_help = "Examples:\n  pixir tools run read '{\"path\": \"README.md\"}'\n  pixir tools run write '{\"path\": \"a.txt\", \"content\": \"hi\"}' --dry-run"
    )]
    Run {
        /// The tool
        name: String,
        /// Its arguments, a JSON object
        #[arg(default_value = "{}")]
        args: String,
    },
}

/// How a frame is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScreenFormat {
    /// As it is seen
    Text,
    /// With its colours
    Ansi,
    /// What is on it and where
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ThemesCommand {
    /// Every theme that can be chosen, and which one is
    #[command(after_help = "Examples:\n  pixir themes list\n  pixir themes list --json")]
    List,
    /// Show what a theme looks like
    #[command(after_help = "Examples:\n  pixir themes preview\n  pixir themes preview colour-blind")]
    Preview {
        /// The theme; without one, each of them
        name: Option<String>,
    },
    /// Measure the contrast of every text on what it stands on, at every depth of colours
    #[command(after_help = "Examples:\n  pixir themes check\n  pixir themes check mine --json")]
    Check {
        /// The theme; without one, each that is part of the program
        name: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Models of every provider that is set up: windows, prices, efforts
    #[command(after_help = "Examples:\n  pixir models list\n  pixir models list --online --json")]
    List {
        /// Ask the servers what they have
        #[arg(long)]
        online: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Keep a key: typed unseen, from stdin, or by signing in on another device
    #[command(
        after_help = "Examples:\n  pixir auth login anthropic\n  pass show openai | pixir auth login openai\n  pixir auth login work --device --issuer https://login.example.com --client-id pixir"
    )]
    Login {
        /// The provider
        provider: Option<String>,
        #[command(flatten)]
        options: LoginOptions,
    },
    /// Which keys there are and where they come from; they are not shown. Ends with 4 when none can be used
    #[command(after_help = "Examples:\n  pixir auth status\n  pixir auth status anthropic --json")]
    Status {
        /// The provider; without, every one
        provider: Option<String>,
    },
    /// Forget a key
    #[command(after_help = "Examples:\n  pixir auth logout openai\n  pixir auth logout openai --dry-run")]
    Logout {
        /// The provider
        provider: Option<String>,
    },
}

/// How somebody signs in.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct LoginOptions {
    /// Keep the key without asking the provider whether it is good
    #[arg(long)]
    pub(crate) offline: bool,
    /// Sign in on another device with a code
    #[arg(long)]
    pub(crate) device: bool,
    /// Where to sign in
    #[arg(long, value_name = "URL", requires = "device")]
    pub(crate) issuer: Option<String>,
    /// As whom
    #[arg(long, value_name = "ID", requires = "device")]
    pub(crate) client_id: Option<String>,
}

/// How a Session is told again on the screen.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReplayScreen {
    /// Wait for a key at each step
    #[arg(long, conflicts_with = "speed")]
    pub(crate) step: bool,
    /// So many times faster than it was, from 0.25 to 64; pauses are at most 2 seconds before that
    #[arg(long, value_name = "N")]
    pub(crate) speed: Option<f64>,
    /// Show everything up to this entry, and wait
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: Option<u64>,
    /// Write it into this file instead, as an asciicast (asciinema plays it)
    #[arg(long, value_name = "FILE", conflicts_with = "step")]
    pub(crate) cast: Option<PathBuf>,
    /// Columns and rows of the cast
    #[arg(long, value_name = "SIZE", default_value = "120x40", requires = "cast")]
    pub(crate) size: String,
}

impl ReplayScreen {
    /// A screen was asked for.
    pub(crate) fn is_wanted(&self) -> bool {
        self.step || self.speed.is_some() || self.at.is_some() || self.cast.is_some()
    }
}
