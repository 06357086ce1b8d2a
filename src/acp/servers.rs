//! The MCP servers that a client brings along.

use std::collections::BTreeMap;

use pixir_core::{McpServer, usable_servers};
use serde_json::Value;

/// The servers of a request that can be used, and why the others cannot.
pub(super) fn of(params: &Value) -> (BTreeMap<String, McpServer>, Vec<String>) {
    let (mut all, mut left_out) = (BTreeMap::new(), Vec::new());
    for it in params["mcpServers"].as_array().into_iter().flatten() {
        let Some(name) = it["name"].as_str() else { continue };
        let text = |key: &str| it[key].as_str().map(str::to_owned);
        let server = match (text("command"), text("url"), it["type"].as_str()) {
            (Some(command), ..) => McpServer {
                command: Some(command),
                args: it["args"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .map(str::to_owned)
                    .collect(),
                env: pairs(&it["env"]),
                ..McpServer::default()
            },
            (None, Some(url), None | Some("http")) => {
                McpServer { url: Some(url), headers: pairs(&it["headers"]), ..McpServer::default() }
            }
            (None, ..) => {
                left_out.push(format!("{name}: pixir speaks stdio and Streamable HTTP"));
                continue;
            }
        };
        all.insert(name.to_owned(), server);
    }
    let (usable, faults) = usable_servers(all);
    left_out.extend(faults.into_iter().map(|it| it.message));
    (usable, left_out)
}

/// `[{"name": …, "value": …}]`.
fn pairs(list: &Value) -> BTreeMap<String, String> {
    let pair = |it: &Value| Some((it["name"].as_str()?.to_owned(), it["value"].as_str()?.to_owned()));
    list.as_array().into_iter().flatten().filter_map(pair).collect()
}
