//! One `SKILL.md` after the other, each with the reading that it must have.

use super::super::Weight;
use super::super::found::Loaded;
use super::read;

/// One file: what it is called in the table, its bytes, and the reading that it must have in a folder named `review`.
struct Case {
    about: &'static str,
    bytes: Vec<u8>,
    name: &'static str,
    description: &'static str,
    /// The text after the front matter, without blank lines around it.
    body: &'static str,
    /// Parts of the faults, in the order of their lines. Notes do not count.
    faults: &'static [&'static str],
}

fn case(
    about: &'static str,
    text: impl Into<Vec<u8>>,
    (name, description, body): (&'static str, &'static str, &'static str),
    faults: &'static [&'static str],
) -> Case {
    Case { about, bytes: text.into(), name, description, body, faults }
}

const NOT_YAML: &str = "not valid YAML";
const NO_NAME: &str = "there is no `name`";
const NO_DESCRIPTION: &str = "there is no `description`";

fn corpus() -> Vec<Case> {
    let good = ("review", "Reads a diff", "Look.");
    let long = "x".repeat(2_000);
    let deep = format!(
        "---\nname: review\ndescription: Reads a diff\nmetadata: {}1{}\n---\nLook.",
        "[".repeat(200),
        "]".repeat(200)
    );
    let bomb = "---\nname: review\ndescription: Reads a diff\na: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d]\n---\nLook.";
    vec![
        case("as the format wants it", "---\nname: review\ndescription: Reads a diff\n---\nLook.\n", good, &[]),
        case(
            "all fields",
            "---\nname: review\ndescription: Reads a diff\nlicense: MIT\ncompatibility: needs git\nmetadata:\n  author: me\n  version: \"1.0\"\nallowed-tools: Read Bash(git:*)\ndisable-model-invocation: false\nuser-invocable: true\nargument-hint: \"[file]\"\n---\nLook.",
            good,
            &[],
        ),
        case(
            "unknown fields",
            "---\nname: review\ndescription: Reads a diff\nplugin: x\nversion: 1.2\nmodel: opus\ntags: [a, b]\ncontext: fork\neffort: high\ncolor: red\n---\nLook.",
            good,
            &[],
        ),
        case("folded description", "---\nname: review\ndescription: >-\n  Reads\n  a diff\n---\nLook.", good, &[]),
        case("literal description", "---\nname: review\ndescription: |\n  Reads\n  a diff\n---\nLook.", good, &[]),
        case("kept line ends", "---\nname: review\ndescription: |+\n  Reads a diff\n\n---\nLook.", good, &[]),
        case("quoted values", "---\nname: 'review'\ndescription: \"Reads a diff\"\n---\nLook.", good, &[]),
        case("quoted keys", "---\n\"name\": review\n\"description\": Reads a diff\n---\nLook.", good, &[]),
        case("a comment", "---\n# of mine\nname: review # short\ndescription: Reads a diff\n---\nLook.", good, &[]),
        case("blanks behind the fences", "---  \nname: review\ndescription: Reads a diff\n--- \t\nLook.", good, &[]),
        case("ended by dots", "---\nname: review\ndescription: Reads a diff\n...\nLook.", good, &[]),
        case("CRLF", "---\r\nname: review\r\ndescription: Reads a diff\r\n---\r\nLook.\r\n", good, &[]),
        case("CR alone", "---\rname: review\rdescription: Reads a diff\r---\rLook.\r", good, &[]),
        case(
            "a byte order mark",
            "\u{feff}---\nname: review\ndescription: Reads a diff\n---\nLook.",
            good,
            &["byte order mark"],
        ),
        case(
            "a rule in the body",
            "---\nname: review\ndescription: Reads a diff\n---\nLook.\n\n---\nmore",
            ("review", "Reads a diff", "Look.\n\n---\nmore"),
            &[],
        ),
        case("when_to_use", "---\nname: review\ndescription: Reads\nwhen_to_use: a diff\n---\nLook.", good, &[]),
        case(
            "blank lines before the fence",
            "\n\n---\nname: review\ndescription: Reads a diff\n---\nLook.",
            good,
            &["begins late"],
        ),
        case(
            "a colon in the description",
            "---\nname: review\ndescription: Use when: asked\n---\nLook.",
            ("review", "Use when: asked", "Look."),
            &[NOT_YAML],
        ),
        case(
            "bold text in the description",
            "---\nname: review\ndescription: **Reads** a diff\n---\nLook.",
            ("review", "**Reads** a diff", "Look."),
            &[NOT_YAML],
        ),
        case(
            "a description that begins with a star",
            "---\nname: review\ndescription: * reads\n---\nLook.",
            ("review", "* reads", "Look."),
            &[NOT_YAML],
        ),
        case(
            "a description that begins with an at sign",
            "---\nname: review\ndescription: @reads\n---\nLook.",
            ("review", "@reads", "Look."),
            &[NOT_YAML],
        ),
        case(
            "a description in backticks",
            "---\nname: review\ndescription: `reads` it\n---\nLook.",
            ("review", "`reads` it", "Look."),
            &[NOT_YAML],
        ),
        case(
            "an open quote",
            "---\nname: review\ndescription: \"Reads a diff\nlicense: MIT\n---\nLook.",
            good,
            &[NOT_YAML],
        ),
        case(
            "text behind a quote",
            "---\nname: review\ndescription: \"Reads\" a diff\n---\nLook.",
            ("review", "Reads\" a diff", "Look."),
            &[NOT_YAML],
        ),
        case(
            "two lists as a hint",
            "---\nname: review\ndescription: Reads a diff\nargument-hint: [from] [to]\n---\nLook.",
            good,
            &[NOT_YAML],
        ),
        case("a tab as indentation", "---\nname: review\ndescription:\n\tReads a diff\n---\nLook.", good, &[NOT_YAML]),
        case(
            "a line that goes on at the margin",
            "---\nname: review\ndescription: Reads\na diff\n---\nLook.",
            good,
            &[NOT_YAML],
        ),
        case(
            "a colon in a folded block is fine",
            "---\nname: review\ndescription: >\n  Use when: asked\n---\nLook.",
            ("review", "Use when: asked", "Look."),
            &[],
        ),
        case(
            "a folded block beside a broken field",
            "---\nname: review\nnote: a: b\ndescription: >-\n  Reads\n  a diff\n---\nLook.",
            good,
            &[NOT_YAML],
        ),
        case("no blank behind the colon", "---\nname:review\ndescription:Reads a diff\n---\nLook.", good, &[NOT_YAML]),
        case("never closed", "---\nname: review\ndescription: Reads a diff\n\nLook.", good, &["never closed"]),
        case(
            "never closed, a heading",
            "---\nname: review\ndescription: Reads a diff\n# Look.",
            ("review", "Reads a diff", "# Look."),
            &["never closed"],
        ),
        case(
            "never closed, a rule below",
            "---\nname: review\ndescription: Reads a diff\n\nLook: hard.\nAnd more.\n\nText.\n---\nmore",
            ("review", "Reads a diff", "Look: hard.\nAnd more.\n\nText.\n---\nmore"),
            &["never closed"],
        ),
        case("nothing but a fence", "---", ("review", "", ""), &["never closed", NO_NAME, NO_DESCRIPTION, "no text"]),
        case(
            "no front matter",
            "# Reads a diff\nLook.",
            ("review", "Reads a diff", "# Reads a diff\nLook."),
            &["no front matter", NO_NAME, NO_DESCRIPTION],
        ),
        case("an empty file", "", ("review", "", ""), &["is empty", NO_NAME, NO_DESCRIPTION, "no text"]),
        case("an empty front matter", "---\n---\nLook.", ("review", "Look.", "Look."), &[NO_NAME, NO_DESCRIPTION]),
        case(
            "a front matter that is a text",
            "---\njust text\n---\nLook.",
            ("review", "Look.", "Look."),
            &[NO_NAME, NO_DESCRIPTION, NOT_YAML],
        ),
        case(
            "a front matter that is a list",
            "---\n- name\n- description\n---\nLook.",
            ("review", "Look.", "Look."),
            &[NO_NAME, NO_DESCRIPTION, NOT_YAML],
        ),
        case(
            "no text",
            "---\nname: review\ndescription: Reads a diff\n---\n",
            ("review", "Reads a diff", ""),
            &["no text"],
        ),
        case("no name", "---\ndescription: Reads a diff\n---\nLook.", good, &[NO_NAME]),
        case("an empty name", "---\nname:\ndescription: Reads a diff\n---\nLook.", good, &[NO_NAME]),
        case(
            "no description",
            "---\nname: review\n---\n## Reads a diff\n",
            ("review", "Reads a diff", "## Reads a diff"),
            &[NO_DESCRIPTION],
        ),
        case(
            "a name that is a number",
            "---\nname: 8004\ndescription: Reads a diff\n---\nLook.",
            ("8004", "Reads a diff", "Look."),
            &["is no text", "not that of its folder"],
        ),
        case(
            "a name that other YAML takes for false",
            "---\nname: no\ndescription: yes\n---\nLook.",
            ("no", "yes", "Look."),
            &["not that of its folder"],
        ),
        case(
            "a name with capitals and blanks",
            "---\nname: Code Review\ndescription: Reads a diff\n---\nLook.",
            ("Code Review", "Reads a diff", "Look."),
            &["holds `C`", "not that of its folder"],
        ),
        case(
            "a name in Chinese",
            "---\nname: 审查\ndescription: Reads a diff\n---\nLook.",
            ("审查", "Reads a diff", "Look."),
            &["not that of its folder"],
        ),
        case(
            "a name with an underscore and a letter that is no small one",
            "---\nname: re_vİew\ndescription: Reads a diff\n---\nLook.",
            ("re_vİew", "Reads a diff", "Look."),
            &["holds `_`", "not that of its folder"],
        ),
        case(
            "a description that is a list",
            "---\nname: review\ndescription:\n  - Reads\n  - a diff\n---\nLook.",
            ("review", "Reads, a diff", "Look."),
            &["is a list"],
        ),
        case(
            "a description that is a map",
            "---\nname: review\ndescription:\n  reads: a diff\n---\nLook.",
            ("review", "Look.", "Look."),
            &["is a map", NO_DESCRIPTION],
        ),
        case(
            "a name twice",
            "---\nname: other\ndescription: Reads a diff\nname: review\n---\nLook.",
            good,
            &["is there twice"],
        ),
        case(
            "nested names are not the skill's",
            "---\nname: review\ndescription: Reads a diff\nmetadata:\n  name: other\n  deep:\n    description: no\n---\nLook.",
            good,
            &[],
        ),
        case(
            "a flag as a word",
            "---\nname: review\ndescription: Reads a diff\nuser-invocable: \"yes\"\n---\nLook.",
            good,
            &["not written as true"],
        ),
        case(
            "a flag that is none",
            "---\nname: review\ndescription: Reads a diff\ndisable-model-invocation: maybe\n---\nLook.",
            good,
            &["neither true nor false"],
        ),
        case(
            "fields in other letters",
            "---\nName: review\nDescription: Reads a diff\nallowed_tools: Read\n---\nLook.",
            good,
            &["write", "write", "write"],
        ),
        case(
            "metadata that is no map",
            "---\nname: review\ndescription: Reads a diff\nmetadata: 1\n---\nLook.",
            good,
            &["is no map"],
        ),
        case(
            "a long description",
            format!("---\nname: review\ndescription: {long}\n---\nLook."),
            ("review", "", "Look."),
            &["longer than 1024"],
        ),
        case(
            "not UTF-8",
            b"---\nname: review\ndescription: Reads a diff\n---\nLook\xff.".to_vec(),
            ("review", "Reads a diff", "Look\u{ff}."),
            &["the file is Latin-1"],
        ),
        case(
            "a NUL byte",
            "---\nname: review\ndescription: Reads\0 a diff\n---\nLook.",
            good,
            &["control or invisible"],
        ),
        case(
            "terminal sequences",
            "---\nname: review\ndescription: \"Reads \\e[31ma\\e[0m diff\"\n---\nLook\u{1b}]0;x\u{7}.",
            ("review", "Reads a diff", "Look]0;x."),
            &["control or invisible"],
        ),
        case(
            "reordered and invisible characters",
            "---\nname: \"re\u{202e}view\"\ndescription: Reads\u{200b} a\u{e0041} diff\n---\nLook.",
            ("re\\u{202e}view", "Reads\\u{200b} a diff", "Look."),
            &["holds `\\\\`", "not that of its folder", "control or invisible"],
        ),
        case("lists in lists without end", deep, good, &[NOT_YAML, "is no map"]),
        case("a few anchors that stand for many values", bomb, good, &[NOT_YAML]),
        case(
            "tools that it wants",
            "---\nname: review\ndescription: Reads a diff\nallowed-tools: Bash(*)\n---\nLook.",
            good,
            &[],
        ),
        case(
            "a command that it wants to run",
            "---\nname: review\ndescription: Reads a diff\n---\n!`touch BOOBY`",
            ("review", "Reads a diff", "!`touch BOOBY`"),
            &[],
        ),
    ]
}

