//! What only the user can decide, as questions to the client: approvals and forms.

use std::collections::BTreeMap;

use pixir_core::event::{Approval, Confirmation, Form, Preview, Question, RestorePreview, Rule, Scope};
use pixir_core::rules;
use pixir_core::text::clean::{visible, visible_command};
use pixir_core::trust::TrustAnswer;
use pixir_core::{Decision, Input};
use serde_json::{Value, json};

use super::projection::Projection;

/// The ids of the options, as pixir reads them back.
pub(super) const ONCE: &str = "allow_once";
const ALWAYS: &str = "allow_always";
const NO: &str = "reject_once";
const NEVER: &str = "reject_always";

fn option(id: &str, kind: &str, name: &str) -> Value {
    json!({ "optionId": id, "kind": kind, "name": name })
}

/// The option that the user chose; none for every other answer.
pub(super) fn chosen(answer: Option<&Value>) -> Option<&str> {
    let outcome = &answer?["outcome"];
    (outcome["outcome"] == "selected").then(|| outcome["optionId"].as_str()).flatten()
}

/// The parameters of `session/request_permission` for a call.
pub(super) fn permission(session_id: &str, it: &Approval, projection: &Projection) -> Value {
    let preview = &it.preview;
    let who = it.agent.as_ref().map_or_else(String::new, |agent| format!("{}: ", agent.path.join("/")));
    let call_id = it
        .agent
        .as_ref()
        .map_or_else(|| it.call_id.clone(), |agent| format!("{}/{}", agent.path.join("/"), it.call_id));
    let title = format!("{who}{} {}", preview.would, visible(preview.target.lines().next().unwrap_or_default()));
    let mut content: Vec<Value> = Vec::new();
    diffs(preview, projection, &mut content);
    let mut text = format!("{}\n\n{}", fenced_call(preview), it.reason);
    for line in remarks(preview) {
        text.push_str(&format!("\n{line}"));
    }
    for line in preview.notes.iter().chain(&preview.danger) {
        text.push_str(&format!("\n{line}"));
    }
    content.push(json!({ "type": "content", "content": { "type": "text", "text": text } }));
    let locations: Vec<Value> = preview.paths.iter().map(|path| json!({ "path": projection.absolute(path) })).collect();
    let mut options = vec![option(ONCE, "allow_once", &allow_name("Allow once", it.confirm.as_ref()))];
    if let Some(rule) = &it.rule {
        let name = format!("Always allow {} in this session", scope_of(rule));
        options.push(option(ALWAYS, "allow_always", &allow_name(&name, it.confirm_rule.as_ref())));
    }
    options.push(option(NO, "reject_once", "No"));
    // Clients allow calls that read or search without asking; whether this one does, the gate has found already.
    let kind = if preview_changes_files(preview) { "edit" } else { "execute" };
    json!({
        "sessionId": session_id, "options": options,
        "toolCall": {
            "toolCallId": call_id, "title": title, "kind": kind, "status": "pending", "content": content,
            "locations": locations,
        },
    })
}

fn allow_name(name: &str, confirm: Option<&Confirmation>) -> String {
    match confirm {
        Some(it) => format!("{name}, although {}", it.clauses()),
        None => name.to_owned(),
    }
}

fn preview_changes_files(preview: &Preview) -> bool {
    preview.diff.is_some() || (!preview.steps.is_empty() && preview.steps.iter().all(preview_changes_files))
}

