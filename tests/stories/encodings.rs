//! Files in other encodings than UTF-8: read, searched, edited without touching another byte, and created where asked.
//!
//! The bytes of the files are those that other programs write, not what pixir's own tables make.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, ran};

fn call(name: &str, args: Value) -> Value {
    json!({ "calls": [{ "name": name, "args": args }] })
}

/// How the ASCII characters of a file are written.
#[derive(Clone, Copy)]
enum Ascii {
    Plain,
    Little,
    Big,
}

impl Ascii {
    fn bytes(self, text: &str) -> Vec<u8> {
        text.bytes()
            .flat_map(|byte| match self {
                Ascii::Plain => vec![byte],
                Ascii::Little => vec![byte, 0],
                Ascii::Big => vec![0, byte],
            })
            .collect()
    }
}

/// An encoding: its name in results, its byte order mark, how it writes ASCII, words and other words with their bytes, and a
/// character that it does not have.
struct Kind {
    name: &'static str,
    asked: &'static str,
    bom: &'static [u8],
    ascii: Ascii,
    words: (&'static str, &'static [u8]),
    others: (&'static str, &'static [u8]),
    lacks: Option<&'static str>,
}

const fn plain(
    name: &'static str,
    words: (&'static str, &'static [u8]),
    others: (&'static str, &'static [u8]),
    lacks: Option<&'static str>,
) -> Kind {
    Kind { name, asked: name, bom: b"", ascii: Ascii::Plain, words, others, lacks }
}

const RUSSIAN: &str = "Ошибка чтения файла";
const JAPANESE: &str = "設定ファイル";

fn kinds() -> Vec<Kind> {
    let wide = |name, asked, bom, ascii, words, others| Kind { name, asked, bom, ascii, words, others, lacks: None };
    let little = ("größer 漢字", b"g\0r\0\xf6\0\xdf\0e\0r\0 \0\"oW[".as_slice());
    let big = ("größer 漢字", b"\0g\0r\0\xf6\0\xdf\0e\0r\0 o\"[W".as_slice());
    let (done_little, done_big) =
        (("終わり 😀", b"B}\x8f0\x8a0 \0=\xd8\0\xde".as_slice()), ("終わり", b"}B0\x8f0\x8a".as_slice()));
    vec![
        wide(
            "UTF-8 with BOM",
            "utf-8-bom",
            b"\xef\xbb\xbf",
            Ascii::Plain,
            ("größer", b"gr\xc3\xb6\xc3\x9fer"),
            ("Öl", b"\xc3\x96l"),
        ),
        wide("UTF-16LE with BOM", "utf-16", b"\xff\xfe", Ascii::Little, little, done_little),
        wide("UTF-16LE", "utf-16le", b"", Ascii::Little, little, done_little),
        wide("UTF-16BE with BOM", "utf-16be-bom", b"\xfe\xff", Ascii::Big, big, done_big),
        wide("UTF-16BE", "UTF-16BE", b"", Ascii::Big, big, done_big),
        Kind {
            asked: "latin1",
            ..plain("Latin-1 (ISO-8859-1)", ("größer Tür", b"gr\xf6\xdfer T\xfcr"), ("Öl", b"\xd6l"), Some("5 €"))
        },
        Kind {
            asked: "cp1252",
            ..plain(
                "windows-1252",
                ("“größer” – 5 €", b"\x93gr\xf6\xdfer\x94 \x96 5 \x80"),
                ("„Öl“", b"\x84\xd6l\x93"),
                Some("Łódź"),
            )
        },
        plain(
            "KOI8-R",
            (RUSSIAN, b"\xef\xdb\xc9\xc2\xcb\xc1 \xde\xd4\xc5\xce\xc9\xd1 \xc6\xc1\xca\xcc\xc1"),
            ("Готово", b"\xe7\xcf\xd4\xcf\xd7\xcf"),
            Some("größer"),
        ),
        plain(
            "windows-1251",
            (RUSSIAN, b"\xce\xf8\xe8\xe1\xea\xe0 \xf7\xf2\xe5\xed\xe8\xff \xf4\xe0\xe9\xeb\xe0"),
            ("Готово", b"\xc3\xee\xf2\xee\xe2\xee"),
            Some("größer"),
        ),
        Kind {
            asked: "sjis",
            ..plain(
                "Shift_JIS",
                (JAPANESE, b"\x90\xdd\x92\xe8\x83t\x83@\x83C\x83\x8b"),
                ("終了ソース", b"\x8fI\x97\xb9\x83\\\x81[\x83X"),
                Some("é"),
            )
        },
        plain(
            "EUC-JP",
            (JAPANESE, b"\xc0\xdf\xc4\xea\xa5\xd5\xa5\xa1\xa5\xa4\xa5\xeb"),
            ("終了ソース", b"\xbd\xaa\xce\xbb\xa5\xbd\xa1\xbc\xa5\xb9"),
            Some("😀"),
        ),
        Kind {
            asked: "gb2312",
            ..plain(
                "GBK",
                ("配置文件的名称", b"\xc5\xe4\xd6\xc3\xce\xc4\xbc\xfe\xb5\xc4\xc3\xfb\xb3\xc6"),
                ("完成", b"\xcd\xea\xb3\xc9"),
                Some("😀"),
            )
        },
        plain(
            "gb18030",
            ("你好，世界😀的文件", b"\xc4\xe3\xba\xc3\xa3\xac\xca\xc0\xbd\xe7\x949\xfc6\xb5\xc4\xce\xc4\xbc\xfe"),
            ("完成😁", b"\xcd\xea\xb3\xc9\x949\xfc7"),
            None,
        ),
        plain(
            "Big5",
            ("資料庫連線失敗", b"\xb8\xea\xae\xc6\xaew\xb3s\xbdu\xa5\xa2\xb1\xd1"),
            ("完成功能", b"\xa7\xb9\xa6\xa8\xa5\\\xaf\xe0"),
            Some("😀"),
        ),
        plain(
            "EUC-KR",
            ("설정 파일을 읽을", b"\xbc\xb3\xc1\xa4 \xc6\xc4\xc0\xcf\xc0\xbb \xc0\xd0\xc0\xbb"),
            ("완료", b"\xbf\xcf\xb7\xe1"),
            Some("é"),
        ),
    ]
}

