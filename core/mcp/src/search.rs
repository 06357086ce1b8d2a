//! The tools that search the tools of servers, and call what was found.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::catalog::Definition;
use super::offer::{offered, shown};
use super::server_call::{here, info, prepared};
use super::{Configured, Servers};
use call::arguments::{self, object, text};
use call::{Context, Output, Prepared, Tool};
use permissions::Touch;
use protocol::call_info::{CallInfo, CallKind};
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::Preview;
use protocol::tool_spec::ToolSpec;

/// The most matches of a search.
const MAX_MATCHES: usize = 8;
/// The most bytes of the matches of a search.
const MAX_FOUND: usize = 6_000;

/// Searches the tools of servers that are not offered with their definitions.
pub(super) struct Finder {
    pub(super) index: String,
    pub(super) servers: Option<Servers>,
}

#[derive(Deserialize)]
struct Search {
    query: String,
    server: Option<String>,
}

impl Tool for Finder {
    fn spec(&self) -> ToolSpec {
        let mut description =
            "Search the tools of MCP servers by their descriptions. Each match shows the name and the arguments with which mcp_call calls it.".to_owned();
        if !self.index.is_empty() {
            description.push_str(&format!(" Servers:\n{}", self.index.trim_end()));
        }
        ToolSpec {
            name: "mcp_find".into(),
            description: description.into(),
            parameters: object(
                json!({
                    "query": { "type": "string", "description": "Words about what the tool does; \"\" lists all tools" },
                    "server": { "type": "string", "description": "Search the tools of this server alone" },
                }),
                &["query"],
            ),
            reads_only: true,
            streams: "reads nothing from stdin; prints one tool per line, as JSON".into(),
        }
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        CallInfo::new(CallKind::Search, "find", format!("MCP tools {}", text(args, "query")).trim_end())
    }

    fn prepare(&self, args: Value, _ctx: &Context) -> Result<Prepared> {
        let servers = here(self.servers.as_ref())?;
        let Search { query, server } = arguments::parse(args)?;
        finding(servers, query, server)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("mcp find WORDS")
    }
}

pub(super) fn finding(servers: Servers, query: String, only: Option<String>) -> Result<Prepared> {
    let preview = Preview { would: "find".to_owned(), target: "MCP tools".to_owned(), ..Preview::default() };
    Ok(Prepared::new(preview, Touch::Read, move |ctx| async move {
        Ok(Output::text(&ctx, &find(&servers, &query, only.as_deref()).await?))
    }))
}

/// The tools that match, best first, and what else there is to say. Servers that were never in contact are started.
pub async fn find(servers: &Servers, query: &str, only: Option<&str>) -> Result<String> {
    let (from, name) = (servers.clone(), only.map(str::to_owned));
    let all = call::off_loop(move || match name {
        Some(name) => Ok(vec![from.find(&name)?]),
        None => Ok(from.configured().into_iter().filter(Configured::is_in_force).collect()),
    })
    .await?;
    let (mut found, mut notes) = (Vec::new(), Vec::new());
    let pinned = all.iter().map(|it| async {
        match servers.pins(it)? {
            Some(pins) => Ok(Some(pins)),
            None => servers.contact(it).await.map(|it| it.pins),
        }
    });
    for (it, pins) in all.iter().zip(futures_util::future::join_all(pinned).await) {
        match pins {
            Ok(Some(pins)) => {
                if only.is_some() && !pins.instructions.is_empty() {
                    let mark = conversation::history::fence_around(&pins.instructions);
                    let shown: String = pins.instructions.chars().take(2_000).collect();
                    notes.push(format!("{mark} what the server says about itself\n{shown}\n{mark}"));
                }
                found.extend(offered(it, &pins).into_iter().map(|(definition, spec)| {
                    let score = score(query, &definition, &it.name);
                    (score, spec)
                }));
            }
            Ok(None) => notes.push(format!("{}: the user has not accepted its tools yet", it.name)),
            Err(e) => notes.push(format!("{}: {}", it.name, e.message)),
        }
    }
    let total = found.len();
    found.retain(|(score, _)| *score > 0);
    found.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.name.cmp(&other.name)));
    let matches = found.len();
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    for (_, spec) in found.into_iter().take(MAX_MATCHES) {
        let line = shown(&spec).to_string();
        if bytes + line.len() > MAX_FOUND && !lines.is_empty() {
            break;
        }
        bytes += line.len() + 1;
        lines.push(line);
    }
    let more = matches - lines.len();
    if more > 0 {
        lines.push(format!("{more} more match; search with more words"));
    }
    if matches == 0 {
        lines.push(format!("no tool of {total} matches; search with other words, or with \"\""));
    }
    lines.extend(notes);
    Ok(lines.join("\n") + "\n")
}

/// How well a tool matches: its name counts more than its description. Every tool matches no words.
fn score(query: &str, it: &Definition, server: &str) -> usize {
    let words: Vec<String> = query.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase).collect();
    let words: Vec<&String> = words.iter().filter(|it| !it.is_empty()).collect();
    if words.is_empty() {
        return 1;
    }
    let name = format!("{server} {} {}", it.name, it.title.as_deref().unwrap_or_default()).to_lowercase();
    let about = it.description.to_lowercase();
    let arguments = it.input["properties"].as_object().into_iter().flatten();
    let arguments: String = arguments.map(|(name, _)| name.to_lowercase() + " ").collect();
    words
        .iter()
        .map(|word| {
            let of = |text: &str, points: usize| if text.contains(word.as_str()) { points } else { 0 };
            of(&name, 6) + of(&about, 3) + of(&arguments, 1)
        })
        .sum()
}

