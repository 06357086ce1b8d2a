//! What a server asks the user during a call, as a form, and the answers as the server wants them.

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use call::{Answers, FormRequest};
use protocol::event::Question;
use text::clean::clean;

/// The most fields of one form.
const MOST_FIELDS: usize = 8;

/// The ways to the user, of the calls that are under way.
#[derive(Debug, Default)]
pub(super) struct Ears(Mutex<Vec<(u64, mpsc::Sender<FormRequest>)>>);

/// Has the ear of the user until it is dropped.
pub(super) struct Listening<'a>(&'a Ears, u64);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.0.lock().retain(|(number, _)| *number != self.1);
    }
}

impl Ears {
    /// The server can ask the user during this call; without `forms` its questions are declined.
    pub(super) fn listen(&self, forms: Option<mpsc::Sender<FormRequest>>) -> Option<Listening<'_>> {
        let forms = forms?;
        let mut all = self.0.lock();
        let number = all.last().map_or(1, |(last, _)| last + 1);
        all.push((number, forms));
        Some(Listening(self, number))
    }

    /// Asks the user of the latest call. `None` where no user can answer, or the user does not want to.
    pub(super) async fn ask(&self, questions: Vec<Question>) -> Option<Answers> {
        let forms = self.0.lock().last().map(|(_, forms)| forms.clone())?;
        let (reply, answer) = oneshot::channel();
        forms.send(FormRequest { questions, reply }).await.ok()?;
        answer.await.ok()?
    }
}

/// One question for each field. `None` where the fields cannot be asked.
pub(super) fn questions(server: &str, message: &str, schema: &Value) -> Option<Vec<Question>> {
    let fields = schema["properties"].as_object().filter(|it| !it.is_empty() && it.len() <= MOST_FIELDS)?;
    // The protocol has fields of one value only.
    if fields.values().any(|it| it["type"] == "object") {
        return None;
    }
    let question = |(at, (name, it)): (usize, (&String, &Value))| {
        let title = it["title"].as_str().unwrap_or(name);
        let usual = it.get("default").map(|usual| match usual {
            Value::String(text) => text.clone(),
            Value::Bool(is_so) => if *is_so { "yes" } else { "no" }.to_owned(),
            other => other.to_string(),
        });
        let about: Vec<String> = [it["description"].as_str().map(str::to_owned), usual.map(|it| format!("else {it}"))]
            .into_iter()
            .flatten()
            .collect();
        let about = if about.is_empty() { String::new() } else { format!(" ({})", about.join("; ")) };
        let text =
            if at == 0 { format!("{server} asks: {message}\n{title}{about}") } else { format!("{title}{about}") };
        let options = options(it);
        Question { question: clean(&text).into_owned(), only_options: !options.is_empty(), options, multiple: false }
    };
    Some(fields.iter().enumerate().map(question).collect())
}

fn options(field: &Value) -> Vec<String> {
    if field["type"] == "boolean" {
        return vec!["yes".to_owned(), "no".to_owned()];
    }
    values(field).take(9).map(|it| clean(it).into_owned()).collect()
}

/// The texts of which the server wants one.
fn values(field: &Value) -> impl Iterator<Item = &str> {
    let named = field["oneOf"].as_array().into_iter().flatten().filter_map(|it| it["const"].as_str());
    named.chain(field["enum"].as_array().into_iter().flatten().filter_map(Value::as_str))
}

/// The answers as an object of the schema. `None` where one does not fit.
pub(super) fn content(schema: &Value, answers: &Answers) -> Option<Value> {
    let mut all = Map::new();
    for ((name, field), answer) in schema["properties"].as_object()?.iter().zip(answers) {
        let Some(text) = answer.first().map(|it| it.trim()).filter(|it| !it.is_empty()) else {
            // The user has agreed to what the form showed.
            if let Some(usual) = field.get("default") {
                all.insert(name.clone(), usual.clone());
            }
            continue;
        };
        let value = match field["type"].as_str() {
            Some("boolean") => Value::Bool(text == "yes"),
            Some("integer") => text.parse::<i64>().ok()?.into(),
            Some("number") => text.parse::<f64>().ok()?.into(),
            // The option was shown without what hides in it.
            _ => values(field).find(|it| clean(it).trim() == text).unwrap_or(text).into(),
        };
        all.insert(name.clone(), value);
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    required.into_iter().all(|name| all.contains_key(name)).then_some(Value::Object(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Broken builds: a number is sent as text; a form without a required answer is sent; what the form showed as usual is not sent.
    #[test]
    fn answers_become_what_the_server_asked_for() {
        let schema = json!({
            "properties": { "a": { "type": "string", "title": "Branch" }, "b": { "type": "boolean" }, "c": { "type": "integer", "default": 7 } },
            "required": ["a"],
        });
        let asked = questions("git", "Which?", &schema).expect("questions");
        assert_eq!(asked[0].question, "git asks: Which?\nBranch");
        assert_eq!((asked[1].options.join(" "), asked[1].only_options), ("yes no".to_owned(), true));
        let answers = |all: [&str; 3]| all.iter().map(|it| vec![(*it).to_owned()]).collect::<Vec<_>>();
        let filled = content(&schema, &answers(["main", "yes", "3"]));
        assert_eq!(filled, Some(json!({ "a": "main", "b": true, "c": 3 })));
        assert_eq!(asked[2].question, "c (else 7)");
        assert_eq!(content(&schema, &answers(["main", "", ""])), Some(json!({ "a": "main", "c": 7 })));
        assert_eq!(content(&schema, &answers(["", "no", "3"])), None);
        assert_eq!(content(&schema, &answers(["main", "no", "three"])), None);
        let nested =
            json!({ "properties": { "a": { "type": "object", "properties": { "b": { "type": "string" } } } } });
        assert!(questions("git", "Which?", &nested).is_none());
        let hidden = json!({ "properties": { "a": { "type": "string", "enum": ["x", "y\u{200b}"] } } });
        let shown = questions("git", "Which?", &hidden).expect("a question")[0].options[1].clone();
        assert_eq!(content(&hidden, &vec![vec![shown]]), Some(json!({ "a": "y\u{200b}" })));
    }
}
