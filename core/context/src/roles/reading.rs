//! A file as a role. A restriction that pixir cannot enforce makes the role unusable; everything else that does not fit is a
//! finding for its author.

use std::path::PathBuf;

use serde_json::Value;

use super::{Role, RoleKind, RoleOrigin};
use crate::skills::front_matter::{self, Document};
use crate::skills::text::{Text, one_line};
use crate::skills::{Finding, digest_of_bytes};
use crate::tool_names;
use permissions::rules;
use protocol::effort::Effort;
use protocol::event::{AgentContext, Isolation, Mode};
use protocol::trust::Standing;

/// The most bytes of what a role tells its agent.
const MAX_BODY: usize = 16 << 10;
/// The most characters of a description.
const MAX_DESCRIPTION: usize = 300;
/// The most characters of a name.
const MAX_NAME: usize = 28;
/// The most bytes of a schema.
const MAX_SCHEMA: usize = 8 << 10;

/// Reads a file. `stem` is its name without `.md`.
pub(super) fn read(stem: &str, path: PathBuf, origin: RoleOrigin, bytes: std::result::Result<Vec<u8>, String>) -> Role {
    let plain = Role { origin, path: Some(path), ..Role::plain(&one_line(stem, MAX_NAME)) };
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(why) => return Role { standing: Standing::Unusable { why }, ..plain },
    };
    let Text { text, findings } = Text::read(&bytes);
    let document = front_matter::read(&text);
    let mut reading = Reading {
        role: Role { digest: Some(digest_of_bytes(&bytes)), findings, ..plain },
        invalid: None,
        has_name: false,
        without: Vec::new(),
        patterns: Vec::new(),
        any_command: false,
    };
    reading.role.findings.extend(document.findings.iter().cloned());
    reading.fields(&document);
    reading.whole(&document)
}

struct Reading {
    role: Role,
    /// Why the role cannot be used.
    invalid: Option<String>,
    has_name: bool,
    /// Tools that it must not have.
    without: Vec<&'static str>,
    /// Commands that an entry of its tools names.
    patterns: Vec<String>,
    /// An entry of its tools leaves all commands.
    any_command: bool,
}

impl Reading {
    fn refuse(&mut self, why: impl Into<String>) {
        self.invalid.get_or_insert(why.into());
    }

    fn note(&mut self, line: usize, message: impl Into<String>, fix: &str) {
        self.role.findings.push(Finding::note(line, message, fix));
    }

    fn fault(&mut self, line: usize, message: impl Into<String>, fix: &str) {
        self.role.findings.push(Finding::fault(line, message, fix));
    }

