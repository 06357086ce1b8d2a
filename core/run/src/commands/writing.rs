//! Commands that write or edit a file. They make exactly the change that the preview shows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Builtin, Fault, Flags, Io, MAX_WHOLE, Stdin};
use crate::chain::How;
use crate::parse::Word;
use call::Context;
use call::replacement::{Applied, Replacement, apply, as_notes};
use files::workspace::Inside;
use permissions::Touch;
use protocol::error::{Code, Error, Result};
use protocol::event::Preview;
use text::form;
use tools::edit::{self, Change};

pub(super) const WRITE: Builtin = Builtin {
    name: "write",
    about: "write a file: write <path> [content]; without content it writes stdin",
    usage: "[-a] [-b] [-e ENCODING] <path> [content] or pipe stdin",
    subcommands: &[],
    details: "Missing parent folders are created. For text of several lines use stdin. A file that is there keeps its encoding, its byte order mark and its ends of lines, but for -b.\n-a  append   -b  the content is base64, written as it is\n-e  the encoding of the whole file, such as utf-8, utf-16 or latin-1",
    example: "cat a.txt | sort | write sorted.txt",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    touches: touches_written,
    run: write,
};

/// The touch on the file that is written.
fn touches_written(args: &[Word], ctx: &Context) -> Touch {
    let flags = flags_of_write(&WRITE, args).ok();
    let at = flags.and_then(|flags| ctx.workspace.locate(&flags.operands.first()?.text).ok());
    touch_of(at, ctx)
}

fn flags_of_write(it: &'static Builtin, args: &[Word]) -> Result<Flags, Error> {
    Flags::parse(it, args, "ab", "e", &[("append", 'a'), ("base64", 'b'), ("encoding", 'e')])
}

/// The touch on the file that the first operand names: the first word without a dash, or the word after `--`.
fn touches_first(args: &[Word], ctx: &Context) -> Touch {
    let end = args.iter().position(|word| word.text == "--").unwrap_or(args.len());
    let path = args[..end].iter().find(|word| !word.text.starts_with('-') || word.text == "-");
    let at = path.or(args.get(end + 1)).and_then(|word| ctx.workspace.locate(&word.text).ok());
    touch_of(at, ctx)
}

fn touch_of(at: Option<Inside>, ctx: &Context) -> Touch {
    at.map_or(Touch::Files { path: None, protected: None }, |at| Replacement::touch(ctx, &at))
}

fn write(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let flags = flags_of_write(it, args)?;
    let Some((path, content)) = flags.operands.split_first() else { return Err(it.usage_error().into()) };
    let at = io.ctx.workspace.locate(&path.text)?;
    let mut after = match content {
        [] if io.stdin.is_some() => io.whole_stdin(MAX_WHOLE)?,
        [] if io.unknown_input => return planned_unknown(io, "write", &at),
        [] => return Err(it.usage_error().into()),
        words => words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ").into_bytes(),
    };
    // The dry run skipped the command before this one, so the content is unknown.
    if io.unknown_input && content.is_empty() {
        return planned_unknown(io, "write", &at);
    }
    if flags.has('b') {
        after.retain(|byte| !byte.is_ascii_whitespace());
        after = STANDARD.decode(&after).map_err(|e| {
            Error::new(Code::InvalidArgs, format!("the content is not valid base64: {e}"), "write without -b for text")
        })?;
    }
    let replacement = if let Some(name) = flags.value('e') {
        if flags.has('a') || flags.has('b') {
            let fix = "-e for a whole file of text, or -a without -e, which keeps the encoding";
            return Err(Error::new(Code::Usage, "-e does not go with -a or -b", fix).into());
        }
        Replacement::encoded("write", &io.ctx, at, &utf8(after)?, tools::write::encoding_named(name)?)?
    } else if flags.has('a') || flags.has('b') {
        io.ctx.workspace.check_writable(&at)?;
        let to = io.ctx.workspace.destination(&at)?;
        let before = io.ctx.workspace.read_if_there(to.at())?;
        let (all, notes) = match before.as_ref().filter(|_| flags.has('a')) {
            Some(before) if flags.has('b') => ([before.bytes.as_slice(), &after].concat(), Vec::new()),
            Some(before) => form::appended(&before.bytes, after).map_err(|it| it.error(&to.at().display()))?,
            None => (after, Vec::new()),
        };
        Replacement::of("write", &io.ctx, to, before, Some(all))?.noting(notes)
    } else {
        Replacement::preview("write", &io.ctx, at, after)?
    };
    change(io, replacement)
}

