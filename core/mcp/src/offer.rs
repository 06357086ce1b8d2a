//! Which tools of servers a Session offers. The offer is a Fact, so that the requests of a Session begin with the same bytes
//! whatever the servers do.

use std::sync::Arc;

use serde_json::Value;

use super::catalog::{Definition, Pins};
use super::resource::Reader;
use super::search::{Finder, Trampoline};
use super::tool::ServerTool;
use super::{Configured, Servers, names, schema};
use call::{Registry, Tool};
use config::Expose;
use protocol::error::{Code, Error, Result};
use protocol::event::{Exposure, OfferedServer, OfferedTool, ToolsOffered};
use protocol::remedy::Remedy;
use protocol::tool_spec::ToolSpec;
use storage::blobs::Blobs;

/// The longest index of servers, bytes.
const MAX_INDEX: usize = 1_024;

/// What a Session offers from now on. What it has offered before stays as it is: only the user's acceptance, or another
/// configuration, changes it. Blocks while it reads files.
///
/// # Errors
/// `WRITE_FAILED` when definitions cannot be stored.
pub fn offer(servers: &Servers, before: Option<&ToolsOffered>, blobs: &Blobs) -> Result<ToolsOffered> {
    let all: Vec<Configured> = servers.configured().into_iter().filter(Configured::is_in_force).collect();
    let known = |it: &Configured| {
        before.and_then(|before| before.servers.iter().find(|other| other.name == it.name && other.launch == it.launch))
    };
    let mut found: Vec<Found> = all.into_iter().map(|it| Found::of(servers, it)).collect();
    for it in &mut found {
        let refused = known(&it.server).map_or(Vec::new(), |known| known.refused.clone());
        it.leave_refused(&refused);
    }
    // What is offered already comes first, so that a new server does not take its place.
    let is_kept = |it: &Found| known(&it.server).is_some_and(|known| known.exposure == Exposure::Direct);
    let mut left = servers.limits().direct_bytes;
    for it in found.iter_mut().filter(|it| is_kept(it)) {
        it.exposure = Exposure::Direct;
        left = left.saturating_sub(it.bytes);
    }
    for it in &mut found {
        if known(&it.server).is_some() {
            continue;
        }
        let fits = it.pins.is_some() && it.bytes <= left;
        it.exposure = match it.server.server.expose {
            Expose::Direct if it.pins.is_some() => Exposure::Direct,
            Expose::Auto if fits => Exposure::Direct,
            Expose::Auto | Expose::Direct | Expose::Search => Exposure::Search,
        };
        if it.exposure == Exposure::Direct {
            left = left.saturating_sub(it.bytes);
        }
    }
    let index = index(&found);
    let offered: Result<Vec<OfferedServer>> = found.iter().map(|it| it.offered(blobs)).collect();
    let bytes = found.iter().filter(|it| it.exposure == Exposure::Direct).map(|it| it.bytes as u64).sum();
    Ok(ToolsOffered { servers: offered?, index, bytes })
}

/// A server that is in force, with what the user accepted of it.
struct Found {
    server: Configured,
    pins: Option<Pins>,
    /// The tools that can be offered, with their specs.
    tools: Vec<(Definition, ToolSpec)>,
    /// Those of them whose definition a Provider has refused.
    refused: Vec<OfferedTool>,
    bytes: usize,
    exposure: Exposure,
}

impl Found {
    fn of(servers: &Servers, server: Configured) -> Found {
        // The user reads in the list of servers why they cannot be read.
        let pins = servers.pins(&server).ok().flatten();
        let tools = pins.as_ref().map_or(Vec::new(), |pins| offered(&server, pins));
        let bytes = tools.iter().map(|(_, spec)| size(spec)).sum();
        Found { server, pins, tools, refused: Vec::new(), bytes, exposure: Exposure::Search }
    }