/// The call in full, with every character that hides something as an escape.
fn fenced_call(preview: &Preview) -> String {
    let shown = visible_command(&preview.target);
    let fence = "`".repeat(shown.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    format!("{fence}\n{} {shown}\n{fence}", preview.would)
}

fn scope_of(rule: &Rule) -> String {
    let (Rule::Allow(scope) | Rule::Deny(scope)) = rule;
    match scope {
        Scope::FileChanges => "changes of files".to_owned(),
        Scope::Command(it) | Scope::Pattern(it) => format!("`{}`", visible(it)),
        Scope::Files(it) => format!("changes of {}", visible(it)),
        Scope::Reads(it) => format!("reading {}", visible(it)),
        Scope::Writes(it) => format!("working on {}", visible(it)),
        Scope::Mcp(it) => format!("calls of {}", visible(it.split('#').next().unwrap_or(it))),
        Scope::Network => "the network".to_owned(),
        Scope::Unknown => rules::danger_of(scope).unwrap_or_else(|| "such calls".to_owned()),
    }
}

/// What the diffs of a preview say beside their lines, and how much they add and remove.
fn remarks(preview: &Preview) -> Vec<String> {
    let figures = |added: u64, removed: u64| format!("{}: +{added} −{removed}", visible(&preview.target));
    let mut all: Vec<String> = preview.added.zip(preview.removed).map(|(a, r)| figures(a, r)).into_iter().collect();
    all.extend(preview.diff.iter().flat_map(|diff| remarks_of(diff)));
    all.extend(preview.steps.iter().flat_map(remarks));
    all
}

/// The lines of a diff outside of the file: notes and modes.
fn remarks_of(diff: &str) -> impl Iterator<Item = String> {
    let is_of_file = |line: &&str| line.starts_with(['-', '+', ' ', '@', '\\']);
    diff.split_terminator('\n').filter(move |line| !is_of_file(line)).map(visible)
}

/// A diff for each hunk, so that an editor shows the lines that change. What hides or reorders text is an escape.
fn diffs(preview: &Preview, projection: &Projection, all: &mut Vec<Value>) {
    if let (Some(diff), Some(path)) = (&preview.diff, preview.paths.first()) {
        let path = projection.absolute(path);
        let is_new = preview.bytes_before.is_none();
        all.extend(hunks(&visible(diff)).into_iter().map(|(old, new)| {
            let old = Some(old).filter(|old| !(is_new && old.is_empty()));
            json!({ "type": "diff", "path": path, "oldText": old, "newText": new })
        }));
    }
    preview.steps.iter().for_each(|step| diffs(step, projection, all));
}

/// Both sides of each hunk of a unified diff.
fn hunks(diff: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if line.starts_with("@@") {
            all.push(Default::default());
            continue;
        }
        let Some((old, new)) = all.last_mut() else { continue };
        match (line.as_bytes()[0], &line[1..]) {
            (b'-', rest) => old.push_str(rest),
            (b'+', rest) => new.push_str(rest),
            (b' ', rest) => {
                old.push_str(rest);
                new.push_str(rest);
            }
            _ => {}
        }
    }
    all
}

/// The decision that an option stands for; every other answer is a denial.
pub(super) fn decision(chosen: Option<&str>) -> Decision {
    match chosen {
        Some(ONCE) => Decision::Allow,
        Some(ALWAYS) => Decision::AllowAlways { rule: None, holds: Default::default(), seconds: None },
        Some(_) | None => Decision::Deny { feedback: None },
    }
}

/// What the user has to confirm before this decision, if anything.
pub(crate) fn confirmation(it: &Approval, decision: &Decision) -> Option<Confirmation> {
    match decision {
        Decision::Allow => it.confirm.clone(),
        Decision::AllowAlways { .. } => it.confirm_rule.clone().or_else(|| it.confirm.clone()),
        Decision::Deny { .. } | Decision::DenyAlways { .. } => None,
    }
}

/// The second question about damage that lasts.
pub(super) fn confirm(session_id: &str, call: &Value, it: &Confirmation) -> Value {
    let what = it.clauses();
    let mut call = call.clone();
    call["title"] = json!(format!("{}: {what}", it.headline()));
    let options = [option(NO, "reject_once", "No"), option(ONCE, "allow_once", &format!("Yes: {what}"))];
    json!({ "sessionId": session_id, "toolCall": call, "options": options })
}