    fn fields(&mut self, document: &Document) {
        for (key, value) in &document.fields {
            let line = document.lines.get(key).copied().unwrap_or(1);
            if value.is_null() {
                continue;
            }
            match key.replace('-', "_").to_lowercase().as_str() {
                "name" => self.name(value),
                "description" => self.description(line, value),
                "kind" => match value.as_str() {
                    Some("child") => self.role.kind = RoleKind::Child,
                    Some("primary") => self.role.kind = RoleKind::Primary,
                    Some("both") => self.role.kind = RoleKind::Both,
                    Some(_) | None => self.refuse("`kind` is none of child, primary, both"),
                },
                "mode" => self.mode(value),
                "permissionmode" | "permission_mode" => self.permission_mode(line, value),
                "permission" => self.permission(value),
                "readonly" | "read_only" => match value {
                    Value::Bool(true) => self.role.mode = Some(Mode::ReadOnly),
                    Value::Bool(false) => {}
                    _ => self.refuse("`readonly` is neither true nor false"),
                },
                "tools" => self.tools(line, value),
                "disallowedtools" | "disallowed_tools" => self.disallowed(value),
                "hooks" => self.hooks(line, value),
                "commands" => self.commands(value),
                "writes" => self.writes(value),
                "web" => match value {
                    Value::Bool(web) => self.role.web = Some(*web),
                    _ => self.refuse("`web` is neither true nor false"),
                },
                "model" => self.model(line, value),
                "effort" => match value.as_str().map(Effort::parse) {
                    Some(Ok(effort)) => self.role.effort = Some(effort.name().to_owned()),
                    Some(Err(_)) | None => {
                        self.fault(line, "`effort` is no effort", "none, minimal, low, medium, high, xhigh or max");
                    }
                },
                "isolation" => match value.as_str() {
                    Some("shared") => self.role.isolation = Some(Isolation::Shared),
                    Some("copy" | "worktree") => self.role.isolation = Some(Isolation::Copy),
                    Some("scratch") => self.role.isolation = Some(Isolation::Scratch),
                    other => {
                        let named = one_line(other.unwrap_or("this"), 40);
                        self.refuse(format!("its isolation, {named}, is none of shared, copy and scratch"));
                    }
                },
                "context" => match value.as_str() {
                    Some("none") => {}
                    Some("fork") => self.role.context = AgentContext::Fork,
                    _ => self.fault(line, "`context` is neither none nor fork", "none: it knows only its task"),
                },
                "limits" => self.limits(value),
                "maxturns" | "max_turns" | "steps" | "maxsteps" | "max_steps" => {
                    let given = self.count(key, value).and_then(|n| u32::try_from(n).ok());
                    self.role.limits.rounds = given.or(self.role.limits.rounds);
                }
                "spawns" => match names(value) {
                    Some(names) => self.role.spawns = Some(names),
                    None => self.refuse("`spawns` must be a list of roles"),
                },
                "schema" => self.schema(value),
                "skills" => match names(value) {
                    Some(names) => self.role.skills = names,
                    None => self.fault(line, "`skills` must be a list of names", "skills: [name, name]"),
                },
                "disable" | "disabled" => match value {
                    Value::Bool(false) => {}
                    _ => self.refuse("its file disables it"),
                },
                _ => {
                    let message = format!("`{}` has no effect here", one_line(key, 64));
                    self.note(line, message, "other programs may use it; it may stay");
                }
            }
        }
    }

    fn whole(mut self, document: &Document) -> Role {
        if !self.has_name {
            self.fault(1, "`name` is missing; the file's name is taken", "name: what the file is called");
            let stem = self.role.name.clone();
            self.check_name(&stem);
        }
        if self.role.description.is_empty() {
            self.refuse("it has no description, by which a model could choose it");
        }
        self.role.body = document.body.trim().to_owned();
        if self.role.body.len() > MAX_BODY {
            self.refuse(format!("its text is longer than {} KB", MAX_BODY >> 10));
        }
        if !self.patterns.is_empty() && !self.any_command {
            let patterns = std::mem::take(&mut self.patterns);
            let commands = self.role.commands.get_or_insert_with(Vec::new);
            commands.extend(patterns);
        }
        if !self.without.is_empty() {
            let all = || tool_names::NAMES.map(str::to_owned).to_vec();
            let tools = self.role.tools.get_or_insert_with(all);
            tools.retain(|tool| !self.without.iter().any(|without| without == tool));
        }
        if let Some(why) = self.invalid {
            self.role.standing = Standing::Unusable { why };
        }
        self.role
    }

    fn name(&mut self, value: &Value) {
        self.has_name = true;
        let name = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        self.check_name(&name);
        self.role.name = one_line(&name, MAX_NAME);
    }