    /// What a Provider has refused is found by search, as long as its definition is the refused one.
    fn leave_refused(&mut self, refused: &[OfferedTool]) {
        let is_same = |it: &&OfferedTool| self.tools.iter().any(|(definition, _)| it.pin == definition.pin());
        self.refused = refused.iter().filter(is_same).cloned().collect();
        let left_out = self.tools.iter().filter(|(_, spec)| self.refused.iter().any(|it| *it.name == *spec.name));
        self.bytes -= left_out.map(|(_, spec)| size(spec)).sum::<usize>();
    }

    fn offered(&self, blobs: &Blobs) -> Result<OfferedServer> {
        let mut it = OfferedServer {
            name: self.server.name.clone(),
            source: self.server.source.name().to_owned(),
            exposure: self.exposure,
            launch: self.server.launch.clone(),
            definitions: None,
            tools: Vec::new(),
            refused: Vec::new(),
        };
        if self.exposure == Exposure::Search {
            return Ok(it);
        }
        let definitions: Vec<&Definition> = self.tools.iter().map(|(definition, _)| definition).collect();
        let bytes = serde_json::to_vec(&definitions).unwrap_or_default();
        let blob = blobs.put(&bytes).ok().flatten();
        it.definitions = Some(blob.ok_or_else(|| {
            Error::new(Code::WriteFailed, "the definitions of MCP tools cannot be stored", Remedy::CheckStateFolder)
        })?);
        let tool = |(definition, spec): &(Definition, ToolSpec)| OfferedTool {
            name: spec.name.to_string(),
            raw: definition.name.clone(),
            pin: definition.pin(),
        };
        it.tools = self.tools.iter().map(tool).filter(|it| !self.refused.contains(it)).collect();
        it.refused.clone_from(&self.refused);
        Ok(it)
    }
}

/// The accepted tools of a server that can be offered, with their specs.
pub(super) fn offered(server: &Configured, pins: &Pins) -> Vec<(Definition, ToolSpec)> {
    let raw: Vec<&str> = pins.tools.iter().map(|it| it.name.as_str()).collect();
    let names = names::of(&server.name, &raw);
    let tools = pins.tools.iter().filter(|it| server.server.offers(&it.name));
    tools.filter_map(|it| Some((it.clone(), spec(&server.name, it, names.get(&it.name)?)?))).collect()
}

/// The accepted tools of a server that cannot be offered, and why.
pub(super) fn left_out(pins: &Pins) -> Vec<String> {
    let raw: Vec<&str> = pins.tools.iter().map(|it| it.name.as_str()).collect();
    let names = names::of(&pins.server, &raw);
    let why = |it: &Definition| {
        let is_alike = (!names.contains_key(&it.name)).then(|| "another tool of the server has its name".to_owned());
        Some(format!("`{}`: {}", it.name, is_alike.or_else(|| schema::normalised(&it.input).err())?))
    };
    pins.tools.iter().filter_map(why).collect()
}

/// How a tool is offered; `None` where its schema cannot be.
fn spec(server: &str, it: &Definition, name: &str) -> Option<ToolSpec> {
    let parameters = schema::normalised(&it.input).ok()?;
    let description = if it.description.trim().is_empty() {
        format!("The tool {} of the MCP server {server}.", it.title.as_deref().unwrap_or(&it.name))
    } else {
        it.description.clone()
    };
    Some(ToolSpec {
        name: name.into(),
        description: description.into(),
        parameters: parameters.into(),
        reads_only: false,
        streams: "reads nothing from stdin; prints what the server answers".into(),
    })
}

fn size(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.parameters.to_string().len()
}

/// One line for each server whose tools are found by search.
fn index(found: &[Found]) -> String {
    let searched: Vec<&Found> = found.iter().filter(|it| it.exposure == Exposure::Search).collect();
    if searched.is_empty() {
        return String::new();
    }
    let room = MAX_INDEX / searched.len().max(1);
    let mut text = String::new();
    for it in searched {
        let mut line = it.server.name.clone();
        if !it.tools.is_empty() {
            line.push_str(&format!(" ({} tools): ", it.tools.len()));
            let names: Vec<&str> = it.tools.iter().map(|(definition, _)| definition.name.as_str()).collect();
            line.push_str(&names.join(", "));
        }
        if line.len() + 1 > room {
            line.truncate(line.floor_char_boundary(room.saturating_sub(1 + '…'.len_utf8())));
            line.push('…');
        }
        text.push_str(&line);
        text.push('\n');
    }
    text.truncate(text.floor_char_boundary(MAX_INDEX));
    text
}

