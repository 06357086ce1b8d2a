//! Requests that cost more for their length: a warning before, and a compaction below.

use serde_json::Value;

use crate::connected::{ask, start};
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, entries};

/// An answer of about 10,000 tokens.
fn long_answer(name: &str) -> String {
    (0..1_600).map(|n| format!("The {name} has the line {n:05}. ")).collect()
}

fn replies() -> Vec<crate::server::Reply> {
    vec![text(&long_answer("first")), text(&long_answer("second")), text("That was the third."), text("And the last.")]
}

/// A configuration with a price step a little above one long answer.
fn configured(more: &str) -> (Shell, Server, u64) {
    let probe = Server::counting(vec![text("Hello.")], 200_000);
    let ran = ask(&Shell::new(&[]), &probe, Dialect::Chat, &["first"]);
    let tokens = ran.document()["usage"]["input"].as_u64().expect("tokens");
    let above = tokens + 13_500;
    let shell = Shell::new(&[]);
    let step = format!("step = {{ above = {above}, input = 2.0, output = 1.5 }}");
    let price = format!("[models.\"custom/m\"]\nwindow = 200000\nprice = {{ input = 1.0, output = 2.0, {step} }}\n");
    shell.configure(&(price + more));
    (shell, Server::counting(replies(), 200_000), above)
}

fn compactions(shell: &Shell) -> usize {
    entries(&shell.logs()[0]).iter().filter(|e| e["type"] == "history_compaction").count()
}

/// Broken builds: the whole request costs the price below the step; the setting has no effect; it compacts where it is off.
#[test]
fn a_conversation_can_be_kept_below_the_length_at_which_requests_cost_more() {
    for (setting, compacted) in [("", 0), ("[compaction]\nbelow_price_step = true\n", 1)] {
        let (shell, server, above) = configured(setting);
        let mut last = Value::Null;
        for words in [["first"].as_slice(), &["resume", "--last", "second"], &["resume", "--last", "third"]] {
            let ran = ask(&shell, &server, Dialect::Chat, words);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            last = ran.document();
        }
        assert_eq!(compactions(&shell) > 0, compacted > 0, "{setting}");
        let input = last["usage"]["input"].as_u64().expect("tokens");
        assert_eq!(input <= above, compacted > 0, "{setting}: {input} of {above}");
        if compacted == 0 {
            let usd = last["cost"]["usd"].as_f64().expect("a cost");
            assert!(usd > input as f64 * 1.9 / 1e6, "all of it costs twice as much: {usd} for {input}");
        }
    }
}

/// Broken build: the status line says nothing of it.
#[test]
fn the_status_line_warns_before_a_price_step_and_says_when_it_is_passed() {
    let (shell, server, _) = configured("");
    // In a terminal the home is another one.
    let configuration = shell.home().join("../.config/pixir/config.toml");
    let folder = shell.home().join(".config/pixir");
    std::fs::create_dir_all(&folder).expect("mkdir");
    std::fs::copy(configuration, folder.join("config.toml")).expect("copy");
    let mut terminal = start(&shell, &server, Dialect::Chat, 160, 30);
    terminal.wait_for("Ask pixir");
    terminal.send("one\r");
    terminal.wait_for("line 01599");
    assert!(!terminal.screen().contains("the price"), "{}", terminal.screen());
    terminal.send("two\r");
    terminal.wait_for("2× the price above");
    terminal.send("three\r");
    terminal.wait_for("That was the third.");
    terminal.wait_for("2× the price now, above");
    terminal.send("\x04");
    terminal.end().assert_sane();
}