impl Kind {
    /// A file of these parts: plain text, or words with their bytes.
    fn file(&self, parts: &[Result<(&str, &[u8]), &str>]) -> Vec<u8> {
        let mut bytes = self.bom.to_vec();
        for part in parts {
            match part {
                Ok((_, words)) => bytes.extend_from_slice(words),
                Err(ascii) => bytes.extend(self.ascii.bytes(ascii)),
            }
        }
        bytes
    }
}

fn put(shell: &Shell, name: &str, bytes: &[u8]) {
    fs::write(shell.workspace().join(name), bytes).expect("write");
}

fn on_disk(shell: &Shell, name: &str) -> Vec<u8> {
    fs::read(shell.workspace().join(name)).expect("read")
}

/// Broken build: ce783d9e, for which all but UTF-8 is binary; one that writes the whole file anew, as UTF-8 or with other line ends.
#[test]
fn files_in_fifteen_encodings_are_read_searched_and_edited_without_touching_another_byte() {
    for kind in kinds() {
        let shell = Shell::new(&[("plain.txt", "nothing here\n")]);
        let (words, others) = (Ok(kind.words), Ok(kind.others));
        put(&shell, "a.txt", &kind.file(&[Err("# "), words, Err("\r\nname = "), words, Err(" 1\nport = 80\nend")]));
        let patch = format!(
            "*** Begin Patch\n*** Update File: a.txt\n@@\n-port = 80\n+port = {}\n*** End Patch",
            kind.others.0
        );
        let steps = [
            call("read", json!({ "path": "a.txt" })),
            call("grep", json!({ "pattern": format!("name = {}", kind.words.0) })),
            call(
                "edit",
                json!({ "path": "a.txt", "old_text": format!("name = {} 1", kind.words.0), "new_text": format!("name = {} 2\nnew", kind.others.0) }),
            ),
            call("apply_patch", json!({ "patch": patch })),
            call("read", json!({ "path": "a.txt", "line_numbers": false })),
            json!({ "text": "Done." }),
        ];
        let read = shell.outputs(&steps, &["--write"]);
        let (name, (word, _), (other, _)) = (kind.name, kind.words, kind.others);
        let shown = format!(
            "     1\t# {word}\r\n     2\tname = {word} 1\n     3\tport = 80\n     4\tend\n…[encoding: {name}]\n"
        );
        assert!(read[0].replace('\r', "").starts_with(&shown.replace('\r', "")), "{name}: {}", read[0]);
        assert!(read[1].starts_with(&format!("a.txt:2:name = {word} 1\n[exit:0")), "{name}: {}", read[1]);
        assert!(read[2].starts_with("Edited a.txt:2 (+2 −1)"), "{name}: {}", read[2]);
        assert!(read[3].starts_with("Edited a.txt:4 (+1 −1)"), "{name}: {}", read[3]);
        assert!(
            read[4].contains(&format!("name = {other} 2\nnew\nport = {other}\nend\n…[encoding: {name}]")),
            "{name}: {}",
            read[4]
        );
        let expected =
            kind.file(&[Err("# "), words, Err("\r\nname = "), others, Err(" 2\nnew\nport = "), others, Err("\nend")]);
        assert_eq!(on_disk(&shell, "a.txt"), expected, "{name}");
        // Undo brings the file back as it was.
        let undone = shell.run(["undo"]);
        assert_eq!(undone.code, 0, "{name}: {}", undone.stderr);
        assert_eq!(
            on_disk(&shell, "a.txt"),
            kind.file(&[Err("# "), words, Err("\r\nname = "), words, Err(" 1\nport = 80\nend")])
        );
    }
}

