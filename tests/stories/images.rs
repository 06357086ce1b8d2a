//! Images: mentioned, pasted, dropped, read by a tool, and sent in every dialect.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::connected::ask;
use crate::driver::{Pixir, calls, says};
use crate::server::{Dialect, Server, call, text};
use crate::shell::{Shell, entries, png};

#[test]
fn a_read_image_is_stored_and_sent_with_its_result() {
    let png = png(508);
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[("note.md", "see ![x](photo.png) and data:image/png;base64,AAAA\n")]);
        fs::write(shell.workspace().join("photo.png"), &png).expect("write");
        let server = Server::start(vec![
            call("c1", "read", json!({"path": "photo.png"})),
            call("c2", "read", json!({"path": "note.md"})),
            text("A cat."),
        ]);
        let mut args = server.flags(dialect);
        args.extend(["--headless", "--json", "look"].map(str::to_owned));
        assert_eq!(shell.run(args).code, 0);
        let log = entries(&shell.logs()[0]);
        let results: Vec<&Value> = log.iter().filter(|e| e["type"] == "tool_result").map(|e| &e["data"]).collect();
        let image = &results[0]["attachments"][0];
        assert_eq!(
            (&image["path"], &image["media_type"], &image["bytes"]),
            (&json!("photo.png"), &json!("image/png"), &json!(508))
        );
        assert!(results[1]["attachments"].is_null(), "text that names an image attaches nothing");
        // Both later requests carry it, the same each time.
        let bodies = server.bodies();
        let plain = base64(&png);
        let url = format!("data:image/png;base64,{plain}");
        let sent = if dialect == Dialect::Anthropic { &plain } else { &url };
        for body in &bodies[1..] {
            assert_eq!(body.to_string().matches(sent).count(), 1, "{body}");
        }
        let place = match dialect {
            Dialect::Responses => bodies[2]["input"]
                .as_array()
                .expect("input")
                .iter()
                .find(|it| it["type"] == "function_call_output")
                .map(|it| it["output"][1]["image_url"].clone()),
            Dialect::Chat => bodies[2]["messages"]
                .as_array()
                .expect("messages")
                .iter()
                .find(|it| it["role"] == "user" && it["content"].is_array())
                .map(|it| it["content"][1]["image_url"]["url"].clone()),
            Dialect::Anthropic => {
                let results = &bodies[2]["messages"][2]["content"];
                assert_eq!(results[0]["type"], "tool_result");
                assert_eq!(results[0]["content"][1]["source"]["media_type"], "image/png");
                Some(results[0]["content"][1]["source"]["data"].clone())
            }
        };
        assert_eq!(place, Some(json!(sent)));
        // The image belongs to the Session: an export contains it, and `gc` leaves it.
        shell.run(["gc", "--yes"]);
        let export = shell.run(["sessions", "export", "last", "--json"]).document();
        assert!(export["blobs"][image["blob"].as_str().expect("a blob")].is_string());
        // The next turn of the same session finds it again.
        let again = shell.run(["inspect", "last", "--json"]).document();
        assert!(again["request"].to_string().contains(&url));
    }
}

fn base64(bytes: &[u8]) -> String {
    let encoded = Command::new("base64").arg("-w0").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = encoded.expect("base64 runs");
    std::io::Write::write_all(child.stdin.as_mut().expect("stdin"), bytes).expect("write");
    drop(child.stdin.take());
    String::from_utf8(child.wait_with_output().expect("it ends").stdout).expect("text")
}

#[test]
fn read_of_an_image_without_vision_says_so() {
    let shell = Shell::new(&[]);
    fs::write(shell.workspace().join("photo.png"), png(100)).expect("write");
    let server = Server::start(vec![call("c1", "read", json!({"path": "photo.png"})), text("I cannot.")]);
    let mut args = server.flags(Dialect::Chat);
    let at = args.iter().position(|arg| arg == "--model").expect("a model");
    args[at + 1] = "deepseek-chat".into();
    args.extend(["--headless", "--json", "look"].map(str::to_owned));
    assert_eq!(shell.run(args).code, 0);
    let log = entries(&shell.logs()[0]);
    let result = log.iter().find(|e| e["type"] == "tool_result").expect("a result");
    assert_eq!(
        (&result["data"]["error"]["kind"], &result["data"]["error"]["code"]),
        (&json!("model_not_supported"), &json!("VISION_UNSUPPORTED"))
    );
}

