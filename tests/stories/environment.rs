//! Where it runs: terminals of every kind, and none.

use std::process::Stdio;

use crate::pty::{Terminal, foreign_sequences};
use crate::server::{Dialect, Server, text};
use crate::shell::{Shell, ran};

/// Parameters of every SGR sequence in these bytes.
fn colours(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let sequences = text.split("\x1b[").skip(1);
    let sgr =
        sequences.filter_map(|rest| rest.split_once(|c: char| !c.is_ascii_digit() && c != ';').map(|(p, _)| (p, rest)));
    sgr.filter(|(parameters, rest)| rest[parameters.len()..].starts_with('m'))
        .flat_map(|(parameters, _)| parameters.split(';').map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// The screen uses the colours that the terminal has, and no others.
#[test]
fn colours_follow_term_and_the_colour_variables() {
    let is = |n: &str, of: std::ops::RangeInclusive<u32>| n.parse().is_ok_and(|n| of.contains(&n));
    let named = |n: &str| is(n, 30..=37) || is(n, 40..=47) || is(n, 90..=97) || is(n, 100..=107);
    // TERM, the other variables, and the expected colours: 24 bit, 256, 16 or none.
    type Variables<'a> = &'a [(&'a str, &'a str)];
    let rows: [(&str, Variables<'_>, &str); 9] = [
        ("xterm-256color", &[("COLORTERM", "truecolor")], "24 bit"),
        ("xterm-direct", &[("COLORTERM", "")], "24 bit"),
        ("xterm-256color", &[("COLORTERM", "")], "256"),
        ("screen-256color", &[("COLORTERM", "")], "256"),
        ("xterm", &[("COLORTERM", "")], "16"),
        ("linux", &[("COLORTERM", "")], "16"),
        ("xterm-256color", &[("COLORTERM", "truecolor"), ("NO_COLOR", "1")], "none"),
        ("xterm-256color", &[("COLORTERM", "truecolor"), ("CLICOLOR", "0")], "none"),
        ("xterm", &[("COLORTERM", "24bit"), ("CI", "1")], "24 bit"),
    ];
    for (term, environment, expected) in rows {
        let shell = Shell::new(&[]);
        let environment: Vec<(&str, &str)> = [("TERM", term)].iter().chain(environment).copied().collect();
        let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
        let mut terminal = Terminal::of(&shell, pixir, &["--theme", "dark"], &environment, 80, 24);
        terminal.wait_for("No model is connected");
        terminal.send("\x04");
        let left = terminal.end();
        left.assert_sane();
        assert!(foreign_sequences(&left.bytes).is_empty(), "{term}: {:?}", foreign_sequences(&left.bytes));
        let used = colours(&left.bytes);
        let after = |kind: &str| used.windows(2).any(|pair| matches!(pair[0].as_str(), "38" | "48") && pair[1] == kind);
        let found = match (after("2"), after("5"), used.iter().any(|n| named(n))) {
            (true, false, _) => "24 bit",
            (false, true, _) => "256",
            (false, false, true) => "16",
            (false, false, false) => "none",
            (true, true, _) => "both",
        };
        assert_eq!(found, expected, "{environment:?}: {used:?}");
    }
}

#[test]
fn a_dumb_terminal_or_a_pipe_gets_no_sequence() {
    for term in ["dumb", ""] {
        let shell = Shell::new(&[]);
        let pixir = env!("CARGO_BIN_EXE_pixir").as_ref();
        let left = Terminal::of(&shell, pixir, &[], &[("TERM", term)], 80, 24).end();
        left.assert_sane();
        assert_eq!(left.code, 13, "{}", left.screen);
        assert!(
            left.screen.contains("cannot show the terminal interface") && left.screen.contains("--headless"),
            "{}",
            left.screen
        );
        assert!(!left.bytes.contains(&0x1b), "TERM={term:?}");
    }
    // Without a terminal on either side, with and without a prompt, with any colour variables.
    let server = Server::start((0..6).map(|_| text("Hello.")).collect());
    for (term, colour) in [("xterm-256color", "COLORTERM"), ("dumb", "NO_COLOR"), ("", "FORCE_COLOR")] {
        for prompt in [None, Some("hi"), Some("hi there")] {
            let shell = Shell::new(&[]);
            let mut args = server.flags(Dialect::Chat);
            args.extend(prompt.map(str::to_owned));
            let mut command = shell.command(args);
            command.env("TERM", term).env(colour, "1").stdin(Stdio::null());
            let ran = ran(command.output().expect("it starts"));
            assert!(!ran.stdout.contains('\x1b') && !ran.stderr.contains('\x1b'), "{term}, {colour}: {}", ran.stdout);
            match prompt {
                None => assert!(ran.code == 13 && ran.stderr.contains("NO_PROMPT"), "{}", ran.stderr),
                Some(_) => assert_eq!((ran.code, ran.stdout.trim()), (0, "Hello."), "{}", ran.stderr),
            }
        }
    }
}
