//! Decodes each line of the golden transcripts of `pixir acp` with the official types of the protocol, encodes it again, and
//! names what was lost. Usage: `acp_schema FOLDER LEAST`, where LEAST is how many transcripts there must be.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("a folder"));
    let least: usize = args.next().expect("a number").parse().expect("a number");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder of transcripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|it| it == "jsonl"))
        .collect();
    files.sort();
    let (mut lines, mut typed, mut losses) = (0, 0, Vec::new());
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a transcript");
        let mut transcript = Transcript::default();
        for (at, line) in text.lines().enumerate() {
            lines += 1;
            match transcript.line(line) {
                Ok(Some(lost)) => {
                    typed += 1;
                    losses.extend(lost.into_iter().map(|lost| format!("{}:{}: {lost}", file.display(), at + 1)));
                }
                Ok(None) => {}
                Err(why) => losses.push(format!("{}:{}: {why}", file.display(), at + 1)),
            }
        }
    }
    for lost in &losses {
        eprintln!("{lost}");
    }
    println!("{} transcripts, {lines} lines, {typed} decoded and encoded, {} losses", files.len(), losses.len());
    if losses.is_empty() && files.len() >= least { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The requests of both sides that have no response yet, by their ids.
#[derive(Default)]
struct Transcript {
    of_client: HashMap<String, String>,
    of_agent: HashMap<String, String>,
}

impl Transcript {
    /// What a line loses. `None` for a line that no type stands for: an extension, an error, a line that is broken on purpose.
    fn line(&mut self, line: &str) -> Result<Option<Vec<String>>, String> {
        let (from, text) = line.split_at_checked(2).ok_or("a line begins with `> ` or `< `")?;
        let from_client = match from {
            "> " => true,
            "< " => false,
            _ => return Err("a line begins with `> ` or `< `".to_owned()),
        };
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            // The client may send what it likes; the agent may not.
            return if from_client { Ok(None) } else { Err("the agent's line is no JSON".to_owned()) };
        };
        let (asked, other) = if from_client {
            (&mut self.of_client, &mut self.of_agent)
        } else {
            (&mut self.of_agent, &mut self.of_client)
        };
        if !from_client && message["jsonrpc"] != "2.0" {
            return Err("`jsonrpc` is missing".to_owned());
        }
        let id = message.get("id").map(Value::to_string);
        let outcome = match (message["method"].as_str(), id) {
            (Some(method), id) => {
                if let Some(id) = id {
                    asked.insert(id, method.to_owned());
                }
                request(method, &message["params"])
            }
            (None, Some(id)) if message.get("error").is_some() => {
                other.remove(&id);
                Some(round::<v1::Error>(&message["error"]))
            }
            (None, Some(id)) if message.get("result").is_some() => match other.remove(&id) {
                Some(method) => response(&method, &message["result"]),
                None if from_client => None,
                None => Some(Err("the agent answers what was not asked".to_owned())),
            },
            (None, _) => None,
        };
        match outcome {
            // What a client sends may be wrong on purpose.
            Some(Err(_)) if from_client => Ok(None),
            Some(lost) => lost.map(Some),
            None => Ok(None),
        }
    }
}

