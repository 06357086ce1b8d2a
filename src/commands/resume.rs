//! `pixir resume`: continue a Session.

use clap::Args;
use pixir_core::remedy::Sessions;
use pixir_core::{Code, Error, Remedy, Result};

use super::prompt;
use crate::cli::Cli;
use crate::open::Open;
use crate::terminal;

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Session id, a unique prefix of one, a name, or SESSION/AGENT. Without one, a terminal shows the list to choose from
    id: Option<String>,
    /// Next prompt
    prompt: Option<String>,
    /// Resume the latest session of this workspace
    #[arg(long)]
    last: bool,
    /// Open the session for reading only, even while another pixir has it open
    #[arg(long)]
    read_only: bool,
}

pub(super) fn run(cli: &Cli, args: ResumeArgs) -> Result<u8> {
    cli.start_diagnostics();
    let ResumeArgs { id, prompt, last, read_only } = args;
    let (id, prompt) = if last {
        // With --last, the first word belongs to the prompt.
        let words: Vec<String> = id.into_iter().chain(prompt).collect();
        (None, Some(words.join(" ")).filter(|words| !words.is_empty()))
    } else {
        (id, prompt)
    };
    let open = match id {
        Some(id) => meant(cli, &id, read_only)?,
        None if last => Open::Latest,
        None if !read_only && prompt::shows_a_screen(cli) => return terminal::run_list(cli),
        None => {
            let latest = Remedy::command("pixir resume --last").and_text(" continues the latest session");
            let fix = Remedy::any_of([latest, Remedy::ListSessions { which: Sessions::Here }]);
            return Err(Error::new(Code::Usage, "which session to resume is missing", fix).with("input", "ID"));
        }
    };
    let open = if read_only { open.read_only() } else { open };
    prompt::present(cli, &open, prompt)
}

/// An agent goes on below the Session that started it, which records how it ends. To look at it, its Log is enough.
fn meant(cli: &Cli, id: &str, read_only: bool) -> Result<Open> {
    let place = cli.session_here(id)?;
    let (root, path) = place.lineage()?;
    Ok(if path.is_empty() || read_only { Open::Resume(place.id) } else { Open::Agent(root.id, path) })
}