#[test]
fn a_model_without_vision_gets_a_note_instead_of_the_image() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        std::fs::write(shell.workspace().join("photo.png"), png(400)).expect("write");
        let server =
            Server::start(vec![call("c1", "read", json!({ "path": "photo.png" })), text("A cat."), text("No eyes.")]);
        shell.configure("[models.\"custom/blind\"]\nvision = false\n");
        ask(&shell, &server, dialect, &["look"]);
        let flags = ["--base-url", &server.url, "--dialect", dialect.name(), "--model", "blind"];
        let again = [["resume", "--last", "and now?", "--headless"].as_slice(), &flags].concat();
        assert_eq!(shell.run(again).code, 0);
        let bodies = server.bodies();
        assert!(bodies[1].to_string().contains("iVBOR"), "who can see is shown it");
        let blind = bodies[2].to_string();
        assert!(!blind.contains("iVBOR") && blind.contains("does not accept images"), "{dialect:?}");
    }
}

#[test]
fn mentioned_and_dropped_images_are_sent_in_every_dialect() {
    for dialect in Dialect::ALL {
        let shell = Shell::new(&[]);
        fs::write(shell.workspace().join("shot one.png"), png(300)).expect("write");
        let dropped = shell.aside("dropped.png", "");
        fs::write(&dropped, png(200)).expect("write");
        let server = Server::start(vec![text("A cat."), text("And a dog.")]);
        let script = format!(
            "idle\npaste '{}'\nexpect [image 1: dropped.png]\nkeys is this @\"shot one.png\" like @nothing.png?\nframe line\n\
             keys <Enter>\nexpect A cat.\nidle\nframe sent\nkeys and?<Enter>\nexpect And a dog.\nidle\n",
            dropped.display()
        );
        fs::write(shell.workspace().join("keys.txt"), script).expect("write");
        let mut args = server.flags(dialect);
        args.splice(0..0, ["tui", "--script", "keys.txt"].map(str::to_owned));
        let ran = shell.run(args);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("▣ shot one.png · 300B"), "{}", ran.stdout);
        let said = entries(&shell.logs()[0]).into_iter().find(|e| e["type"] == "user_message").expect("a prompt");
        let images = said["data"]["attachments"].as_array().expect("images").clone();
        assert_eq!(images.len(), 2, "a mention without a file is plain text: {said}");
        let bodies = server.bodies();
        let kind = match dialect {
            Dialect::Responses => "input_image",
            Dialect::Chat => "image_url\",",
            Dialect::Anthropic => "\"image\"",
        };
        for body in &bodies {
            let text = body.to_string().replace("\"type\":\"image_url\"", "\"image_url\",");
            assert_eq!(text.matches(kind).count(), 2, "every later request contains the same images: {body}");
        }
        // The stored image is found again, and `gc` leaves it.
        shell.run(["gc", "--yes"]);
        let export = shell.run(["sessions", "export", "last", "--json"]).document();
        assert!(export["blobs"][images[0]["blob"].as_str().expect("a blob")].is_string());
    }
}

