//! What a file has besides its words, when a tool replaces it: kept, or said; and a file that its user may not write.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{XattrFlags, getxattr, setxattr};
use serde_json::{Value, json};

use super::protected::flat;
use crate::driver::{Pixir, calls, says};
use crate::shell::{NOBODY, Shell, as_user, output, tool};

/// The calls that replace `f`, whose text is `one` and `two`, as a model makes them.
fn replacing() -> Vec<(&'static str, Value)> {
    let patch = "*** Begin Patch\n*** Update File: f\n@@\n-two\n+2\n*** End Patch\n";
    vec![
        ("write", json!({ "path": "f", "content": "one\n2\n" })),
        ("edit", json!({ "path": "f", "old_text": "two", "new_text": "2" })),
        ("apply_patch", json!({ "patch": patch })),
        ("run", json!({ "command": "write f", "stdin": "one\n2\n" })),
        ("run", json!({ "command": "edit f two 2" })),
        ("run", json!({ "command": "apply_patch", "stdin": patch })),
    ]
}

/// Makes a call of a Session, and returns the recorded result.
fn result(shell: &Shell, name: &str, args: &Value) -> Value {
    let script = json!({ "steps": [{ "calls": [{ "name": name, "args": args }] }, { "text": "Done." }] });
    let provider = format!("script:{}", shell.aside("s.json", &script.to_string()).display());
    shell.run(["--provider", &provider, "--toolset", "both", "--headless", "--json", "--write", "go"]);
    let logs = shell.logs();
    let log = crate::shell::entries(&logs[0]);
    log.iter().find(|it| it["type"] == "tool_result").expect("a result")["data"].clone()
}

/// An access list as the kernel stores it: the owner, one more user, the group, the mask, the others.
fn access_list(user: u32) -> Vec<u8> {
    let none = u32::MAX;
    let entries = [(1_u16, 6_u16, none), (2, 6, user), (4, 4, none), (0x10, 6, none), (0x20, 4, none)];
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for (tag, may, id) in entries {
        bytes.extend(tag.to_le_bytes().into_iter().chain(may.to_le_bytes()).chain(id.to_le_bytes()));
    }
    bytes
}

fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
    let mut value = vec![0; 1_024];
    let len = getxattr(path, name, &mut value[..]).ok()?;
    value.truncate(len);
    Some(value)
}

/// Broken build: ce783d9e, whose `write` leaves LF and no mark, and whose every tool drops attributes and access lists.
#[test]
fn a_file_that_is_replaced_keeps_its_form_mode_owner_attributes_and_access_list() {
    for (name, args) in replacing() {
        let shell = Shell::new(&[("f", "\u{feff}one\r\ntwo\r\n")]);
        let path = shell.workspace().join("f");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("chmod");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&path, Some(1_234), Some(2_345)).expect("chown");
        }
        setxattr(&path, "user.note", b"mine", XattrFlags::empty()).expect("the disk has attributes");
        setxattr(&path, "system.posix_acl_access", &access_list(4_242), XattrFlags::empty()).expect("and access lists");
        let before = fs::metadata(&path).expect("there");
        let result = result(&shell, name, &args);
        assert_eq!(result["ok"], true, "{name} {args}: {result}");
        assert_eq!(shell.read("f"), "\u{feff}one\r\n2\r\n", "{name} {args}");
        let after = fs::metadata(&path).expect("there");
        assert_ne!(after.ino(), before.ino(), "it is replaced in one step");
        let of = |it: &fs::Metadata| (it.mode(), it.uid(), it.gid());
        assert_eq!(of(&after), of(&before), "{name} {args}");
        assert_eq!(attribute(&path, "user.note").as_deref(), Some(&b"mine"[..]), "{name} {args}");
        assert_eq!(attribute(&path, "system.posix_acl_access"), Some(access_list(4_242)), "{name} {args}");
    }
    // A file that moves takes them along.
    let shell = Shell::new(&[("f", "one\ntwo\n")]);
    setxattr(shell.workspace().join("f"), "user.note", b"mine", XattrFlags::empty()).expect("attributes");
    let patch = "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-two\n+2\n*** End Patch\n";
    assert_eq!(tool(&shell, "apply_patch", &json!({ "patch": patch }), &["--write"]).code, 0);
    assert_eq!(attribute(&shell.workspace().join("g"), "user.note").as_deref(), Some(&b"mine"[..]));
}

/// Old text, new text, what is written, what the result says of it.
const FORMS: [(&str, &str, &str, &str); 8] = [
    ("a\r\nb\r\n", "c\nd\n", "c\r\nd\r\n", "note: its lines end in CR LF as before"),
    ("\u{feff}a\n", "c\n", "\u{feff}c\n", "note: it begins with a byte order mark as before"),
    ("a\r\nb\n", "c\nd\n", "c\nd\n", "note: the ends of its lines change from LF and CR LF mixed to LF"),
    ("a\nb\n", "c\r\nd\r\n", "c\r\nd\r\n", "note: the ends of its lines change from LF to CR LF"),
    ("a\r\n", "c\r\n", "c\r\n", ""),
    ("a\n", "c\n", "c\n", ""),
    ("a\r\n", "", "", ""),
    ("a\r\nb", "c", "c", ""),
];

