//! The command `apply_patch`: several files by one patch, all or nothing.

use super::{Builtin, Fault, Flags, Io, Stdin};
use crate::chain::How;
use call::replacement::{Applied, as_notes};
use permissions::Touch;
use protocol::error::{Code, Error};
use tools::apply_patch::{MAX_PATCH, Patched};

pub(super) const APPLY_PATCH: Builtin = Builtin {
    name: "apply_patch",
    about: "change several files by a patch on stdin. It begins with *** Begin Patch and ends with *** End Patch. A file begins with *** Update File: <path> (or Add, or Delete), a change with @@, and its lines with a blank, - or +. A unified diff works too",
    usage: "with the patch on stdin",
    subcommands: &[],
    details: "*** Begin Patch\n*** Update File: src/a.rs     perhaps followed by *** Move to: src/b.rs\n@@ fn main() {                perhaps a line above the change\n lines that stay begin with a blank\n-old lines with -\n+new lines with +\n*** Add File: src/c.rs        then lines with +\n*** Delete File: src/d.rs\n*** End Patch\nA unified diff works too. All files are changed, or none.",
    example: "cat fix.patch | apply_patch",
    stdin: Stdin::Optional,
    expands: false,
    asks_others: false,
    // The dry run reads the patch and says which files it touches.
    touches: |_, _| Touch::Files { path: None, protected: None },
    run: |it, args, io| {
        let patch = match args {
            [word] if word.text.contains('\n') => word.text.clone(),
            args => {
                let flags = Flags::parse(it, args, "", "", &[])?;
                if !flags.operands.is_empty() || (io.stdin.is_none() && !io.unknown_input) {
                    return Err(it.usage_error().into());
                }
                if io.unknown_input {
                    return Err(unknown_patch().into());
                }
                let bytes = io.whole_stdin(MAX_PATCH as u64)?;
                String::from_utf8(bytes)
                    .map_err(|_| Error::new(Code::InvalidArgs, "the patch is not UTF-8 text", "edit for one file"))?
            }
        };
        let patched = Patched::of(&io.ctx, &patch)?;
        if io.how == How::Dry { preview(patched, io) } else { perform(patched, io) }
    },
};

/// Which files a patch touches is known before it runs, or it does not run.
fn unknown_patch() -> Error {
    let message = "the patch comes from a program, so the files that it changes are not known beforehand";
    Error::new(Code::Usage, message, "write the patch to a file first, and then: cat FILE | apply_patch")
}

fn preview(patched: Patched, io: &mut Io) -> Result<i32, Fault> {
    let touches = patched.touches();
    let after = patched.hash_after();
    let mut effects = io.effects.lock();
    // An earlier change of the line may affect this one.
    let depends = effects.changes_things();
    effects.previewed.insert(io.number, Some(after).filter(|_| !depends));
    effects.touches.insert(io.number, touches);
    for mut preview in patched.previews {
        if depends {
            preview.would.push_str(" (in the current state)");
        }
        effects.previews.push(preview);
    }
    Ok(0)
}

fn perform(patched: Patched, io: &mut Io) -> Result<i32, Fault> {
    let touches = patched.touches();
    let paths: Vec<String> = touches.iter().filter_map(Touch::file).map(str::to_owned).collect();
    {
        let effects = io.effects.lock();
        let is_judged = effects.touches.get(&io.number).is_some_and(|judged| *judged == touches);
        let is_as_previewed = match effects.previewed.get(&io.number) {
            Some(Some(previewed)) => {
                *previewed == patched.hash_after() || paths.iter().any(|path| effects.touched.contains(path))
            }
            // The preview names the files but not their content.
            Some(None) => true,
            None => false,
        };
        if !(is_judged && is_as_previewed) {
            let message = "the patch would change the files otherwise than the preview showed";
            return Err(Error::new(Code::FileChanged, message, "check the files, then repeat the line").into());
        }
    }
    let told = patched.told.clone();
    let Applied { changes, lost } = patched.apply(&io.ctx)?;
    {
        let mut effects = io.effects.lock();
        effects.touched.extend(paths);
        effects.changes.extend(changes);
    }
    io.out.write_all((told + &as_notes(&lost)).as_bytes())?;
    Ok(0)
}
