//! Every overlay as it is drawn at four sizes, and what changes where there are no colours.

use serde_json::json;

use crate::driver::{Pixir, calls, says, timeless};

const SIZES: [(u16, u16); 4] = [(200, 60), (120, 40), (80, 24), (60, 20)];

/// The overlays of an idle Session, with the keys that open each of them (after a bar those that need its content), and how
/// often Esc leaves it.
const OVERLAYS: [(&str, &str, usize); 34] = [
    ("tree", "<C-t>", 1),
    ("tree-search", "<C-t>/tests<Enter>", 2),
    ("tree-compared", "<C-t>m<Up>d", 2),
    ("sessions-of-the-tree", "<C-t><Tab>", 2),
    ("go-back", "<C-t><Up><Enter>", 2),
    ("diff", "/diff<Enter>", 1),
    ("diff-files", "/diff<Enter>|f", 2),
    ("diff-comment", "/diff<Enter>|jcWhy not a set?", 2),
    ("files", "/files<Enter>", 1),
    ("compaction", "/compact<Enter>", 1),
    ("context", "/context<Enter>", 1),
    ("settings", "/settings<Enter>", 1),
    ("settings-filter", "/settings<Enter>/theme", 2),
    ("models", "/model<Enter>", 1),
    ("effort", "/effort<Enter>", 1),
    ("mode", "/mode<Enter>", 1),
    ("themes", "/theme<Enter>", 1),
    ("skills", "/skill<Enter>", 1),
    ("template", "/review<Enter><Enter>", 1),
    ("sessions", "/sessions<Enter>", 1),
    ("jobs", "/jobs<Enter>", 1),
    ("usage", "/usage<Enter>", 1),
    ("outline", "/outline<Enter>", 1),
    ("plan", "/plan<Enter>", 1),
    ("undo", "/undo<Enter>", 1),
    ("help", "?tree", 2),
    ("keys", "/keys<Enter>", 2),
    ("help-of-a-command", "/help compact<Enter>", 1),
    ("palette", "<C-p>", 1),
    ("slash", "/", 1),
    ("permissions", "/permissions<Enter>", 1),
    ("trust", "/trust<Enter>", 1),
    ("agents", "/agents<Enter>", 1),
    ("workflows", "/workflows<Enter>", 1),
];

/// A trusted workspace, and a conversation with a fork, a plan, and changes of three files.
async fn told() -> Pixir {
    let files = [
        ("slug.py", "TABLE = {}\n\n\ndef slug(text):\n    text = text.lower()\n    return text\n"),
        (".pixir/skills/lint/SKILL.md", "---\nname: lint\ndescription: Runs the linters.\n---\nRun them all.\n"),
        (
            ".pixir/prompts/review.md",
            "---\ndescription: Review a file\narguments: file focus\n---\nReview $1 for $2.\n",
        ),
    ];
    let edit = |old: &str, new: &str| calls("edit", json!({ "path": "slug.py", "old_text": old, "new_text": new }));
    let plan = json!({ "items": [
        { "step": "Find where accents are lost", "status": "completed" },
        { "step": "Keep them", "status": "in_progress" },
        { "step": "Add tests", "status": "pending" },
    ] });
    let long = "The table is asked after the text was decomposed, so it finds nothing. ".repeat(300);
    let steps = vec![
        calls("update_plan", plan),
        edit("TABLE = {}", "TABLE = {\"ä\": \"ae\"}"),
        says(&long),
        calls("write", json!({ "path": "tests/test_slug.py", "content": "assert True\n" })),
        says(&format!("The tests are there.\n\n{long}")),
        edit("text.lower()", "text.lower().translate(TABLE)"),
        says("With a **cache**, a repeated title costs nothing."),
        calls("read", json!({ "path": "slug.py" })),
        edit("    return text\n", "    return text or \"untitled\"\n"),
        says("## Done\n\n- 1.8× faster\n- memory unchanged"),
        edit("text = text.lower()", "text = text.casefold()"),
    ];
    let mut pixir = Pixir::sized(steps, &files, 120, 40);
    // The workspace is trusted, and nothing asks until the end.
    pixir.does("<Down><Enter>").await;
    pixir.does("<S-Tab>").await;
    for prompt in ["Slugs lose accents<Enter>", "Add tests<Enter>", "Make it faster, with a cache<Enter>"] {
        pixir.does(prompt).await;
    }
    pixir.does("<C-t><Up><Enter>").await;
    pixir.does("<Enter>").await;
    pixir.does("Make it faster<Enter>").await;
    pixir.does("<S-Tab><S-Tab>").await;
    assert!(pixir.file("slug.py").contains("untitled"), "the conversation is as it was scripted");
    pixir
}

