//! Themes: listed, checked, previewed, reloaded, and chosen by the terminal.

use crate::driver::Pixir;
use crate::pty::Terminal;
use crate::shell::Shell;
use crate::wait;

#[test]
fn themes_are_listed_previewed_and_checked() {
    let shell = Shell::new(&[]);
    let list = shell.run(["themes", "list", "--json"]).document();
    let names: Vec<&str> =
        list["themes"].as_array().expect("themes").iter().filter_map(|it| it["name"].as_str()).collect();
    for name in ["dark", "light", "high-contrast-dark", "high-contrast-light", "colour-blind", "system", "mono", "auto"]
    {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(shell.run(["themes", "check"]).code, 0);
    let shown = shell.run(["themes", "preview", "dark"]);
    assert!(shown.stdout.contains("fix the bug in average"), "{}", shown.stdout);
    let folder = shell.home().parent().expect("a folder").join(".config/pixir/themes");
    std::fs::create_dir_all(&folder).expect("mkdir");
    std::fs::write(folder.join("fog.toml"), "name = \"fog\"\nextends = \"dark\"\n[tokens]\ndim = \"#202228\"\n")
        .expect("write");
    let poor = shell.run(["themes", "check", "fog"]);
    assert!(poor.code == 1 && poor.stdout.contains("dim on background"), "{}", poor.stdout);
}

#[tokio::test]
async fn an_unknown_theme_is_an_error() {
    let mut pixir = Pixir::new(vec![], &[]);
    let screen = pixir.does("/theme nope<Enter>").await;
    assert!(screen.contains("nope") && !screen.contains("until you quit"), "{screen}");
}

/// Broken build: on the reversed ground of the chosen row, each colour of its words is a ground of its own.
#[tokio::test]
async fn the_chosen_row_is_one_bar_where_the_theme_has_the_colours_of_the_terminal() {
    let mut pixir = Pixir::sized(vec![], &[], 80, 24);
    pixir.does("/theme system<Enter>").await;
    let screen = pixir.does("/mode<Enter>").await;
    let y = screen.lines().position(|line| line.contains("● ask")).unwrap_or_else(|| panic!("the list:\n{screen}"));
    let buffer = pixir.screen.buffer();
    let row = (0..80).map(|x| &buffer[(x, u16::try_from(y).expect("fits"))]);
    let chosen: Vec<_> = row.filter(|cell| cell.modifier.contains(ratatui::style::Modifier::REVERSED)).collect();
    assert!(chosen.len() > 40, "{screen}");
    assert!(chosen.iter().all(|cell| cell.fg == ratatui::style::Color::Reset), "{chosen:?}");
}

/// Broken builds: only the row of the cursor shows colours; a light theme shows them on the dark ground of the list.
#[tokio::test]
async fn each_theme_of_the_list_shows_its_colours_on_its_ground() {
    let mut pixir = Pixir::sized(vec![], &[], 60, 20);
    let screen = pixir.does("/theme<Enter>").await;
    let mut grounds = std::collections::BTreeMap::new();
    for (y, line) in screen.lines().enumerate() {
        let Some(before) = line.split("● ● ●").next().filter(|_| line.contains("● ● ●")) else { continue };
        let name = before.trim_matches(|c: char| !c.is_ascii_lowercase()).to_owned();
        let x = before.chars().count();
        let cell = &pixir.screen.buffer()[(u16::try_from(x).expect("fits"), u16::try_from(y).expect("fits"))];
        grounds.insert(name, cell.bg);
    }
    for name in ["auto", "dark", "light", "high-contrast-light", "colour-blind-dark"] {
        assert!(grounds.contains_key(name), "{name} of {grounds:?}:\n{screen}");
    }
    assert_eq!(grounds["auto"], grounds["dark"], "this terminal is dark");
    assert_ne!(grounds["dark"], grounds["light"]);
}

#[test]
fn a_theme_file_reloads_when_written_and_reports_errors() {
    let shell = Shell::new(&[]);
    let themes = shell.home().join(".config/pixir/themes");
    std::fs::create_dir_all(&themes).expect("mkdir");
    let write = |accent: &str| {
        let text = format!("name = \"mine\"\nextends = \"dark\"\n[tokens]\naccent = \"{accent}\"\n");
        std::fs::write(themes.join("mine.toml"), text).expect("write");
    };
    write("#010203");
    let mut terminal = Terminal::start(&shell, &["--theme", "mine"], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.wait_for_bytes("38;2;1;2;3");
    write("no colour");
    terminal.wait_for("the theme mine is not valid: `no colour` of `accent` is not in the palette");
    std::fs::write(themes.join("mine.toml"), "name = \"mine\"\n\n[tokens\n").expect("write");
    terminal.wait_for("the theme mine is not valid: line 3: unclosed table");
    write("#040506");
    terminal.wait_for_bytes("38;2;4;5;6");
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
}

#[test]
fn a_light_terminal_gets_the_light_theme_and_no_color_none() {
    let shell = Shell::new(&[]);
    let binary = env!("CARGO_BIN_EXE_pixir");
    let mut terminal = Terminal::start(&shell, &[], 80, 24);
    terminal.wait_for("Ask pixir");
    terminal.send("\x1b]11;rgb:ffff/ffff/ffff\x1b\\");
    // The background of the light theme.
    terminal.wait_for_bytes("48;2;251;251;250");
    // And back, when the user changes the colour scheme.
    let light = terminal.bytes().len();
    terminal.send("\x1b[?997;1n");
    // The background of the dark theme.
    wait::until("it is dark again", || String::from_utf8_lossy(&terminal.bytes()[light..]).contains("48;2;22;24;29"));
    terminal.send("\x03\x03\x03");
    terminal.end().assert_sane();
    let mut terminal = Terminal::of(&shell, binary.as_ref(), &[], &[("NO_COLOR", "1")], 80, 24);
    terminal.wait_for("No model is connected");
    terminal.send("\x03\x03\x03");
    let left = terminal.end();
    let bytes = String::from_utf8_lossy(&left.bytes).into_owned();
    for colour in ["38;2", "48;2", "38;5", "48;5", "\x1b[3", "\x1b[9"] {
        let mut found = bytes.match_indices(colour).filter(|(at, _)| {
            let rest = &bytes[at + 2..];
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(0);
            rest[end..].starts_with('m') && !rest.starts_with("39m") && rest[..end].len() > 1
        });
        assert_eq!(found.next(), None, "{colour:?}");
    }
}