    fn check_name(&mut self, name: &str) {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_plain) && !name.starts_with('-');
        if !fits {
            self.refuse(format!("its name is not up to {MAX_NAME} of a-z, 0-9 and -"));
        }
    }

    fn description(&mut self, line: usize, value: &Value) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if text.chars().count() > MAX_DESCRIPTION {
            self.fault(line, "`description` is longer than 300 characters, and was cut", "say it shorter");
        }
        self.role.description = one_line(&text, MAX_DESCRIPTION);
    }

    fn mode(&mut self, value: &Value) {
        match value.as_str() {
            // Other programs say with it whom the role is for.
            Some("subagent") => self.role.kind = RoleKind::Child,
            Some("primary") => self.role.kind = RoleKind::Primary,
            Some("all") => self.role.kind = RoleKind::Both,
            Some("plan") => self.stricter(Mode::ReadOnly),
            Some(name) => match Mode::parse(name) {
                Ok(mode) => self.stricter(mode),
                Err(_) => self.refuse(format!("there is no mode `{}`", one_line(name, 40))),
            },
            None => self.refuse("`mode` is none of read-only, ask, auto"),
        }
    }

    fn stricter(&mut self, mode: Mode) {
        self.role.mode = Some(self.role.mode.map_or(mode, |before| before.stricter(mode)));
    }

    fn permission_mode(&mut self, line: usize, value: &Value) {
        match value.as_str() {
            Some("default") => {}
            Some("plan") => self.stricter(Mode::ReadOnly),
            Some(name @ ("bypassPermissions" | "acceptEdits" | "dontAsk" | "auto")) => {
                let message = format!("`permissionMode: {name}` is dropped: a role grants nothing");
                self.note(line, message, "the mode and the user's rules decide what runs without asking");
            }
            other => {
                let name = one_line(other.unwrap_or("this"), 40);
                self.refuse(format!("`permissionMode: {name}` cannot be enforced"));
            }
        }
    }

    /// A map of permissions, as opencode writes it.
    fn permission(&mut self, value: &Value) {
        let Some(map) = value.as_object() else {
            return match value.as_str() {
                Some("allow" | "ask") => {}
                Some(_) | None => self.refuse("`permission` cannot be enforced"),
            };
        };
        for (what, how) in map {
            match (what.as_str(), how) {
                (_, Value::String(how)) if how == "allow" || how == "ask" => {}
                // The shell can edit too, so all that changes something is refused.
                ("edit" | "write", Value::String(how)) if how == "deny" => self.stricter(Mode::ReadOnly),
                ("bash", Value::String(how)) if how == "deny" => self.without_tool("bash"),
                ("webfetch" | "websearch", Value::String(how)) if how == "deny" => {}
                ("bash", Value::Object(patterns)) => {
                    for (pattern, how) in patterns {
                        match how.as_str() {
                            Some("allow" | "ask") if pattern == "*" => self.any_command = true,
                            Some("deny") if pattern == "*" => {}
                            Some("allow" | "ask") => self.pattern(pattern),
                            Some(_) | None => {
                                let pattern = one_line(pattern, 60);
                                self.refuse(format!("`permission.bash` with a deny of `{pattern}` cannot be enforced"));
                            }
                        }
                    }
                }
                (what, _) => match tool_names::known(what) {
                    Some(tool) if how == "deny" => self.without_tool(tool),
                    Some(_) | None => {
                        self.refuse(format!("`permission.{}` cannot be enforced", one_line(what, 40)));
                    }
                },
            }
        }
    }

    /// A role without one tool that changes files has none of them: what it must not do with `edit`, it would do with
    /// `apply_patch`.
    fn without_tool(&mut self, tool: &'static str) {
        if tool_names::CHANGE_FILES.contains(&tool) {
            self.without.extend(tool_names::CHANGE_FILES);
        } else {
            self.without.push(tool);
        }
    }

    /// A hook that runs before a tool can refuse the call, and pixir does not run it. One that runs afterwards restricts nothing.
    fn hooks(&mut self, line: usize, value: &Value) {
        let restricts = |event: &str| !matches!(event, "PostToolUse" | "Stop" | "SubagentStop" | "SessionEnd");
        match value.as_object() {
            Some(map) => match map.keys().find(|event| restricts(event)) {
                Some(event) => self.refuse(format!("`hooks` with {} cannot be enforced", one_line(event, 40))),
                None => self.note(line, "`hooks` has no effect here", "other programs may use it; it may stay"),
            },
            None => self.refuse("`hooks` cannot be enforced"),
        }
    }

    fn tools(&mut self, line: usize, value: &Value) {
        let entries: Vec<String> = match value {
            // opencode turns single tools off.
            Value::Object(map) if map.values().all(Value::is_boolean) => {
                for (name, is_on) in map {
                    match tool_names::known(name) {
                        Some(tool) if *is_on == false => {
                            self.without_tool(tool);
                            // Without it the shell could still change files.
                            if tool_names::CHANGE_FILES.contains(&tool) {
                                self.stricter(Mode::ReadOnly);
                            }
                        }
                        None if *is_on == false && name.contains('*') => {
                            self.refuse(format!("`tools` with `{}: false` cannot be enforced", one_line(name, 40)));
                        }
                        Some(_) | None => {}
                    }
                }
                return;
            }
            other => match entries(other) {
                Some(entries) => entries,
                None => return self.refuse("`tools` must be a list of tools"),
            },
        };
        if entries.iter().any(|entry| entry == "*") {
            return;
        }
        let mut tools: Vec<&'static str> = Vec::new();
        let mut unknown: Vec<String> = Vec::new();
        for entry in &entries {
            let (name, inside) = match entry.split_once('(') {
                Some((name, rest)) => (name.trim(), Some(rest.strip_suffix(')').unwrap_or(rest).trim())),
                None => (entry.as_str(), None),
            };
            let Some(tool) = tool_names::known(name) else {
                unknown.push(one_line(entry, 60));
                continue;
            };
            match (tool, inside) {
                ("bash", Some("" | "*") | None) => self.any_command = true,
                ("bash", Some(pattern)) => self.pattern(pattern),
                ("spawn_agent", Some(inside)) => {
                    self.role.spawns = Some(inside.split(',').map(|it| it.trim().to_owned()).collect());
                }
                (tool, Some(glob)) if tool_names::CHANGE_FILES.contains(&tool) => self.write(glob),
                (_, None) => {}
                (_, Some(_)) => {
                    self.refuse(format!("`{}` cannot be enforced", one_line(entry, 60)));
                }
            }
            match tool {
                "bash" => tools.extend(["bash", "job_output", "job_kill"]),
                "spawn_agent" => tools.extend(["spawn_agent", "wait_agent", "tell_agent", "show_agent"]),
                tool => tools.push(tool),
            }
        }
        if !unknown.is_empty() {
            let message = format!("there are no such tools here: {}", unknown.join(", "));
            self.note(line, message, "the role goes without them");
        }
        if tools.is_empty() && !entries.is_empty() {
            self.refuse("none of its tools exists here");
        }
        tools.sort_unstable();
        tools.dedup();
        self.role.tools = Some(tools.into_iter().map(str::to_owned).collect());
    }

    fn disallowed(&mut self, value: &Value) {
        let Some(entries) = entries(value) else { return self.refuse("`disallowedTools` must be a list of tools") };
        for entry in entries {
            match tool_names::known(&entry) {
                Some(tool) => self.without_tool(tool),
                None if entry.contains('(') => {
                    self.refuse(format!("`disallowedTools` with {} cannot be enforced", one_line(&entry, 60)));
                }
                // What is not there cannot be called.
                None => {}
            }
        }
    }

    /// A pattern in the form of another program: `git diff:*`.
    fn pattern(&mut self, written: &str) {
        let pattern = match written.strip_suffix(":*") {
            Some(before) => format!("{} *", before.trim()),
            None => written.trim().to_owned(),
        };
        match rules::check_pattern(&pattern) {
            Ok(()) => self.patterns.push(pattern),
            Err((why, _)) => self.refuse(format!("`{}` cannot be enforced: {why}", one_line(written, 60))),
        }
    }

    fn commands(&mut self, value: &Value) {
        let list = match value {
            Value::Array(items) => items.iter().map(|it| it.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>(),
            Value::String(one) => Some(vec![one.clone()]),
            _ => None,
        };
        let Some(list) = list else { return self.refuse("`commands` must be a list of commands") };
        for command in &list {
            if let Err((why, _)) = rules::check_pattern(command) {
                self.refuse(format!("the command `{}` cannot be enforced: {why}", one_line(command, 60)));
            }
        }
        self.role.commands.get_or_insert_with(Vec::new).extend(list);
    }

    fn writes(&mut self, value: &Value) {
        self.role.writes.get_or_insert_with(Vec::new);
        match value {
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).for_each(|glob| self.write(glob));
            }
            Value::String(glob) => self.write(glob),
            _ => self.refuse("`writes` must be a list of paths"),
        }
    }

    fn write(&mut self, glob: &str) {
        if rules::is_path_glob(glob.trim()) {
            self.role.writes.get_or_insert_with(Vec::new).push(glob.trim().to_owned());
        } else {
            self.refuse(format!("`writes` with `{}` cannot be enforced", one_line(glob, 60)));
        }
    }

    fn model(&mut self, line: usize, value: &Value) {
        match value.as_str() {
            Some("inherit" | "") => {}
            Some(model) if model.contains('/') && model.len() <= 200 => self.role.model = Some(model.to_owned()),
            Some(model) => {
                let message = format!("the model `{}` names no provider, so the parent's answers", one_line(model, 40));
                self.note(line, message, "write provider/model");
            }
            None => self.fault(line, "`model` is no text", "write provider/model"),
        }
    }

    fn limits(&mut self, value: &Value) {
        let Some(map) = value.as_object() else { return self.refuse("`limits` has no keys with numbers") };
        for (key, value) in map {
            let Some(n) = self.count(&format!("limits.{key}"), value) else { continue };
            let limits = &mut self.role.limits;
            match key.as_str() {
                "rounds" => limits.rounds = Some(u32::try_from(n).unwrap_or(u32::MAX)),
                "tokens" => limits.tokens = Some(n),
                "seconds" => limits.seconds = Some(n),
                _ => self.refuse(format!("`limits.{}` cannot be enforced", one_line(key, 40))),
            }
        }
    }

    fn count(&mut self, key: &str, value: &Value) -> Option<u64> {
        let n = value.as_u64().filter(|n| *n > 0);
        if n.is_none() {
            self.refuse(format!("`{}` is no number above 0", one_line(key, 40)));
        }
        n
    }

    fn schema(&mut self, value: &Value) {
        let is_object = value["type"] == "object" && value["properties"].is_object();
        if is_object && value.to_string().len() <= MAX_SCHEMA {
            self.role.schema = Some(value.clone());
        } else {
            let why = "`schema` is no JSON Schema of an object with properties, of at most 8 KB";
            self.refuse(why);
        }
    }
}