#[tokio::test]
async fn a_pasted_image_path_becomes_one_placeholder() {
    let mut pixir = Pixir::new(vec![says("Seen.")], &[("fake.png", "no picture\n")]);
    pixir.screen.until_idle().await;
    let fake = pixir.path("fake.png").display().to_string();
    pixir.screen.paste(&fake).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), fake, "the pasted text is not lost");
    assert!(pixir.screen.screen().contains("is not a complete PNG"), "{}", pixir.screen.screen());
    fs::write(pixir.path("real.png"), png(100)).expect("write");
    pixir.does("<C-c>see ").await;
    pixir.screen.paste(&pixir.path("real.png").display().to_string()).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), "see [image 1: real.png] ");
    pixir.does("<Backspace><Backspace>").await;
    assert_eq!(pixir.screen.draft(), "see ", "the placeholder is deleted as one character");
    // A file that cannot be sent keeps the message in the composer.
    let screen = pixir.does("<C-u>look at @fake.png now<Enter>").await;
    assert!(screen.contains("is not a complete PNG") && pixir.screen.draft() == "look at @fake.png now", "{screen}");
    // This machine has no clipboard, so there is no image.
    let screen = pixir.does("<C-c><C-v>").await;
    assert!(screen.contains("no program can read the clipboard"), "{screen}");
}

#[tokio::test]
async fn a_draft_keeps_its_image_after_a_crash_or_a_take_back() {
    let mut pixir = Pixir::new(vec![calls("bash", json!({"command": "sleep 60"})), says("Done.")], &[]);
    fs::write(pixir.path("real.png"), png(100)).expect("write");
    pixir.does("/mode auto<Enter>").await;
    pixir.screen.keys("go<Enter>").await;
    pixir.screen.until("working").await;
    pixir.screen.paste(&pixir.path("real.png").display().to_string()).await;
    pixir.screen.until("[image 1: real.png]").await;
    pixir.screen.keys("like this<A-Enter>").await;
    pixir.screen.until("▸ next").await;
    pixir.screen.keys("<Esc>").await;
    pixir.screen.until("■ interrupted").await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    let mut pixir = pixir.again(vec![says("Seen.")]).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    let screen = pixir.does("<Enter>").await;
    assert!(screen.contains("▣") && screen.contains("real.png · 100B"), "{screen}");
    // A second image gets the next number, and a recalled prompt keeps its image.
    pixir.screen.paste(&pixir.path("real.png").display().to_string()).await;
    pixir.screen.until_idle().await;
    assert_eq!(pixir.screen.draft(), "[image 2: real.png] ");
    pixir.does("<C-c><Up><Up>").await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    pixir.does("<C-c>").await;
    let mut pixir = pixir.again(vec![says("Seen again.")]).await;
    pixir.does("<Up>").await;
    assert_eq!(pixir.screen.draft(), "[image 1: real.png] like this");
    let screen = pixir.does("<Enter>").await;
    assert_eq!(screen.matches("▣").count(), 2, "{screen}");
    // In another Session the placeholder is plain text, and a notice says so.
    let mut pixir = pixir.anew(vec![says("What?")]).await;
    let screen = pixir.does("see [image 1: real.png]<Enter>").await;
    assert!(screen.contains("[image 1: real.png] belongs to another session"), "{screen}");
}

#[tokio::test]
async fn prompts_sent_before_the_session_opens_keep_their_order() {
    let mut pixir = Pixir::new(vec![says("A picture."), says("Yes.")], &[]);
    fs::write(pixir.path("shot.png"), png(100)).expect("write");
    pixir.screen.keys("what is @shot.png<Enter>").await;
    pixir.screen.keys("and this<A-Enter>").await;
    pixir.screen.until_idle().await;
    let log = pixir.log();
    let said: Vec<_> = log.iter().filter(|e| e["type"] == "user_message").map(|e| &e["data"]).collect();
    let texts: Vec<_> = said.iter().map(|it| it["text"].as_str().expect("text")).collect();
    assert_eq!(texts, ["what is @shot.png", "and this"]);
    assert_eq!(said[0]["attachments"].as_array().map(Vec::len), Some(1), "{}", said[0]);
    // An image that is pasted during a Turn does not block the interface.
    let mut pixir = pixir.anew(vec![says("Explained.")]).await;
    pixir.screen.keys("explain it<Enter>").await;
    pixir.screen.paste(&pixir.path("shot.png").display().to_string()).await;
    pixir.screen.until("Explained.").await;
    pixir.screen.until("[image 1: shot.png]").await;
}