/// The offer after a Provider has refused the definition of this tool: it is found by search instead. `None` where the tool is
/// not one of a server that is offered with its definition.
pub fn without_refused(before: &ToolsOffered, name: &str, blobs: &Blobs) -> Option<ToolsOffered> {
    let mut now = before.clone();
    let server = now.servers.iter_mut().find(|it| it.tools.iter().any(|tool| tool.name == name))?;
    let at = server.tools.iter().position(|it| it.name == name)?;
    let tool = server.tools.remove(at);
    let definition = definitions(server, blobs).into_iter().find(|it| it.name == tool.raw);
    let bytes = definition.and_then(|it| spec(&server.name, &it, name)).map_or(0, |it| size(&it) as u64);
    server.refused.push(tool);
    now.bytes = now.bytes.saturating_sub(bytes);
    Some(now)
}

/// Which servers are offered in another way than before, for the user.
pub fn difference(before: &ToolsOffered, now: &ToolsOffered) -> String {
    let of = |offer: &'_ ToolsOffered, name: &str| offer.servers.iter().find(|it| it.name == name).cloned();
    let mut names: Vec<&str> = before.servers.iter().chain(&now.servers).map(|it| it.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let word = |name: &str| match (of(before, name), of(now, name)) {
        (before, now) if before == now => None,
        (None, _) => Some(format!("{name} is new")),
        (Some(_), None) => Some(format!("{name} is gone")),
        (Some(_), Some(_)) => Some(format!("{name} has changed")),
    };
    names.into_iter().filter_map(word).collect::<Vec<_>>().join(", ")
}

/// The registry with the tools that this offer stands for.
pub fn registry(own: &Registry, offered: &ToolsOffered, servers: Option<&Servers>, blobs: &Blobs) -> Registry {
    own.with_all(tools(offered, servers, blobs))
}

fn tools(offered: &ToolsOffered, servers: Option<&Servers>, blobs: &Blobs) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
    for server in &offered.servers {
        let definitions = definitions(server, blobs);
        for tool in &server.tools {
            let Some(definition) = definitions.iter().find(|it| it.name == tool.raw) else { continue };
            let Some(spec) = spec(&server.name, definition, &tool.name) else { continue };
            tools.push(Arc::new(ServerTool {
                spec,
                server: server.name.clone(),
                launch: server.launch.clone(),
                definition: definition.clone(),
                pin: tool.pin.clone(),
                servers: servers.cloned(),
            }));
        }
    }
    if offered.servers.iter().any(|it| it.exposure == Exposure::Search || !it.refused.is_empty()) {
        tools.push(Arc::new(Finder { index: whole_index(offered), servers: servers.cloned() }));
        tools.push(Arc::new(Trampoline { servers: servers.cloned() }));
    }
    if !offered.servers.is_empty() {
        tools.push(Arc::new(Reader { servers: servers.cloned() }));
    }
    tools
}

/// The accepted definitions of a server that is offered with them.
fn definitions(server: &OfferedServer, blobs: &Blobs) -> Vec<Definition> {
    let bytes = server.definitions.as_deref().and_then(|blob| blobs.get(blob).ok());
    bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
}

/// The index of servers, and the tools that a Provider has refused.
fn whole_index(offered: &ToolsOffered) -> String {
    let refused: Vec<&str> = offered.servers.iter().flat_map(|it| &it.refused).map(|it| it.name.as_str()).collect();
    if refused.is_empty() {
        return offered.index.clone();
    }
    let mut text = format!("{}{}\n", offered.index, refused.join(", "));
    text.truncate(text.floor_char_boundary(2 * MAX_INDEX));
    text
}

/// A definition as `mcp_find` shows it.
pub(super) fn shown(spec: &ToolSpec) -> Value {
    serde_json::json!({ "tool": spec.name, "description": spec.description, "arguments": spec.parameters })
}