/// What a screen says, without what depends on the clock, on the folder of the test, or on the size of the tools' texts.
fn steady(name: &str, screen: &str) -> String {
    let screen = timeless(screen);
    let measured = ["context", "compaction", "usage", "models", "settings", "settings-filter"];
    let is_measured = measured.contains(&name);
    let last = screen.lines().count().saturating_sub(1);
    let lines = screen.lines().enumerate().map(|(at, line)| {
        if line.contains("/app/.pixir/") {
            "(the path of the file)".to_owned()
        } else if is_measured || at == last || line.contains("tokens") {
            line.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect()
        } else {
            line.to_owned()
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

async fn open(pixir: &mut Pixir, keys: &str) -> String {
    let mut screen = String::new();
    for part in keys.split('|') {
        screen = pixir.does(part).await;
    }
    screen
}

async fn leave(pixir: &mut Pixir, times: usize) {
    for _ in 0..times {
        pixir.does("<Esc>").await;
    }
    pixir.does("<C-u>").await;
}

/// Broken builds: whatever changes what an overlay shows changes its picture here, which is read before it is accepted.
#[tokio::test]
async fn every_overlay_at_four_sizes() {
    let mut pixir = told().await;
    for (name, keys, depth) in OVERLAYS {
        for (columns, rows) in SIZES {
            pixir.screen.resize(columns, rows);
            let screen = open(&mut pixir, keys).await;
            insta::assert_snapshot!(format!("{name}-{columns}x{rows}"), steady(name, &screen));
            leave(&mut pixir, depth).await;
        }
    }
    // The call that asks: all of it, and the rule for the next ones.
    pixir.does("Fold the case<Enter>").await;
    for (name, keys, depth) in [("approval", "", 0), ("approval-whole", "<Tab><Enter>", 2), ("always", "<A-a>", 1)] {
        for (columns, rows) in SIZES {
            pixir.screen.resize(columns, rows);
            let screen = pixir.does(keys).await;
            insta::assert_snapshot!(format!("{name}-{columns}x{rows}"), steady(name, &screen));
            for _ in 0..depth {
                pixir.does("<Esc>").await;
            }
        }
    }
}

/// Broken builds: what only a colour tells on other terminals is told by nothing on one without colours; a theme changes
/// the words or the places of a screen.
#[tokio::test]
async fn without_colours_every_overlay_says_the_same_and_marks_what_a_colour_told() {
    let mut pixir = told().await;
    pixir.screen.resize(80, 24);
    let mut dark = Vec::new();
    for (name, keys, depth) in OVERLAYS {
        dark.push(steady(name, &open(&mut pixir, keys).await));
        leave(&mut pixir, depth).await;
    }
    for theme in ["light", "mono"] {
        pixir.does(&format!("/theme {theme}<Enter>")).await;
        for ((name, keys, depth), dark) in OVERLAYS.into_iter().zip(&dark) {
            let screen = steady(name, &open(&mut pixir, keys).await);
            // The theme itself is named here, and what was used comes first there.
            if !["settings", "settings-filter", "themes", "palette", "slash"].contains(&name) {
                assert_same(name, theme, dark, &screen);
            }
            if ["tree", "diff"].contains(&name) {
                let coloured = pixir.screen.coloured().replace('\u{1b}', "␛");
                let body: Vec<&str> = coloured.lines().skip(1).take(12).collect();
                insta::assert_snapshot!(format!("{name}-{theme}"), body.join("\n"));
            }
            leave(&mut pixir, depth).await;
        }
    }
}

/// The last line may hold a message about the theme.
fn assert_same(name: &str, theme: &str, dark: &str, screen: &str) {
    let body = |text: &str| text.lines().take(text.lines().count() - 1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(dark), body(screen), "{name} in {theme}");
}