/// Names in a list, or separated by commas.
fn names(value: &Value) -> Option<Vec<String>> {
    entries(value)
}

/// Entries of a list, or of a text with commas; a comma in parentheses belongs to its entry.
fn entries(value: &Value) -> Option<Vec<String>> {
    let text = match value {
        Value::Array(items) => return items.iter().map(|it| it.as_str().map(|it| it.trim().to_owned())).collect(),
        Value::String(text) => text,
        _ => return None,
    };
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c == ','
    });
    Some(parts.map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(fields: &str) -> Role {
        let text = format!("---\nname: r\ndescription: d\n{fields}\n---\nDo it.\n");
        read("r", "r.md".into(), RoleOrigin::User, Ok(text.into_bytes()))
    }

    fn why(fields: &str) -> String {
        match role(fields).standing {
            Standing::Unusable { why } => why,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn files_of_other_programs_keep_their_restrictions_and_lose_what_they_grant() {
        let it = role("tools: Read, Grep, Bash(git diff:*), Bash(npm run test)\nmodel: sonnet\ncolor: red");
        assert!(it.is_active(), "{it:?}");
        assert_eq!(
            it.tools.as_deref(),
            Some(&["bash", "grep", "job_kill", "job_output", "read"].map(String::from)[..])
        );
        assert_eq!(it.commands.as_deref(), Some(&["git diff *", "npm run test"].map(String::from)[..]));
        assert_eq!(it.findings.len(), 2, "the model, the colour: {:?}", it.findings);
        let it = role("permissionMode: bypassPermissions");
        assert_eq!((it.mode, it.is_active()), (None, true));
        assert!(it.findings[0].message.contains("is dropped: a role grants nothing"), "{:?}", it.findings);
        let it = role("mode: subagent\npermission:\n  edit: deny\n  bash:\n    \"*\": deny\n    \"git log *\": allow");
        assert_eq!((it.kind, it.mode), (RoleKind::Child, Some(Mode::ReadOnly)));
        assert_eq!(it.commands.as_deref(), Some(&["git log *".to_owned()][..]));
        let it = role("tools:\n  write: false\n  edit: false");
        assert_eq!(it.mode, Some(Mode::ReadOnly), "the shell writes too");
        let it = role("disallowedTools: Bash");
        assert!(it.tools.as_ref().is_some_and(|it| !it.contains(&"bash".into()) && it.contains(&"edit".into())));
        for fields in
            ["disallowedTools: Write, Edit, MultiEdit, Bash", "disallowedTools: [Edit]", "disallowedTools: Write"]
        {
            let it = role(fields);
            let has = |tool: &&str| it.tools.as_ref().is_some_and(|all| all.iter().any(|it| it == tool));
            let left: Vec<&str> = tool_names::CHANGE_FILES.into_iter().filter(has).collect();
            assert_eq!(left, [""; 0], "{fields}: what one of them must not do, another would");
        }
        let it = role("hooks:\n  PostToolUse: []");
        assert!(it.is_active() && it.findings[0].message.contains("`hooks` has no effect"), "{it:?}");
        let it = role("tools: [Edit(docs/**), Read]\nmaxTurns: 5");
        assert_eq!((it.writes.as_deref(), it.limits.rounds), (Some(&["docs/**".to_owned()][..]), Some(5)));
        let it = role("tools: Bash, Bash(git diff:*)");
        assert_eq!(it.commands, None, "the plain entry leaves all commands");
    }

    #[test]
    fn a_restriction_that_cannot_be_enforced_makes_the_role_unusable_and_says_why() {
        for (fields, part) in [
            ("mode: careful", "no mode `careful`"),
            ("mode: [ask]", "none of read-only, ask, auto"),
            ("tools: 5", "must be a list of tools"),
            ("tools: [Read(src/**)]", "`Read(src/**)` cannot be enforced"),
            ("tools: [WebFetch]", "none of its tools exists"),
            ("commands: [\"*\"]", "program of a rule cannot be a pattern"),
            ("commands: [\"git diff; rm\"]", "joins or redirects"),
            ("commands: [5]", "must be a list of commands"),
            ("tools: [\"Bash(git $X:*)\"]", "holds an expansion"),
            ("disallowedTools: [\"Bash(rm:*)\"]", "cannot be enforced"),
            (
                "hooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks: []",
                "`hooks` with PreToolUse cannot be enforced",
            ),
            ("hooks: true", "`hooks` cannot be enforced"),
            ("writes: [\"../x\"]", "cannot be enforced"),
            ("writes: 3", "must be a list of paths"),
            ("web: maybe", "neither true nor false"),
            ("isolation: container", "is none of shared, copy and scratch"),
            ("limits:\n  dollars: 3", "`limits.dollars` cannot be enforced"),
            ("limits:\n  rounds: -1", "no number above 0"),
            ("permissionMode: strictest", "cannot be enforced"),
            ("permission:\n  bash:\n    \"rm *\": deny\n    \"*\": allow", "cannot be enforced"),
            ("permission:\n  external_directory: deny", "`permission.external_directory` cannot be enforced"),
            ("spawns: 3", "must be a list of roles"),
            ("schema:\n  type: array", "no JSON Schema of an object"),
            ("kind: boss", "none of child, primary, both"),
            ("name: Bad Name", "not up to"),
            ("disable: true", "disables it"),
        ] {
            assert!(why(fields).contains(part), "{fields}: {}", why(fields));
        }
        let long = format!("---\nname: r\ndescription: d\n---\n{}", "x".repeat(MAX_BODY + 1));
        let it = read("r", "r.md".into(), RoleOrigin::User, Ok(long.into_bytes()));
        assert!(matches!(&it.standing, Standing::Unusable { why } if why.contains("16 KB")), "{:?}", it.standing);
        let bare = read("r", "r.md".into(), RoleOrigin::User, Ok(b"Only text.".to_vec()));
        assert!(matches!(&bare.standing, Standing::Unusable { why } if why.contains("no description")));
    }
}