/// A question whose answers are options: which plan of a slash command is carried out.
pub(super) fn plan(session_id: &str, id: &str, title: &str, content: Vec<Value>) -> Value {
    let options = [option(ONCE, "allow_once", "Yes"), option(NO, "reject_once", "No")];
    let call = json!({ "toolCallId": id, "title": title, "kind": "other", "status": "pending", "content": content });
    json!({ "sessionId": session_id, "toolCall": call, "options": options })
}

/// The question whether what the workspace brings along is in force.
pub(super) fn trust(session_id: &str, id: &str, shown: &str) -> Value {
    let options = [
        option(ONCE, "allow_once", "Trust it, as it is now"),
        option(NO, "reject_once", "Not now"),
        option(NEVER, "reject_always", "Never, and do not ask again"),
    ];
    let content = json!([{ "type": "content", "content": { "type": "text", "text": shown } }]);
    let title = "Trust what this workspace brings along";
    let call = json!({ "toolCallId": id, "title": title, "kind": "other", "status": "pending", "content": content });
    json!({ "sessionId": session_id, "toolCall": call, "options": options })
}

/// The answer that such an option stands for; every other one trusts nothing.
pub(super) fn trust_answer(chosen: Option<&str>) -> TrustAnswer {
    match chosen {
        Some(ONCE) => TrustAnswer::Trust,
        Some(NEVER) => TrustAnswer::Never,
        Some(_) | None => TrustAnswer::NotNow,
    }
}

/// What the user is told about the answer.
pub(super) const fn trusted(answer: TrustAnswer) -> &'static str {
    match answer {
        TrustAnswer::Trust => "It is in force, as it is now.",
        TrustAnswer::NotNow => "What was not trusted before stays without effect.",
        TrustAnswer::Never => "Nothing that this workspace brings along is in force, and pixir does not ask again.",
        TrustAnswer::Revoke => "Nothing that this workspace brings along is in force any more.",
    }
}

/// The diffs of the preview of a restore.
pub(super) fn restore_diffs(it: &RestorePreview, projection: &Projection) -> Vec<Value> {
    let mut all = Vec::new();
    for file in &it.files {
        let path = projection.absolute(&file.path);
        all.extend(
            hunks(&visible(&file.diff))
                .into_iter()
                .map(|(old, new)| json!({ "type": "diff", "path": path, "oldText": old, "newText": new })),
        );
        for remark in remarks_of(&file.diff) {
            let text = format!("{}: {remark}", visible(&file.path));
            all.push(json!({ "type": "content", "content": { "type": "text", "text": text } }));
        }
        if let Some(why) = &file.why {
            let text = format!("{} stays as it is: {why}", file.path);
            all.push(json!({ "type": "content", "content": { "type": "text", "text": text } }));
        }
    }
    all
}

// ─── forms ───