/// Calls a tool that was found by search.
pub(super) struct Trampoline {
    pub(super) servers: Option<Servers>,
}

#[derive(Deserialize)]
struct Named {
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl Tool for Trampoline {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "mcp_call".into(),
            description: "Call a tool of an MCP server that mcp_find has found.".into(),
            parameters: object(
                json!({
                    "tool": { "type": "string", "description": "Its name, as mcp_find shows it" },
                    "arguments": { "type": "object", "description": "The arguments that its schema names" },
                }),
                &["tool"],
            ),
            reads_only: false,
            streams: "reads nothing from stdin; prints what the server answers".into(),
        }
    }

    /// Arguments inside are those of the server.
    fn is_of_others(&self) -> bool {
        true
    }

    fn standing_in_for(&self, name: &str, args: &Value) -> Option<Value> {
        let servers = self.servers.as_ref()?;
        let tool = if found(servers, name).is_ok() { name.to_owned() } else { only_tool(servers, name)? };
        Some(json!({ "tool": tool, "arguments": args }))
    }

    fn describe(&self, args: &Value, _ctx: &Context) -> CallInfo {
        let name = text(args, "tool");
        let found = self.servers.as_ref().and_then(|it| named(it, name).ok());
        match found {
            Some((server, definition)) => {
                let only_reads = server.server.only_reads(&definition.name);
                info(&server.name, &definition.name, &args["arguments"], only_reads)
            }
            None => CallInfo::new(CallKind::Other, "call", name),
        }
    }

    fn prepare(&self, args: Value, _ctx: &Context) -> Result<Prepared> {
        arguments::check(&self.spec(), &args)?;
        let servers = here(self.servers.as_ref())?;
        let Named { tool, arguments } = serde_json::from_value(args)
            .map_err(|e| Error::new(Code::InvalidArgs, e.to_string(), "mcp_call {tool, arguments}"))?;
        prepared_by_name(&servers, &tool, arguments)
    }

    fn run_command(&self) -> Option<&'static str> {
        Some("mcp call TOOL JSON")
    }
}

/// A call of the tool that a model calls by this name.
pub(crate) fn prepared_by_name(servers: &Servers, name: &str, args: Map<String, Value>) -> Result<Prepared> {
    let (server, definition) = named(servers, name)?;
    let pin = definition.pin();
    prepared(servers.clone(), server, definition, pin, Value::Object(args))
}

/// The accepted tool with this name: `SERVER__TOOL`, or `SERVER.TOOL` with the server's own name of it. Other programs write
/// `mcp__SERVER__TOOL`.
fn named(servers: &Servers, name: &str) -> Result<(Configured, Definition)> {
    let (it, name, raw) = found(servers, name)?;
    let server = it.name.as_str();
    let Some(pins) = servers.pins(&it)? else {
        let message = format!("the tools of the MCP server {server} are not known yet");
        return Err(Error::new(Code::UnknownTool, message, format!("mcp_find with server = \"{server}\" first")));
    };
    let all = offered(&it, &pins);
    let is_it = |(definition, spec): &&(Definition, ToolSpec)| *spec.name == *name || definition.name == raw;
    match all.iter().find(is_it) {
        Some((definition, _)) => Ok((it, definition.clone())),
        None => {
            let names: Vec<&str> = all.iter().map(|(_, spec)| &*spec.name).collect();
            let fix = match nearest(name, names.iter().copied()) {
                Some(near) => format!("{near}, or search with mcp_find"),
                None => "search with mcp_find".to_owned(),
            };
            let message = format!("the MCP server {server} has no tool `{}`", name.escape_debug());
            Err(Error::new(Code::UnknownTool, message, fix).with("input", name))
        }
    }
}

/// The server of the tool with this name, and the name without the prefix of other programs, whole and after the server.
fn found<'a>(servers: &Servers, name: &'a str) -> Result<(Configured, &'a str, &'a str)> {
    let of = |name: &'a str| {
        let Some((server, raw)) = split(name) else {
            let message = format!("`{}` is no tool of an MCP server", name.escape_debug());
            return Err(Error::new(Code::UnknownTool, message, "mcp_find tells the names: SERVER__TOOL"));
        };
        Ok((servers.find(server)?, name, raw))
    };
    match (of(name), name.strip_prefix("mcp__")) {
        (Err(_), Some(rest)) => of(rest),
        (found, _) => found,
    }
}

/// `SERVER.TOOL` for a name that exactly one tool of all servers has without its server.
fn only_tool(servers: &Servers, raw: &str) -> Option<String> {
    let in_force = servers.configured().into_iter().filter(Configured::is_in_force);
    let mut having = in_force.filter_map(|it| {
        let pins = servers.pins(&it).ok().flatten()?;
        let is_offered = offered(&it, &pins).iter().any(|(definition, _)| definition.name == raw);
        is_offered.then(|| format!("{}.{raw}", it.name))
    });
    having.next().filter(|_| having.next().is_none())
}

/// The name of the server of a tool.
///
/// # Errors
/// As [`Servers::find`]; `UNKNOWN_TOOL`.
pub fn server_of(servers: &Servers, tool: &str) -> Result<String> {
    found(servers, tool).map(|(it, ..)| it.name)
}

/// The name of the server and the rest. A name of a server has neither a dot nor an underscore, so the first of them ends it.
fn split(name: &str) -> Option<(&str, &str)> {
    let (server, rest) = name.split_at(name.find(['.', '_'])?);
    Some((server, rest.strip_prefix("__").or_else(|| rest.strip_prefix('.'))?))
}