#[test]
fn every_file_is_read_and_its_faults_are_told() {
    let all = corpus();
    assert!(all.len() >= 60, "{}", all.len());
    let mut wrong = Vec::new();
    for it in &all {
        let Loaded { skill, body, .. } = read(&it.bytes);
        let faults: Vec<String> = skill
            .findings
            .iter()
            .filter(|it| it.weight == Weight::Fault)
            .map(|it| format!("{it}; {}", it.fix))
            .collect();
        let mut wanted: Vec<&str> = it.faults.to_vec();
        let unexpected: Vec<&String> = faults
            .iter()
            .filter(|fault| {
                let at = wanted.iter().position(|part| fault.contains(part));
                at.map(|at| wanted.remove(at)).is_none()
            })
            .collect();
        let is_description = it.description.is_empty() || skill.description == it.description;
        if skill.name != it.name
            || !is_description
            || body.trim() != it.body
            || !unexpected.is_empty()
            || !wanted.is_empty()
        {
            wrong.push(format!(
                "{}: name {:?}, description {:?}, body {body:?}\n  faults {faults:?}\n  missing {wanted:?}",
                it.about, skill.name, skill.description
            ));
        }
        let shown = [&skill.name, &skill.description];
        assert!(
            shown.iter().all(|text| !text.contains(['\u{1b}', '\n', '\u{202e}', '\u{200b}', '\0'])),
            "{}",
            it.about
        );
    }
    assert!(wrong.is_empty(), "{} of {} files:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}