/// The parameters of `elicitation/create` for a form.
pub(crate) fn elicitation(session_id: &str, form: &Form) -> Value {
    let mut properties = BTreeMap::new();
    let mut required = Vec::new();
    for (at, it) in form.questions.iter().enumerate() {
        let Question { question, options, multiple, only_options } = it;
        let choices: Vec<Value> = options.iter().map(|it| json!({ "const": it, "title": it })).collect();
        let name = format!("answer_{}", at + 1);
        let property = match (options.is_empty(), multiple) {
            (true, _) => json!({ "type": "string", "title": question }),
            (false, true) => json!({ "type": "array", "title": question, "items": { "anyOf": choices } }),
            (false, false) => json!({ "type": "string", "title": question, "oneOf": choices }),
        };
        if options.is_empty() || *only_options {
            required.push(name.clone());
        } else {
            let own = json!({ "type": "string", "title": "Or in your own words" });
            properties.insert(format!("{name}_own"), own);
        }
        properties.insert(name, property);
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    let message = form.questions.iter().map(|it| it.question.as_str()).collect::<Vec<_>>().join("\n");
    let mut params = json!({ "mode": "form", "sessionId": session_id, "message": message, "requestedSchema": schema });
    if form.agent.is_none() {
        params["toolCallId"] = json!(form.call_id);
    }
    params
}

/// The answers that a client gave to the form; none if the user declined.
pub(crate) fn answers(form: &Form, answer: Option<&Value>) -> Option<Vec<Vec<String>>> {
    let answer = answer.filter(|it| it["action"] == "accept")?;
    let texts = |value: &Value| -> Vec<String> {
        match value {
            Value::String(text) if !text.is_empty() => vec![text.clone()],
            Value::Array(all) => all.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect(),
            _ => Vec::new(),
        }
    };
    let all = (1..=form.questions.len()).map(|n| {
        let own = texts(&answer["content"][format!("answer_{n}_own")]);
        if own.is_empty() { texts(&answer["content"][format!("answer_{n}")]) } else { own }
    });
    Some(all.collect())
}

/// A form with one question and one answer, for clients that show no forms: its options are those of a permission.
pub(super) fn as_options(session_id: &str, form: &Form) -> Option<Value> {
    let [Question { question, options, multiple: false, .. }] = &form.questions[..] else { return None };
    if options.is_empty() {
        return None;
    }
    let mut all: Vec<Value> =
        options.iter().enumerate().map(|(at, it)| option(&format!("answer_{at}"), "allow_once", it)).collect();
    all.push(option(NO, "reject_once", "Answer nothing"));
    let call = json!({ "toolCallId": form.call_id, "title": question, "kind": "other", "status": "pending" });
    Some(json!({ "sessionId": session_id, "toolCall": call, "options": all }))
}

/// The answer that such an option stands for.
pub(super) fn of_option(form: &Form, chosen: Option<&str>) -> Option<Vec<Vec<String>>> {
    let at: usize = chosen?.strip_prefix("answer_")?.parse().ok()?;
    Some(vec![vec![form.questions.first()?.options.get(at)?.clone()]])
}

/// The Input that answers a form.
pub(crate) fn answering(form: &Form, answers: Option<Vec<Vec<String>>>) -> Input {
    Input::Answer { call_id: form.call_id.clone(), answers }.for_asker(form.agent.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hunk_has_both_sides() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n@@ -9 +9,2 @@\n z\n+y\n";
        let both = hunks(diff);
        assert_eq!(both, [("a\nb\n".to_owned(), "a\nc\n".to_owned()), ("z\n".to_owned(), "z\ny\n".to_owned())]);
    }

    /// Broken build: an option that pixir never offered allows.
    #[test]
    fn only_the_offered_options_allow() {
        let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
        assert_eq!(decision(chosen(Some(&selected("allow_once")))), Decision::Allow);
        let denied = Decision::Deny { feedback: None };
        assert_eq!(decision(chosen(Some(&selected("allow")))), denied);
        assert_eq!(decision(chosen(Some(&json!({ "outcome": { "outcome": "cancelled" } })))), denied);
        assert_eq!(decision(chosen(Some(&json!({ "optionId": "allow_once" })))), denied);
        assert_eq!(decision(chosen(None)), denied);
    }

    #[test]
    fn the_users_own_words_count_before_an_option() {
        let question =
            Question { question: "Which?".into(), options: vec!["a".into(), "b".into()], ..Question::default() };
        let form = Form { call_id: "c".into(), questions: vec![question], agent: None };
        let said = |content: Value| answers(&form, Some(&json!({ "action": "accept", "content": content })));
        assert_eq!(said(json!({ "answer_1": "a" })), Some(vec![vec!["a".to_owned()]]));
        assert_eq!(said(json!({ "answer_1": "a", "answer_1_own": "c" })), Some(vec![vec!["c".to_owned()]]));
        assert_eq!(answers(&form, Some(&json!({ "action": "decline" }))), None);
        assert_eq!(of_option(&form, Some("answer_1")), Some(vec![vec!["b".to_owned()]]));
        assert_eq!(of_option(&form, Some("reject_once")), None);
    }
}
