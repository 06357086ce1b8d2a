//! Prompt templates: Markdown files whose text the user sends by a name, with arguments filled in.

use std::path::{Path, PathBuf};

use super::finder::{self, Finder, FoundFile};
use super::skills::Fields;
use super::skills::digest_of_bytes;
use super::skills::found::first_words;
use super::skills::front_matter;
use super::skills::placeholders::{Filling, parameters};
use super::skills::text::Text;
use files::workspace::Workspace;
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{Origin, TemplateUse};
use protocol::input::Message;
use protocol::remedy::{Part, Remedy};
use protocol::trust::Standing;
use storage::trust::Trusted;

/// The folder of a workspace's templates.
const WORKSPACE_ROOT: &str = ".pixir/prompts";
const FILES: Finder = Finder { stem: stem_of, most_bytes: 64 << 10, most_files: 256 };
/// The longest message that a template makes, bytes.
const MAX_MESSAGE: usize = 1 << 20;

/// A template.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// What the user types after `/`: the file's name without `.md`.
    pub name: String,
    /// What it is for. One line without control characters.
    pub description: String,
    /// What to type after its name.
    pub argument_hint: Option<String>,
    /// The names of the arguments that its text has a place for, in the order of the words that fill them.
    pub parameters: Vec<String>,
    /// Where it comes from.
    pub origin: Origin,
    /// The path of its file.
    pub path: PathBuf,
    /// Whether it can be used.
    pub standing: Standing,
    /// The hash of its content; absent where it cannot be read.
    pub digest: Option<String>,
    /// The text after the front matter.
    text: String,
}

impl Template {
    /// Whether it can be used.
    pub fn is_active(&self) -> bool {
        self.standing == Standing::InForce
    }

    /// The message that it makes of these arguments. Where its text has no place for them, they follow it.
    fn expand(&self, args: &str) -> String {
        let filled =
            Filling { args: Some(args), by_position: true, folder: None, names: &self.parameters }.fill(&self.text);
        let text = filled.text.trim();
        if filled.used_args || args.is_empty() {
            return text.to_owned();
        }
        format!("{text}\n\n{args}").trim_start().to_owned()
    }
}

/// All templates, sorted by name. One of the user hides one of the workspace with the same name.
pub fn find(workspace: Option<&Workspace>, trusted: &Trusted, user_folder: Option<&Path>) -> Vec<Template> {
    let mut templates: Vec<Template> = Vec::new();
    let users = user_folder.into_iter().flat_map(of_user);
    for template in users.chain(workspace.into_iter().flat_map(|workspace| of_workspace(workspace, trusted))) {
        if templates.iter().all(|known| known.name != template.name) {
            templates.push(template);
        }
    }
    templates.sort_by(|a, b| a.name.cmp(&b.name));
    templates
}

/// The templates that a workspace brings along.
pub(crate) fn of_workspace(workspace: &Workspace, trusted: &Trusted) -> Vec<Template> {
    let judged = |file: FoundFile| {
        let template = assemble(file, Origin::Workspace);
        let own = (&template.standing, template.digest.as_ref());
        Template { standing: finder::judged(workspace, trusted, &template.path, own), ..template }
    };
    FILES.of_workspace(workspace, WORKSPACE_ROOT).into_iter().map(judged).collect()
}

/// The user's own templates.
fn of_user(folder: &Path) -> Vec<Template> {
    FILES.of_user(&folder.join("prompts")).into_iter().map(|file| assemble(file, Origin::User)).collect()
}

/// The name of a template's file, if it can be typed after `/`.
fn stem_of(name: &str) -> Option<&str> {
    name.strip_suffix(".md").filter(|name| is_name(name))
}

fn is_name(name: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().count() <= 64 && name.starts_with(char::is_alphanumeric) && name.chars().all(is_inner)
}

fn assemble(file: FoundFile, origin: Origin) -> Template {
    let FoundFile { stem: name, path, bytes } = file;
    let (bytes, standing) = match bytes {
        Ok(bytes) => (Some(bytes), Standing::InForce),
        Err(why) => (None, Standing::Unusable { why }),
    };
    let Text { text, .. } = Text::read(bytes.as_deref().unwrap_or_default());
    let document = front_matter::read(&text);
    let fields = Fields::read(&document, &mut Vec::new());
    Template {
        name,
        description: fields.description.unwrap_or_else(|| first_words(&document.body)),
        argument_hint: fields.argument_hint,
        parameters: parameters(&document.body, &fields.arguments),
        origin,
        path,
        standing,
        digest: bytes.as_deref().map(digest_of_bytes),
        text: document.body,
    }
}