/// Broken build: one that writes `?` for what does not fit, or half of the change.
#[test]
fn a_character_that_does_not_fit_is_refused_and_the_file_stays() {
    for kind in kinds() {
        let Some(lacks) = kind.lacks else { continue };
        let shell = Shell::new(&[]);
        let file = kind.file(&[Ok(kind.words), Err("\nport = 80\n"), Ok(kind.words), Err("\n")]);
        put(&shell, "a.txt", &file);
        let patch = format!("*** Begin Patch\n*** Update File: a.txt\n@@\n-port = 80\n+port = {lacks}\n*** End Patch");
        let steps = [
            call("edit", json!({ "path": "a.txt", "old_text": "80", "new_text": lacks })),
            call("apply_patch", json!({ "patch": patch })),
            call("write", json!({ "path": "a.txt", "content": format!("only {lacks}\n") })),
            json!({ "text": "Done." }),
        ];
        for output in shell.outputs(&steps, &["--write"]) {
            let why = format!("`a.txt` is {}, which does not have the character", kind.name);
            assert!(output.contains(&why) && output.contains("encoding=utf-8"), "{}: {output}", kind.name);
        }
        assert_eq!(on_disk(&shell, "a.txt"), file, "{}", kind.name);
    }
}

/// Broken build: one that ignores `encoding`, or replaces a file by UTF-8 and does not say so.
#[test]
fn files_are_created_in_the_encoding_that_is_asked_for_and_keep_their_own() {
    for kind in kinds() {
        let shell = Shell::new(&[]);
        let (words, others) = (Ok(kind.words), Ok(kind.others));
        let lines = |word: &str| format!("name = {word}\nend\n");
        let steps = [
            call("write", json!({ "path": "new.txt", "content": lines(kind.words.0), "encoding": kind.asked })),
            call("write", json!({ "path": "new.txt", "content": lines(kind.others.0) })),
            json!({ "text": "Done." }),
        ];
        let read = shell.outputs([&steps[0], &steps[2]], &["--write"]);
        assert!(read[0].starts_with("Created new.txt (") && read[0].contains(kind.name), "{}: {}", kind.name, read[0]);
        assert_eq!(on_disk(&shell, "new.txt"), kind.file(&[Err("name = "), words, Err("\nend\n")]), "{}", kind.name);
        let read = shell.outputs(&steps[1..], &["--write"]);
        assert!(read[0].starts_with("Edited new.txt:1 (+1 −1)"), "{}: {}", kind.name, read[0]);
        assert_eq!(on_disk(&shell, "new.txt"), kind.file(&[Err("name = "), others, Err("\nend\n")]), "{}", kind.name);
        put(&shell, "new.txt", &kind.file(&[words, Err("\nend\n")]));
        let to_utf8 = [
            call("write", json!({ "path": "new.txt", "content": lines(kind.words.0), "encoding": "utf-8" })),
            json!({ "text": "Done." }),
        ];
        let read = shell.outputs(&to_utf8, &["--write"]);
        assert!(read[0].contains(&format!("its encoding changes from {} to UTF-8", kind.name)), "{}", read[0]);
        assert_eq!(on_disk(&shell, "new.txt"), lines(kind.words.0).as_bytes(), "{}", kind.name);
    }
    let shell = Shell::new(&[]);
    let unknown = call("write", json!({ "path": "new.txt", "content": "x", "encoding": "klingon" }));
    let read = shell.outputs(&[unknown, json!({ "text": "Done." })], &["--write"]);
    assert!(read[0].contains("the encoding `klingon` is unknown"), "{}", read[0]);
}