fn request(method: &str, params: &Value) -> Option<Result<Vec<String>, String>> {
    Some(match method {
        "initialize" => round::<v1::InitializeRequest>(params),
        "authenticate" => round::<v1::AuthenticateRequest>(params),
        "logout" => round::<v1::LogoutRequest>(params),
        "session/new" => round::<v1::NewSessionRequest>(params),
        "session/load" => round::<v1::LoadSessionRequest>(params),
        "session/resume" => round::<v1::ResumeSessionRequest>(params),
        "session/list" => round::<v1::ListSessionsRequest>(params),
        "session/close" => round::<v1::CloseSessionRequest>(params),
        "session/delete" => round::<v1::DeleteSessionRequest>(params),
        "session/prompt" => round::<v1::PromptRequest>(params),
        "session/set_mode" => round::<v1::SetSessionModeRequest>(params),
        "session/set_config_option" => round::<v1::SetSessionConfigOptionRequest>(params),
        "session/cancel" => round::<v1::CancelNotification>(params),
        "$/cancel_request" => round::<v1::CancelRequestNotification>(params),
        "session/update" => round::<v1::SessionNotification>(params),
        "session/request_permission" => round::<v1::RequestPermissionRequest>(params),
        "elicitation/create" => round::<v1::CreateElicitationRequest>(params),
        "fs/read_text_file" => round::<v1::ReadTextFileRequest>(params),
        "fs/write_text_file" => round::<v1::WriteTextFileRequest>(params),
        _ if method.starts_with('_') => return None,
        _ => Err(format!("there is no method {method}")),
    })
}

fn response(method: &str, result: &Value) -> Option<Result<Vec<String>, String>> {
    Some(match method {
        "initialize" => round::<v1::InitializeResponse>(result),
        "authenticate" => round::<v1::AuthenticateResponse>(result),
        "logout" => round::<v1::LogoutResponse>(result),
        "session/new" => round::<v1::NewSessionResponse>(result),
        "session/load" => round::<v1::LoadSessionResponse>(result),
        "session/resume" => round::<v1::ResumeSessionResponse>(result),
        "session/list" => round::<v1::ListSessionsResponse>(result),
        "session/close" => round::<v1::CloseSessionResponse>(result),
        "session/delete" => round::<v1::DeleteSessionResponse>(result),
        "session/prompt" => round::<v1::PromptResponse>(result),
        "session/set_mode" => round::<v1::SetSessionModeResponse>(result),
        "session/set_config_option" => round::<v1::SetSessionConfigOptionResponse>(result),
        "session/request_permission" => round::<v1::RequestPermissionResponse>(result),
        "elicitation/create" => round::<v1::CreateElicitationResponse>(result),
        "fs/read_text_file" => round::<v1::ReadTextFileResponse>(result),
        "fs/write_text_file" => round::<v1::WriteTextFileResponse>(result),
        _ if method.starts_with('_') => return None,
        _ => Err(format!("there is no method {method}")),
    })
}

/// What a value loses when it is decoded as this type and encoded again.
fn round<T: DeserializeOwned + Serialize>(value: &Value) -> Result<Vec<String>, String> {
    let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
    let decoded: T = serde_json::from_value(value.clone()).map_err(|e| format!("{name}: {e}"))?;
    let encoded = serde_json::to_value(&decoded).map_err(|e| format!("{name}: {e}"))?;
    let mut lost = Vec::new();
    compare(name, "", value, Some(&encoded), &mut lost);
    Ok(lost)
}

fn compare(at: &str, key: &str, sent: &Value, read: Option<&Value>, lost: &mut Vec<String>) {
    match (sent, read) {
        (Value::Object(sent), Some(Value::Object(read))) => {
            for (name, value) in sent {
                compare(&format!("{at}.{name}"), name, value, read.get(name), lost);
            }
        }
        (Value::Array(sent), Some(Value::Array(read))) if sent.len() == read.len() => {
            for (n, (sent, read)) in sent.iter().zip(read).enumerate() {
                compare(&format!("{at}[{n}]"), "", sent, Some(read), lost);
            }
        }
        (sent, Some(read)) if sent == read => {}
        (sent, None) if is_left_out(key, sent) => {}
        (sent, read) => {
            let read = read.map_or_else(|| "nothing".to_owned(), Value::to_string);
            lost.push(format!("{at}: {sent} becomes {read}"));
        }
    }
}

/// Values that the types do not write, because they are what an absent field means.
fn is_left_out(key: &str, value: &Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || (key == "kind" && value == "other")
        || (key == "status" && value == "pending")
}