/// The message that this template makes, with a note of the template.
///
/// # Errors
/// `TEMPLATE_NOT_FOUND` with the nearest name, `PERMISSION_DENIED` for one of a workspace that is not trusted, `READ_FAILED` when
/// it cannot be read, `INVALID_ARGS` when it makes no message or one that is too long.
pub fn expand(templates: &[Template], name: &str, args: &str) -> Result<Message> {
    let known = templates.iter().find(|it| it.name == name).ok_or_else(|| {
        let fix = match nearest(name, templates.iter().map(|it| it.name.as_str())) {
            Some(near) => Remedy::text("did you mean /").and(Part::Nearest(near.to_owned())).and_text("?"),
            None => format!("put one at {WORKSPACE_ROOT}/<name>.md").into(),
        };
        let message = format!("there is no prompt template `{}`", name.escape_debug());
        Error::new(Code::TemplateNotFound, message, fix).with("input", name)
    })?;
    let why = match &known.standing {
        Standing::InForce => None,
        Standing::New | Standing::Inert => Some("you do not trust it"),
        Standing::Changed => Some("it changed since you were asked about it"),
        Standing::Unusable { why } => {
            let message = format!("read the prompt template `{name}`: {why}");
            return Err(Error::new(Code::ReadFailed, message, "fix the file").with("input", name));
        }
    };
    if let Some(why) = why {
        let message = format!("the prompt template `{name}` comes with this workspace, and {why}");
        return Err(Error::new(Code::PermissionDenied, message, Remedy::TrustWorkspace).with("input", name));
    }
    let text = known.expand(args.trim());
    if text.is_empty() || text.len() > MAX_MESSAGE {
        let what = if text.is_empty() { "no text" } else { "a text of more than 1 MB" };
        let message = format!("the prompt template `{name}` makes {what}");
        return Err(Error::new(Code::InvalidArgs, message, "fix the file, or give other arguments").with("input", name));
    }
    let template = TemplateUse {
        name: known.name.clone(),
        path: known.path.display().to_string(),
        args: args.trim().to_owned(),
        origin: known.origin,
        digest: known.digest.clone().unwrap_or_default(),
    };
    Ok(Message { text, template: Some(Box::new(template)), ..Message::default() })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn message(templates: &[Template], name: &str, args: &str) -> std::result::Result<String, Code> {
        expand(templates, name, args).map(|it| it.text).map_err(|e| e.code)
    }

    #[test]
    fn a_template_is_a_regular_file_of_its_folder_and_everything_else_is_named_or_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path().canonicalize().expect("it is there");
        let (own, app) = (folder.join("own"), folder.join("app"));
        for prompts in [own.join("prompts"), app.join(".pixir/prompts")] {
            fs::create_dir_all(prompts.join("folder.md")).expect("mkdir");
            fs::write(prompts.join("both.md"), format!("of {}", prompts.display())).expect("write");
            fs::write(prompts.join("empty.md"), "---\ndescription: x\n---\n \n").expect("write");
            fs::write(prompts.join("huge.md"), vec![b'x'; (64 << 10) + 1]).expect("write");
            fs::write(prompts.join("notes.txt"), "no template").expect("write");
            fs::write(prompts.join("two words.md"), "no name").expect("write");
            fs::write(prompts.join(".hidden.md"), "no name").expect("write");
            symlink("/dev/zero", prompts.join("zero.md")).expect("link");
            rustix::fs::mkfifoat(rustix::fs::CWD, prompts.join("fifo.md"), rustix::fs::Mode::RWXU).expect("mkfifo");
        }
        fs::write(folder.join("secret.md"), "the secret").expect("write");
        symlink(folder.join("secret.md"), app.join(".pixir/prompts/leak.md")).expect("link");
        fs::write(app.join(".pixir/prompts/plain.md"), "Say it.\n").expect("write");
        fs::write(app.join(".pixir/prompts/loop.md"), "$ARGUMENTS ".repeat(2_000)).expect("write");
        let workspace = Workspace::open(&app).expect("a workspace");
        let all = find(Some(&workspace), &Trusted::Everything, Some(&own));
        let names: Vec<&str> = all.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["both", "empty", "fifo", "folder", "huge", "leak", "loop", "plain", "zero"]);
        assert_eq!(
            message(&all, "both", ""),
            Ok(format!("of {}", own.join("prompts").display())),
            "the user's hides it"
        );
        for name in ["fifo", "folder", "huge", "leak", "zero"] {
            assert_eq!(message(&all, name, ""), Err(Code::ReadFailed), "{name}");
        }
        let brought = of_workspace(&workspace, &Trusted::Everything);
        for name in ["fifo", "folder", "huge", "leak", "zero"] {
            assert_eq!(message(&brought, name, ""), Err(Code::ReadFailed), "{name} of the workspace");
        }
        assert_eq!(message(&all, "empty", "x"), Ok("x".into()), "what was typed follows the text");
        assert_eq!(message(&all, "empty", ""), Err(Code::InvalidArgs));
        assert_eq!(message(&all, "plain", " now "), Ok("Say it.\n\nnow".into()));
        assert_eq!(message(&all, "loop", &"x".repeat(1_000)), Err(Code::InvalidArgs), "a message has a bound");
        let wrong = expand(&all, "plian", "").expect_err("not there");
        assert_eq!((wrong.code, &*wrong.remedy.plain()), (Code::TemplateNotFound, "did you mean /plain?"));
    }
}
