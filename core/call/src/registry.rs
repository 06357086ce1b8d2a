//! The tools of a Session, by name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

use super::{Call, Tool, aliases};
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::Toolset;
use protocol::remedy::Remedy;
use protocol::tool_spec::ToolSpec;

/// The tools of a Session, sorted by name: built-in ones and those that an embedder adds. Cheap to clone.
#[derive(Clone)]
pub struct Registry {
    tools: Arc<[Registered]>,
    attended: Arc<Specs>,
    unattended: Arc<Specs>,
}

/// The specs of each toolset. Each is built when it is first needed, and once: every request shares it.
#[derive(Default)]
struct Specs {
    typed: OnceLock<Arc<[ToolSpec]>>,
    run: OnceLock<Arc<[ToolSpec]>>,
    both: OnceLock<Arc<[ToolSpec]>>,
}

impl Specs {
    fn of(
        &self,
        toolset: Toolset,
        tools: &[Registered],
        spec: impl Fn(&Registered) -> Option<ToolSpec>,
    ) -> Arc<[ToolSpec]> {
        let place = match toolset {
            Toolset::Typed => &self.typed,
            Toolset::Run => &self.run,
            Toolset::Both => &self.both,
            Toolset::None => return Arc::default(),
        };
        let offered = tools.iter().filter(|it| it.is_offered_in(toolset));
        Arc::clone(place.get_or_init(|| offered.filter_map(spec).collect()))
    }
}

/// A tool with its spec.
pub struct Registered {
    /// The name, description and schema that the model receives.
    pub spec: ToolSpec,
    /// The tool.
    pub tool: Arc<dyn Tool>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names(Toolset::Both)).finish()
    }
}

impl Registry {
    /// A registry of these tools. A later tool replaces an earlier one of the same name, so an embedder can replace a
    /// built-in.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Registry {
        let mut by_name = BTreeMap::new();
        for tool in tools {
            let spec = tool.spec();
            by_name.insert(spec.name.to_string(), Registered { spec, tool });
        }
        Registry { tools: by_name.into_values().collect(), attended: Arc::default(), unattended: Arc::default() }
    }

    /// The registry with only those tools whose names are kept.
    #[must_use]
    pub fn keeping(&self, kept: impl Fn(&str) -> bool) -> Registry {
        let tools = self.tools.iter().filter(|it| kept(&it.spec.name));
        Registry::new(tools.map(|it| Arc::clone(&it.tool)))
    }

    /// The registry with one more tool.
    #[must_use]
    pub fn with(&self, tool: Arc<dyn Tool>) -> Registry {
        self.with_all([tool])
    }

    /// The registry with more tools.
    #[must_use]
    pub fn with_all(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Registry {
        Registry::new(self.tools.iter().map(|it| Arc::clone(&it.tool)).chain(tools))
    }

    /// The specs of a toolset, sorted by name.
    pub fn specs(&self, toolset: Toolset) -> Arc<[ToolSpec]> {
        self.attended.of(toolset, &self.tools, |it| Some(it.spec.clone()))
    }

    /// The same, without what asks the user, for a Session where no user can answer.
    pub fn specs_unattended(&self, toolset: Toolset) -> Arc<[ToolSpec]> {
        self.unattended.of(toolset, &self.tools, |it| it.tool.spec_unattended(&it.spec))
    }

    fn names(&self, toolset: Toolset) -> impl Iterator<Item = &str> {
        self.tools.iter().filter(move |it| it.is_offered_in(toolset)).map(|it| &*it.spec.name)
    }

    /// The call as it is carried out: under our names, and by the tool that reaches one which the Session does not
    /// offer by itself, such as one of a server under search.
    pub(crate) fn resolved<'a>(&self, call: &'a Call, toolset: Toolset) -> Cow<'a, Call> {
        let call = aliases::call(call);
        if self.named(&call.tool).is_some() {
            return call;
        }
        let offered = self.tools.iter().filter(|it| it.is_offered_in(toolset));
        let mut standing_in = offered.filter_map(|it| Some((it, it.tool.standing_in_for(&call.tool, &call.args)?)));
        match standing_in.next() {
            Some((it, args)) => Cow::Owned(Call { tool: it.spec.name.to_string(), args, ..call.into_owned() }),
            None => call,
        }
    }

    /// The tool that a model calls by this name, in any toolset. Other programs write `mcp__SERVER__TOOL`, and a server's own
    /// list of tools makes `SERVER.TOOL` of it.
    fn named(&self, name: &str) -> Option<&Registered> {
        let of = |name: &str| self.tools.binary_search_by(|it| (*it.spec.name).cmp(name)).ok();
        let of_server = || {
            let name = name.strip_prefix("mcp__").unwrap_or(name);
            of(name).or_else(|| of(&name.replacen('.', "__", 1)))
        };
        of(name).or_else(|| of(aliases::tool(name)?)).or_else(of_server).map(|at| &self.tools[at])
    }

    /// The tool with this name, if this toolset offers it.
    ///
    /// # Errors
    /// `UNKNOWN_TOOL`, with the nearest name and all names.
    pub fn find(&self, name: &str, toolset: Toolset) -> Result<&Registered> {
        let named = self.named(name);
        if let Some(it) = named.filter(|it| it.is_offered_in(toolset)) {
            return Ok(it);
        }
        let all = self.names(toolset).collect::<Vec<_>>().join(", ");
        let shown: String = name.escape_debug().take(80).collect();
        if toolset == Toolset::None {
            let message = format!("the tool `{shown}` is not offered: this session has no tools");
            return Err(Error::new(Code::UnknownTool, message, "answer in words").with("input", shown));
        }
        let fix = match nearest(name, self.names(toolset)) {
            _ if toolset == Toolset::Run => {
                let none = Value::Object(Map::new());
                let standing_in = || self.tools.iter().find(|it| it.tool.standing_in_for(name, &none).is_some());
                let found = named.or_else(standing_in).and_then(|it| it.tool.run_command());
                let command = found.unwrap_or("<program> <argument>…").replace("TOOL", &shown);
                format!("the tool `run` with the command `{command}`; its command `help` lists all").into()
            }
            Some(near) => Remedy::nearest(near).and_text(format!(" Available: {all}")),
            None => format!("one of: {all}").into(),
        };
        Err(Error::new(Code::UnknownTool, format!("the tool `{shown}` is not offered"), fix).with("input", shown))
    }
}

impl Registered {
    fn is_offered_in(&self, toolset: Toolset) -> bool {
        toolset != Toolset::None && (toolset == Toolset::Both || self.tool.toolset() == toolset)
    }
}
