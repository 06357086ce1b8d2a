//! Prompts and resources of servers, for the user who writes a message. Nothing of them is sent before the user sends it.

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Configured, Servers};
use context::arguments;
use protocol::error::{Code, Error, Result, nearest};
use protocol::remedy::Remedy;
use text::clean::without_hidden;

/// The most prompts of one server.
const MAX_PROMPTS: usize = 64;
/// The most arguments of a prompt.
const MAX_ARGUMENTS: usize = 8;
/// The longest text about a prompt or an argument, characters.
const MAX_ABOUT: usize = 200;
/// The longest text that a prompt gives, bytes.
const MAX_TEXT: usize = 64 << 10;
/// The most resources that are offered.
const MAX_RESOURCES: usize = 50;

/// A prompt of a server, as it was at the last contact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The server's name of it.
    pub name: String,
    #[serde(default)]
    pub about: String,
    /// The names of its arguments, those that it needs first.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// How many of them it needs.
    #[serde(default)]
    pub needed: usize,
}

/// A prompt of a server that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrompt {
    /// By what it is called: `SERVER:PROMPT`.
    pub name: String,
    /// What it is for, by the server's word.
    pub about: String,
    /// The names of the arguments that it needs.
    pub needs: Vec<String>,
    /// The names of those that may be left out.
    pub optional: Vec<String>,
}

impl Prompt {
    /// The prompts of a list. One without a usable name is left out.
    pub(super) fn read(listed: &[Value]) -> Vec<Prompt> {
        let short = |it: &Value| {
            let text = without_hidden(it.as_str().unwrap_or_default());
            text.lines().next().unwrap_or_default().chars().take(MAX_ABOUT).collect::<String>()
        };
        let prompt = |it: &Value| {
            let name = it["name"].as_str().filter(|it| !it.is_empty() && it.len() <= 256)?;
            let all: Vec<&Value> = it["arguments"].as_array().into_iter().flatten().take(MAX_ARGUMENTS).collect();
            let is_needed = |it: &&&Value| it["required"] == true;
            let named = |it: &&Value| it["name"].as_str().map(str::to_owned);
            let needed: Vec<String> = all.iter().filter(is_needed).filter_map(named).collect();
            let rest = all.iter().filter(|it| !is_needed(it)).filter_map(named);
            Some(Prompt {
                name: name.to_owned(),
                about: short(if it["description"].is_string() { &it["description"] } else { &it["title"] }),
                needed: needed.len(),
                arguments: needed.into_iter().chain(rest).collect(),
            })
        };
        listed.iter().filter_map(prompt).take(MAX_PROMPTS).collect()
    }

    /// By what the user calls it: a name without blanks.
    fn called(&self, server: &str) -> String {
        let letter = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
        format!("{server}:{}", self.name.chars().map(letter).collect::<String>())
    }
}

impl Servers {
    fn prompts_in_force(&self) -> Vec<(Configured, Prompt)> {
        let in_force = self.configured().into_iter().filter(Configured::is_in_force);
        let all = in_force.flat_map(|it| {
            let prompts = self.pins(&it).ok().flatten().map_or(Vec::new(), |pins| pins.prompts);
            prompts.into_iter().map(move |prompt| (it.clone(), prompt))
        });
        all.collect()
    }

    /// The prompts of all servers, as they were at the last contact. No server is started. Blocks while it reads files.
    pub fn prompts(&self) -> Vec<ServerPrompt> {
        let shown = |(server, it): &(Configured, Prompt)| ServerPrompt {
            name: it.called(&server.name),
            about: it.about.clone(),
            needs: it.arguments[..it.needed.min(it.arguments.len())].to_vec(),
            optional: it.arguments[it.needed.min(it.arguments.len())..].to_vec(),
        };
        self.prompts_in_force().iter().map(shown).collect()
    }

    /// The text that a prompt gives, with these words as its arguments.
    ///
    /// # Errors
    /// `TEMPLATE_NOT_FOUND`, `INVALID_ARGS`, and those of a call.
    pub fn prompt<'a>(&'a self, called: &'a str, args: &'a str) -> BoxFuture<'a, Result<String>> {
        Box::pin(self.text_of(called, args))
    }

    async fn text_of(&self, called: &str, args: &str) -> Result<String> {
        let this = self.clone();
        let all = call::off_loop(move || Ok(this.prompts_in_force())).await?;
        let found = all.iter().find(|(server, it)| it.called(&server.name) == called);
        let Some((server, prompt)) = found else {
            let names: Vec<String> = all.iter().map(|(server, it)| it.called(&server.name)).collect();
            let fix = match nearest(called, names.iter().map(String::as_str)) {
                Some(near) => Remedy::nearest(near),
                None => "the servers have no such prompt".into(),
            };
            let message = format!("there is no prompt `{}`", called.escape_debug());
            return Err(Error::new(Code::TemplateNotFound, message, fix).with("input", called));
        };
        let mut words = arguments::split(args);
        if words.len() < prompt.needed {
            let missing = prompt.arguments[words.len()..prompt.needed].join(", ");
            return Err(Error::new(Code::InvalidArgs, format!("{called} needs {missing}"), "name them behind it"));
        }
        if words.len() > prompt.arguments.len() {
            // The last one takes the rest.
            let rest = words.split_off(prompt.arguments.len().saturating_sub(1)).join(" ");
            words.push(rest);
        }
        let given: Map<String, Value> =
            prompt.arguments.iter().cloned().zip(words.into_iter().map(Value::from)).collect();
        let contact = self.contact(server).await?;
        let text = contact.server.prompt(&contact.running, &prompt.name, given, server.server.call_limit()).await?;
        let mut text = without_hidden(&contact.server.secrets().masked(&text));
        if text.len() > MAX_TEXT {
            text.truncate(text.floor_char_boundary(MAX_TEXT));
            text.push_str(&format!("\n[the server's text is longer; these are its first {} KB]", MAX_TEXT >> 10));
        }
        Ok(text)
    }

    /// The resources of a server whose address holds these letters, as a message mentions them: `SERVER:URI`.
    ///
    /// # Errors
    /// Those of a call.
    pub fn resources<'a>(&'a self, name: &'a str, letters: &'a str) -> BoxFuture<'a, Result<Vec<String>>> {
        Box::pin(self.matching(name, letters))
    }

    async fn matching(&self, name: &str, letters: &str) -> Result<Vec<String>> {
        let it = self.find_apart(name).await?;
        let contact = self.contact(&it).await?;
        let all = contact.server.resources(&contact.running, it.server.call_limit()).await?;
        let letters = letters.to_lowercase();
        let is_plain = |uri: &String| !uri.is_empty() && !uri.contains(|c: char| c.is_whitespace() || c == '"');
        let matches = |uri: &String| uri.to_lowercase().contains(&letters);
        let all = all.into_iter().map(|it| without_hidden(&it)).filter(is_plain).filter(matches);
        Ok(all.take(MAX_RESOURCES).map(|uri| format!("{name}:{uri}")).collect())
    }

    /// Whether a server in force has this name.
    pub fn is_named(&self, name: &str) -> bool {
        config::mcp::is_name(name) && self.configured().iter().any(|it| it.name == name && it.is_in_force())
    }

    /// The servers that have had resources at the last contact, and whose name begins so.
    pub fn with_resources(&self, letters: &str) -> Vec<String> {
        let has = |it: &Configured| self.pins(it).ok().flatten().is_some_and(|pins| pins.has_resources);
        let all = self.configured().into_iter().filter(|it| it.name.starts_with(letters) && it.is_in_force());
        all.filter(has).map(|it| it.name).collect()
    }
}