fn utf8(content: Vec<u8>) -> Result<String, Error> {
    let fix = "write without -e, which writes the bytes as they are";
    String::from_utf8(content).map_err(|_| Error::new(Code::InvalidArgs, "the content is not UTF-8 text", fix))
}

fn planned_unknown(io: &mut Io, would: &str, at: &Inside) -> Result<i32, Fault> {
    io.ctx.workspace.check_writable(at)?;
    let to = io.ctx.workspace.destination(at)?;
    let at = to.at();
    let target = format!("{} (the output of the program before it)", at.display());
    let preview = Preview { would: would.to_owned(), target, paths: vec![at.display()], ..Preview::default() };
    let mut effects = io.effects.lock();
    effects.touches.insert(io.number, Replacement::touches_of(&io.ctx, &to));
    effects.previewed.insert(io.number, None);
    effects.previews.push(preview);
    Ok(0)
}

/// Changes a file, or adds the change to the preview in a dry run.
fn change(io: &mut Io, replacement: Replacement) -> Result<i32, Fault> {
    let after = replacement.hash_after();
    let path = replacement.preview.target.clone();
    let touches = replacement.touches();
    if io.how == How::Dry {
        let mut effects = io.effects.lock();
        // An earlier change of the line may affect this one.
        let depends = effects.changes_things();
        effects.previewed.insert(io.number, Some(after).filter(|_| !depends));
        effects.touches.insert(io.number, touches);
        let mut preview = replacement.preview;
        if depends {
            preview.would.push_str(" (in the current state)");
        }
        effects.previews.push(preview);
        return Ok(0);
    }
    {
        let effects = io.effects.lock();
        if effects.touches.get(&io.number).is_some_and(|judged| *judged != touches) {
            let message = format!(
                "a folder of {path} was exchanged or became a symlink after this line was judged; it was not written"
            );
            return Err(Error::new(Code::FileChanged, message, "look at its folders with ls, then repeat the line")
                .with("input", path)
                .into());
        }
        let is_as_previewed = match effects.previewed.get(&io.number) {
            Some(Some(previewed)) => *previewed == after || effects.touched.contains(&path),
            // The preview names the file but not its content.
            Some(None) => true,
            None => false,
        };
        if !is_as_previewed {
            let message = format!("the new content of {path} would differ from the preview");
            return Err(Error::new(Code::FileChanged, message, "check the files, then repeat the line")
                .with("input", path)
                .into());
        }
    }
    let told = replacement.told.clone();
    let Applied { changes, lost } = apply(vec![replacement], &io.ctx)?;
    {
        let mut effects = io.effects.lock();
        effects.touched.insert(path);
        effects.changes.extend(changes);
    }
    io.out.write_all((told + &as_notes(&lost)).as_bytes())?;
    Ok(0)
}

pub(super) const EDIT: Builtin = Builtin {
    name: "edit",
    about: "replace exact text: edit <path> <old> <new> [--all]",
    usage: "<path> <old> <new> [--all]",
    subcommands: &[],
    details: "<old> must occur exactly once, indentation included, unless --all.\nSeveral at once: edit <path>, with [{\"old_text\": …, \"new_text\": …}, …] on stdin.",
    example: "edit src/main.rs 'let x = 1;' 'let x = 2;'",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    touches: touches_first,
    run: edit_file,
};

fn edit_file(it: &'static Builtin, args: &[Word], io: &mut Io) -> Result<i32, Fault> {
    let flags = Flags::parse(it, args, "g", "", &[("all", 'g'), ("replace-all", 'g')])?;
    let (path, edits) = match flags.operands.as_slice() {
        [path, old, new] => {
            let edit = Change { old_text: old.text.clone(), new_text: new.text.clone(), replace_all: flags.has('g') };
            (path, vec![edit])
        }
        [path] if io.unknown_input => {
            let at = io.ctx.workspace.locate(&path.text)?;
            return planned_unknown(io, "edit", &at);
        }
        [path] if io.stdin.is_some() => {
            let text = io.whole_stdin(MAX_WHOLE)?;
            let edits: Vec<Change> = serde_json::from_slice(&text).map_err(|e| {
                let fix = "pass [{\"old_text\": \"…\", \"new_text\": \"…\"}] on stdin";
                Error::new(Code::InvalidArgs, format!("stdin is not a list of edits: {e}"), fix)
            })?;
            (path, edits)
        }
        _ => return Err(it.usage_error().into()),
    };
    if edits.is_empty() {
        return Err(Error::new(Code::InvalidArgs, "the list has no edits", it.usage_line()).into());
    }
    let at = io.ctx.workspace.locate(&path.text)?;
    let replacement = edit::previewed(&io.ctx, at, &edits)?;
    change(io, replacement)
}
