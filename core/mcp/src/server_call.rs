//! A call of a tool of a server: shown to the user, checked, carried out.

use serde_json::{Map, Value};

use super::catalog::Definition;
use super::{Configured, Contact, Servers, result, schema};
use call::Prepared;
use call::command::{Effect, look_after, look_before};
use call::protection::Keeper;
use permissions::{Touch, UsersWord};
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result};
use protocol::event::{Preview, ResultOrigin};
use text::clean::{clean_json, without_hidden};

/// Arguments that are longer stand on lines of their own.
const ONE_LINE: usize = 60;

pub(super) fn here(servers: Option<&Servers>) -> Result<Servers> {
    servers.cloned().ok_or_else(|| {
        let message = "the MCP servers of this session are not configured here";
        Error::new(Code::NotFound, message, "work without them, or have the user add them")
    })
}

pub(super) fn info(server: &str, tool: &str, args: &Value, only_reads: bool) -> CallInfo {
    // On one line of the conversation; the card of the approval has them in full.
    let target = if args.as_object().is_none_or(Map::is_empty) {
        format!("{server}.{tool}")
    } else {
        format!("{server}.{tool} {}", clean_json(&args.to_string()))
    };
    let kind = if only_reads { CallKind::Read } else { CallKind::Other };
    CallInfo { reads_only: only_reads, ..CallInfo::new(kind, "call", target) }
}

/// The tool with its arguments, as the user reads them: every byte of them is visible.
fn target(server: &str, tool: &str, args: &Value) -> String {
    let name = format!("{server}.{tool}");
    if args.as_object().is_none_or(Map::is_empty) {
        return name;
    }
    let short = args.to_string();
    if short.len() <= ONE_LINE {
        return format!("{name} {}", clean_json(&short));
    }
    let long = serde_json::to_string_pretty(args).unwrap_or(short);
    format!("{name}\n{}", clean_json(&long))
}

/// A call of a tool of a server, checked against the server's own schema.
pub(super) fn prepared(
    servers: Servers,
    server: Configured,
    definition: Definition,
    pin: String,
    args: Value,
) -> Result<Prepared> {
    let tool = definition.name.clone();
    // What is checked and shown is what is sent.
    let args = schema::restored(&definition.input, args);
    let faults = schema::faults(&definition.input, &args);
    if !faults.is_empty() {
        let names = definition.input["properties"].as_object().into_iter().flat_map(|it| it.keys());
        let names = names.map(String::as_str).collect::<Vec<_>>().join(", ");
        let fix = format!("the arguments of {}.{tool}: {}", server.name, without_hidden(&names));
        return Err(Error::new(Code::InvalidArgs, without_hidden(&faults.join(", ")), fix).with("input", args));
    }
    let Value::Object(args) = args else {
        return Err(Error::new(Code::InvalidArgs, "the arguments are not a JSON object", "send one JSON object"));
    };
    let word = server.word(&tool);
    let mut notes = vec![format!("{}: {}", server.source.name(), server.server.launch_text())];
    notes.extend(definition.claims().into_iter().map(str::to_owned));
    let preview = Preview {
        would: "call".to_owned(),
        target: target(&server.name, &tool, &Value::Object(args.clone())),
        notes,
        ..Preview::default()
    };
    let touch = Touch::Mcp {
        server: server.name.clone(),
        tool: tool.clone(),
        pin: pin.clone(),
        word,
        is_destructive: definition.is_destructive(),
    };
    Ok(Prepared::new(preview, touch, move |ctx| async move {
        let contact = servers.contact_for(&server, &ctx).await?;
        contact.check(&server, &tool, &pin)?;
        let limit = server.server.call_limit();
        // What a program of this machine changes in the workspace can be undone.
        let changes = word != UsersWord::Reads && server.server.command.is_some();
        let watched = if changes { Some(look_before(&ctx, Keeper::Kernel).await?) } else { None };
        let answer = contact.server.call(&contact.running, &tool, args.clone(), limit, ctx.forms.clone()).await;
        let answer = match answer {
            // What only reads may be read again; what was refused for want of a sign-in was not done.
            Err(e) if may_repeat(&e, word, &contact).await => {
                let contact = servers.contact_for(&server, &ctx).await?;
                contact.check(&server, &tool, &pin)?;
                contact.server.call(&contact.running, &tool, args, limit, ctx.forms.clone()).await
            }
            answer => answer,
        };
        // Also a call that failed may have changed files.
        let effect = match watched {
            Some(watched) => look_after(&ctx, watched).await,
            None => Effect::default(),
        };
        let answer = answer?;
        let name = server.name.clone();
        let mut output = result::output(answer, &name, &tool, contact.server.secrets(), &ctx);
        output.origin = Some(ResultOrigin { server: name, tool, pin });
        output.stdout.push(effect.notes.as_bytes());
        (output.changes, output.taken) = (effect.changes, effect.taken);
        Ok(output)
    }))
}

/// Whether a call that failed may be sent once more.
pub(super) async fn may_repeat(e: &Error, word: UsersWord, contact: &Contact) -> bool {
    match e.code {
        Code::McpServerExited => word == UsersWord::Reads,
        Code::McpAuthRequired if e.details.contains_key("scope") => {
            contact.server.has_newer_sign_in(&contact.running).await
        }
        Code::McpAuthRequired => contact.server.has_another_sign_in(&contact.running).await,
        _ => false,
    }
}