/// Broken build: ce783d9e, whose commands cut the lines of UTF-16 within a character; one that appends UTF-8.
#[test]
fn commands_of_the_run_language_work_on_lines_in_every_encoding() {
    for kind in kinds() {
        let shell = Shell::new(&[]);
        let (words, others) = (Ok(kind.words), Ok(kind.others));
        put(&shell, "a.txt", &kind.file(&[Err("b = "), words, Err("\na = "), others, Err("\n")]));
        let run = |command: &str| call("run", json!({ "command": command }));
        let (name, (word, _), (other, _)) = (kind.name, kind.words, kind.others);
        let steps = [
            run("cat a.txt"),
            run("head -n 1 a.txt"),
            run("tail -n 1 a.txt"),
            run("sort a.txt"),
            run(&format!("cat a.txt | grep 'a = {other}'")),
            run(&format!("write -a a.txt 'c = {word}'")),
            run(&format!("write -e '{}' b.txt 'd = {other}'", kind.asked)),
            run(&format!("write -e klingon c.txt '{other}'")),
            json!({ "text": "Done." }),
        ];
        let read = shell.outputs(&steps, &["--write", "--toolset", "run"]);
        let (first, second) = (format!("b = {word}\n"), format!("a = {other}\n"));
        assert!(read[0].starts_with(&format!("{first}{second}…[decoded from {name}]\n")), "{name}: {}", read[0]);
        assert!(read[1].starts_with(&first) && !read[1].contains(&second), "{name}: {}", read[1]);
        assert!(read[2].starts_with(&second), "{name}: {}", read[2]);
        assert!(read[3].starts_with(&format!("{second}{first}")), "{name}: {}", read[3]);
        for lines in &read[1..4] {
            let is_named = lines.contains(&format!("a.txt: decoded from {name}"));
            assert_eq!(is_named, name != "UTF-8 with BOM", "{name}: {lines}");
        }
        assert!(read[4].contains(&second), "{name}: {}", read[4]);
        assert!(read[7].contains("the encoding `klingon` is unknown"), "{name}: {}", read[7]);
        let appended = kind.file(&[Err("b = "), words, Err("\na = "), others, Err("\nc = "), words]);
        assert_eq!(on_disk(&shell, "a.txt"), appended, "{name}");
        assert_eq!(on_disk(&shell, "b.txt"), kind.file(&[Err("d = "), others]), "{name}");
    }
}

/// Broken build: ce783d9e, for which the text of such a skill is a row of replacement characters, or has no front matter.
#[test]
fn skills_are_decoded() {
    for kind in kinds() {
        let shell = Shell::new(&[]);
        let skill = kind.file(&[
            Err("---\nname: words\ndescription: Use it for words.\n---\nSay "),
            Ok(kind.words),
            Err(" and $ARGUMENTS.\n"),
        ]);
        let folder = shell.home().parent().expect("a parent").join(".agents/skills/words");
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("SKILL.md"), &skill).expect("write");
        let read =
            shell.outputs(&[call("skill_view", json!({ "name": "words" })), json!({ "text": "Done." })], &["--write"]);
        assert!(read[0].contains(&format!("Say {} and", kind.words.0)), "{}: {}", kind.name, read[0]);
        assert!(!read[0].contains(['\0', '\u{fffd}', '\u{feff}']), "{}: {}", kind.name, read[0]);
    }
}