/// Broken build: ce783d9e, which writes the text as the model sent it, and says nothing.
#[test]
fn a_whole_file_is_written_in_the_form_that_it_had_or_the_result_says_what_changes() {
    for (old, new, written, note) in FORMS {
        let shell = Shell::new(&[("f", old)]);
        let told = output(&shell, "write", json!({ "path": "f", "content": new }));
        assert_eq!(shell.read("f"), written, "{old:?} {new:?}");
        assert!(if note.is_empty() { !told.contains("note:") } else { told.contains(note) }, "{old:?} {new:?}: {told}");
    }
    // The way to other bytes.
    let shell = Shell::new(&[("f", "a\r\n")]);
    assert_eq!(shell.run(["run", "write -b f YgpjCg==", "--write"]).code, 0);
    assert_eq!(shell.read("f"), "b\nc\n");
    let shell = Shell::new(&[("f", "a\r\n")]);
    assert_eq!(shell.run(["run", "echo b | write -a f", "--write"]).code, 0);
    assert_eq!(shell.read("f"), "a\r\nb\r\n");
}

/// Broken build: ce783d9e, which breaks a hard link and says nothing, neither on the card nor in the result.
#[tokio::test]
async fn other_names_of_a_file_keep_the_old_content_and_card_and_result_say_so() {
    for (name, args) in replacing() {
        let shell = Shell::new(&[("f", "one\ntwo\n")]);
        fs::hard_link(shell.workspace().join("f"), shell.workspace().join("g")).expect("a link");
        let result = result(&shell, name, &args);
        let told = result["output"].as_str().expect("text");
        assert!(told.contains("note: f has another name (a hard link), which keeps the old content"), "{name}: {told}");
        assert_eq!((shell.read("f"), shell.read("g")), ("one\n2\n".into(), "one\ntwo\n".into()), "{name}");
    }
    for name in ["write", "edit"] {
        let args = replacing().into_iter().find(|(it, _)| *it == name).expect("a call").1;
        let mut pixir = Pixir::new(vec![calls(name, args), says("Done.")], &[("f", "one\ntwo\n")]);
        for other in ["g", "h"] {
            fs::hard_link(pixir.path("f"), pixir.path(other)).expect("a link");
        }
        let card = flat(&pixir.does("go<Enter>").await);
        assert!(card.contains("f has 2 other names (hard links), which keep the old content"), "{card}");
    }
}

/// Broken build: ce783d9e, which replaces a file that no user may write, in `auto` unasked.
#[tokio::test]
async fn a_read_only_file_is_asked_about_in_every_mode_by_every_tool() {
    let delete = ("apply_patch", json!({ "patch": "*** Begin Patch\n*** Delete File: f\n*** End Patch\n" }));
    for (name, args) in replacing().into_iter().chain([delete]) {
        let shell = Shell::new(&[("f", "one\ntwo\n")]);
        fs::set_permissions(shell.workspace().join("f"), fs::Permissions::from_mode(0o444)).expect("chmod");
        let result = result(&shell, name, &args);
        assert_eq!(result["error"]["code"], "INPUT_REQUIRED", "{name} {args}: {result}");
        assert!(result.to_string().contains("f is read-only (its mode is 444)"), "{result}");
        assert_eq!(shell.read("f"), "one\ntwo\n", "{name} {args}");
    }
    let write = calls("write", json!({ "path": "f", "content": "new\n" }));
    let mut pixir = Pixir::new(vec![write.clone(), says("No."), write, says("Yes.")], &[("f", "old\n")]);
    fs::set_permissions(pixir.path("f"), fs::Permissions::from_mode(0o444)).expect("chmod");
    let card = flat(&pixir.does("go<Enter>").await);
    assert!(card.contains("f is read-only (its mode is 444), and would be replaced all the same"), "{card}");
    pixir.does("<A-n>").await;
    assert_eq!(pixir.file("f"), "old\n");
    pixir.does("again<Enter>").await;
    pixir.does("<A-y>").await;
    let mode = fs::metadata(pixir.path("f")).expect("there").mode() & 0o777;
    assert_eq!((pixir.file("f").as_str(), mode), ("new\n", 0o444));
}

/// The folder belongs to the user, the file to another one: replacing it needs no right to the file.
///
/// Broken build: ce783d9e, which makes the user its owner and says nothing.
#[test]
fn a_file_of_another_user_is_asked_about() {
    if !rustix::process::geteuid().is_root() {
        return crate::shell::skip("only the superuser makes files of others");
    }
    for (mode, is_asked) in [(0o644, true), (0o664, true), (0o666, false)] {
        let shell = Shell::new(&[("f", "old\n")]);
        let top = shell.workspace().parent().expect("a parent").to_owned();
        let args = json!({ "path": "f", "content": "new\n" }).to_string();
        fs::set_permissions(&top, fs::Permissions::from_mode(0o755)).expect("chmod");
        assert!(Command::new("chown").args(["-R", NOBODY]).arg(&top).status().expect("chown").success());
        let path = shell.workspace().join("f");
        std::os::unix::fs::chown(&path, Some(0), Some(0)).expect("chown");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        let ran = as_user(Some(NOBODY), env!("CARGO_BIN_EXE_pixir"))
            .args(["tools", "run", "write", &args, "--json", "--write"])
            .current_dir(shell.workspace())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .envs([("HOME", &top), ("PIXIR_HOME", &shell.home())])
            .stdin(Stdio::null())
            .output()
            .expect("it starts");
        let told = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
        if is_asked {
            assert_eq!(ran.status.code(), Some(13), "{mode:o}: {told}");
            assert!(told.contains("f is read-only"), "{told}");
            assert_eq!((shell.read("f").as_str(), fs::metadata(&path).expect("there").uid()), ("old\n", 0));
        } else {
            assert_eq!(ran.status.code(), Some(0), "{mode:o}: {told}");
            assert!(told.contains("note: the owner of f changes from 0:0 to"), "{told}");
        }
    }
}
