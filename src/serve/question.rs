//! What only the user can decide, as elicitations of the client.

use pixir_core::event::{Approval, Confirmation, Form, Preview};
use pixir_core::text::clean::{visible, visible_command};
use pixir_core::{Decision, Input};
use serde_json::{Value, json};

use super::Server;
use crate::acp::question;

/// What the user decides about a call, and the word that confirms damage that lasts.
pub(super) async fn decide(server: &Server, it: &Approval) -> (Decision, Option<String>) {
    let denied = (Decision::Deny { feedback: None }, None);
    let asked = server.ask(approval(it)).await;
    let decision = match asked.as_ref().and_then(|it| it["content"]["decision"].as_str()) {
        Some("allow") => Decision::Allow,
        Some("always") if it.rule.is_some() => {
            Decision::AllowAlways { rule: None, holds: Default::default(), seconds: None }
        }
        Some(_) | None => return denied,
    };
    let Some(confirmation) = question::confirmation(it, &decision) else { return (decision, None) };
    match server.ask(confirm(&confirmation)).await {
        Some(answer) if answer["content"]["decision"] == "yes" => (decision, Some(confirmation.word)),
        Some(_) | None => denied,
    }
}

/// The form of an approval: the call in full, with every character that hides something as an escape.
fn approval(it: &Approval) -> Value {
    let preview = &it.preview;
    let who = it.agent.as_ref().map_or_else(String::new, |agent| format!("{}: ", agent.path.join("/")));
    let mut text = format!("pixir asks: {who}{} {}\n{}", preview.would, visible_command(&preview.target), it.reason);
    for line in preview.notes.iter().chain(&preview.danger) {
        text.push_str(&format!("\n{}", visible(line)));
    }
    write_diffs(preview, &mut text);
    let mut names = vec![("allow", "Allow once")];
    if it.rule.is_some() {
        names.push(("always", "Allow, and all that is like it in this task"));
    }
    names.push(("deny", "No"));
    choice(&text, &names)
}

/// The diff of a preview, and those of its steps under their names.
fn write_diffs(preview: &Preview, text: &mut String) {
    if let Some(diff) = &preview.diff {
        text.push_str(&format!("\n\n{}", visible(diff)));
    }
    for step in &preview.steps {
        text.push_str(&format!("\n\n{} {}", step.would, visible_command(&step.target)));
        write_diffs(step, text);
    }
}

fn confirm(it: &Confirmation) -> Value {
    choice(&format!("{}: {}", it.headline(), it.clauses()), &[("no", "No"), ("yes", "Yes")])
}

fn choice(message: &str, names: &[(&str, &str)]) -> Value {
    let (values, titles): (Vec<&str>, Vec<&str>) = names.iter().copied().unzip();
    let decision = json!({ "type": "string", "title": "Decision", "enum": values, "enumNames": titles });
    let schema = json!({ "type": "object", "properties": { "decision": decision }, "required": ["decision"] });
    json!({ "message": message, "requestedSchema": schema })
}

/// Puts a form of the model to the user.
pub(super) async fn answer(server: &Server, session: &str, form: &Form) -> Input {
    let mut params = question::elicitation(session, form);
    for of_editors in ["sessionId", "toolCallId", "mode"] {
        params.as_object_mut().map(|it| it.remove(of_editors));
    }
    let answer = server.ask(params).await;
    question::answering(form, question::answers(form, answer.as_ref()))
}