/// Broken build: one that takes a program, an archive, an image or names that are divided by NULs for text.
#[test]
fn what_is_binary_stays_binary() {
    let shell = Shell::new(&[]);
    let program = fs::read("/bin/true").expect("a program");
    let files: [(&str, &[u8]); 7] = [
        ("program", &program),
        ("names", b"src/main.rs\0src/lib.rs\0"),
        ("archive.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9W(\xcf/\xcaI"),
        ("numbers", b"\x01\0\x02\0\x03\0\x04\0\x05\0\x06\0"),
        ("wide32", b"\xff\xfe\0\0h\0\0\0i\0\0\0"),
        ("module.wasm", b"\0asm\x01\0\0\0\x01\x07\x01\x60\x02\x7f\x7f\x01"),
        ("key", b"\x8f\x01\x90\xf2\x05\xde\x11\xaa\x9c\x02\xee\x7f\x13\xd0\xc1\x1e"),
    ];
    for (name, bytes) in files {
        put(&shell, name, bytes);
        let edit = json!({ "path": name, "old_text": "zz", "new_text": "b" });
        let steps = [call("read", json!({ "path": name })), call("edit", edit), json!({ "text": "Done." })];
        let read = shell.outputs(&steps, &["--write"]);
        assert!(read[0].contains("binary file ("), "{name}: {}", read[0]);
        assert!(!read[1].contains("Edited"), "{name}: {}", read[1]);
        assert_eq!(on_disk(&shell, name), bytes, "{name}");
    }
}

/// Broken build: one that shows replacement characters, or calls what Windows programs print binary.
#[test]
fn outputs_of_commands_are_decoded_and_say_so() {
    let shell = Shell::new(&[]);
    for kind in kinds().into_iter().filter(|kind| kind.name != "UTF-8 with BOM") {
        put(&shell, "out", &kind.file(&[Err("done: "), Ok(kind.words), Err("\n")]));
        let steps = [call("bash", json!({ "command": "cat out" })), json!({ "text": "Done." })];
        let read = shell.outputs(&steps, &["--write"]);
        let expected = format!("done: {}\n…[decoded from {}]\n[exit:0", kind.words.0, kind.name);
        assert!(read[0].starts_with(&expected), "{}: {}", kind.name, read[0]);
        let steps = [call("run", json!({ "command": "cat out" })), json!({ "text": "Done." })];
        let read = shell.outputs(&steps, &["--write", "--toolset", "run"]);
        assert!(read[0].starts_with(&expected), "{}: {}", kind.name, read[0]);
    }
}

/// Broken build: one that sends NULs and replacement characters to the model.
#[test]
fn documents_and_prompts_are_decoded() {
    for kind in kinds().into_iter().filter(|kind| kind.name != "UTF-8 with BOM") {
        let shell = Shell::new(&[]);
        let document = kind.file(&[Err("Use words like "), Ok(kind.words), Err(".\n")]);
        put(&shell, "AGENTS.md", &document);
        put(&shell, "notes.txt", &document);
        let server = Server::start(vec![text("Done.")]);
        let mut args = server.flags(Dialect::Responses);
        let root = shell.workspace().display().to_string();
        args.extend(["-p", "--workspace", &root, "--attach", "notes.txt", "-"].map(str::to_owned));
        let mut command = shell.command(args);
        command.current_dir(shell.workspace()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        child.stdin.take().expect("a pipe").write_all(&document).expect("written");
        let ran = ran(child.wait_with_output().expect("it ends"));
        assert_eq!(ran.code, 0, "{}: {}", kind.name, ran.stderr);
        let body = server.bodies()[0]["input"].to_string();
        let sentence = format!("Use words like {}.", kind.words.0);
        assert_eq!(body.matches(&sentence).count(), 3, "{}: {body}", kind.name);
        assert!(body.contains(&format!("[decoded from {}]", kind.name)), "{body}");
        assert!(body.contains(&format!("decoded-from=\\\"{}\\\"", kind.name)), "{body}");
        assert!(ran.stderr.contains(&format!("stdin was decoded from {}", kind.name)), "{}", ran.stderr);
        assert!(!body.contains("\\u0000") && !body.contains('\u{fffd}'), "{}: {body}", kind.name);
    }
}
