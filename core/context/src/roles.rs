//! Roles: what an agent is for, and what it may do at most. pixir has some; others are Markdown files of the user and of the
//! workspace.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::{Value, json};

use crate::skills::Finding;
use permissions::{Bounds, SetBy};
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{AgentContext, Isolation, Mode};
use protocol::remedy::Remedy;
use protocol::trust::Standing;

mod builtin; // the roles that pixir has by itself
pub mod found; // roles of the user and of the workspace
mod reading; // a file as a role

/// The name of the role that plans: while a Session has it, nothing is changed.
pub const PLAN: &str = "plan";

/// What an agent is for, and what it may do at most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Role {
    /// The name, as the model and the user choose it.
    pub name: String,
    /// What it is for, in one line.
    pub description: String,
    /// Whom it can be given to.
    pub kind: RoleKind,
    /// The most permissive mode; `None` leaves that to the parent.
    pub mode: Option<Mode>,
    /// The only tools; `None` leaves all.
    pub tools: Option<Vec<String>>,
    /// Patterns of the only commands; `None` leaves all.
    pub commands: Option<Vec<String>>,
    /// Globs of the only files that it changes; `None` leaves all.
    pub writes: Option<Vec<String>>,
    /// Whether its programs may get a network; `None` leaves that to the user's rules.
    pub web: Option<bool>,
    /// The model that answers, as `provider/model`; `None` takes the parent's.
    pub model: Option<String>,
    /// The effort; `None` takes the parent's.
    pub effort: Option<String>,
    /// Limits of a Turn.
    pub limits: RoleLimits,
    /// The roles that it may start agents of; `None` leaves all.
    pub spawns: Option<Vec<String>>,
    /// The JSON Schema of what it reports.
    pub schema: Option<Value>,
    /// The files that it works on, if the call does not keep it further away from the workspace; `None` leaves it to pixir.
    pub isolation: Option<Isolation>,
    /// What it knows of the conversation of the Session that starts it, if the call does not give it more.
    pub context: AgentContext,
    /// Skills whose text it begins with.
    pub skills: Vec<String>,
    /// What it is told about its work.
    pub body: String,
    /// Where it comes from.
    pub origin: RoleOrigin,
    /// The path of its file.
    pub path: Option<PathBuf>,
    /// Whether it can be used.
    pub standing: Standing,
    /// The hash of its file; absent for built-in roles, and where the file cannot be read.
    pub digest: Option<String>,
    /// What its author should know.
    pub findings: Vec<Finding>,
    /// Files of other roles with its name, which it hides.
    pub hides: Vec<PathBuf>,
}

/// Whom a role can be given to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleKind {
    /// Agents that another agent starts.
    #[default]
    Child,
    /// The Session that the user talks to.
    Primary,
    /// Both.
    Both,
}

impl RoleKind {
    /// The name that files and lists use.
    pub const fn name(self) -> &'static str {
        match self {
            RoleKind::Child => "child",
            RoleKind::Primary => "primary",
            RoleKind::Both => "both",
        }
    }
}

/// Limits of a Turn of an agent. They only lower those of the settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RoleLimits {
    /// The most rounds.
    pub rounds: Option<u32>,
    /// The most tokens.
    pub tokens: Option<u64>,
    /// The most seconds.
    pub seconds: Option<u64>,
}

/// Where a role comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RoleOrigin {
    /// pixir has it.
    Builtin,
    /// The user's own file.
    User,
    /// A file of the workspace.
    Workspace,
}

impl RoleOrigin {
    /// The name that lists show.
    pub const fn name(self) -> &'static str {
        match self {
            RoleOrigin::Builtin => "built in",
            RoleOrigin::User => "user",
            RoleOrigin::Workspace => "workspace",
        }
    }
}

/// What every child is told about how it works for another agent.
const CHILD: &str = "\
You are an agent that another agent started with one task. Do this task and nothing else. \
Your last message is your report: the agent that started you reads at most 4,000 bytes of it, and nothing else. \
Say what you found or did, name places as path:line, and say what is missing or failed.";

/// The same for one whose report has a schema.
const REPORTS: &str = "\
You are an agent that another agent started with one task. Do this task and nothing else. \
Your result is one call of the tool `report`. It ends your work, and the agent that started you reads nothing else. \
Name places as path:line, and say in it what is missing or failed.";

impl Role {
    /// A role with nothing set but its name.
    fn plain(name: &str) -> Role {
        Role {
            name: name.to_owned(),
            description: String::new(),
            kind: RoleKind::Child,
            mode: None,
            tools: None,
            commands: None,
            writes: None,
            web: None,
            model: None,
            effort: None,
            limits: RoleLimits::default(),
            spawns: None,
            schema: None,
            isolation: None,
            context: AgentContext::default(),
            skills: Vec::new(),
            body: String::new(),
            origin: RoleOrigin::Builtin,
            path: None,
            standing: Standing::InForce,
            digest: None,
            findings: Vec::new(),
            hides: Vec::new(),
        }
    }

    /// The roles that pixir has by itself.
    pub fn builtin() -> Vec<Role> {
        builtin::all()
    }

    /// Whether it can be used as it is.
    pub fn is_active(&self) -> bool {
        self.standing == Standing::InForce
    }

    /// Whether an agent can start an agent of this role.
    pub fn is_for_children(&self) -> bool {
        self.kind != RoleKind::Primary
    }

    /// Whether the user can give it to the Session.
    pub fn is_for_sessions(&self) -> bool {
        self.kind != RoleKind::Child
    }

    /// Whether it leaves any role to the agents that it may start.
    pub fn leaves_any(&self) -> bool {
        self.spawns.as_ref().is_none_or(|roles| !roles.is_empty())
    }

    /// What it leaves to the Session that has it.
    pub fn bounds(&self) -> Bounds {
        Bounds {
            by: SetBy::Role(self.name.clone()),
            mode: self.mode,
            tools: self.tools.clone(),
            commands: self.commands.clone(),
            writes: self.writes.clone(),
            no_network: self.web == Some(false),
        }
    }

    /// A role of this name that cannot be found any more. It allows nothing but looking.
    pub fn missing(name: &str) -> Role {
        Role {
            mode: Some(Mode::ReadOnly),
            body: "The definition of this role is gone. Change nothing, and tell the user so.".to_owned(),
            ..Role::plain(name)
        }
    }

    /// The role of this name, as far as it can be used for an agent of another one.
    ///
    /// # Errors
    /// `NOT_FOUND` with the nearest name, `PERMISSION_DENIED` for one that is not trusted, `INVALID_ARGS` for one that cannot
    /// be enforced or is not for agents.
    pub fn for_child<'a>(roles: &'a [Role], name: &str) -> Result<&'a Role> {
        let role = Role::usable(roles, name, Role::is_for_children)?;
        if role.is_for_children() {
            return Ok(role);
        }
        let message = format!("the role `{name}` is for the session itself, not for an agent that it starts");
        Err(Error::new(Code::InvalidArgs, message, one_of(roles, Role::is_for_children)).with("input", name))
    }

    /// The role of this name, as far as the user can give it to the Session.
    ///
    /// # Errors
    /// As [`Role::for_child`].
    pub fn for_session<'a>(roles: &'a [Role], name: &str) -> Result<&'a Role> {
        let role = Role::usable(roles, name, Role::is_for_sessions)?;
        if role.is_for_sessions() {
            return Ok(role);
        }
        let message = format!("the role `{name}` is for agents that another one starts, not for the session itself");
        Err(Error::new(Code::InvalidArgs, message, one_of(roles, Role::is_for_sessions)).with("input", name))
    }

    /// The role of this name, whomever it is for.
    ///
    /// # Errors
    /// `NOT_FOUND`, with the nearest name.
    pub fn named<'a>(roles: &'a [Role], name: &str) -> Result<&'a Role> {
        roles.iter().find(|role| role.name == name).ok_or_else(|| not_found(roles, name, |_| true))
    }

    fn usable<'a>(roles: &'a [Role], name: &str, fits: fn(&Role) -> bool) -> Result<&'a Role> {
        let role = roles.iter().find(|role| role.name == name).ok_or_else(|| not_found(roles, name, fits))?;
        let refused = |code, why: &str, fix: Remedy| {
            Err(Error::new(code, format!("the role `{name}` cannot be used: {why}"), fix).with("input", name))
        };
        match &role.standing {
            Standing::InForce => Ok(role),
            Standing::New | Standing::Inert => {
                let why = "it comes with this workspace, and the user does not trust it";
                refused(Code::PermissionDenied, why, Remedy::TrustWorkspace)
            }
            Standing::Changed => {
                let why = "it comes with this workspace, and it changed since the user was asked about it";
                refused(Code::PermissionDenied, why, Remedy::TrustWorkspace)
            }
            Standing::Unusable { why } => refused(Code::InvalidArgs, why, "fix its file, or take another role".into()),
        }
    }

    /// What the child is told before its task.
    pub fn instructions(&self, reports: bool) -> String {
        let begin = if reports { REPORTS } else { CHILD };
        if self.body.is_empty() { begin.to_owned() } else { format!("{begin}\n\n{}", self.body) }
    }
}

fn not_found(roles: &[Role], name: &str, fits: fn(&Role) -> bool) -> Error {
    let names = || roles.iter().filter(|role| role.is_active() && fits(role)).map(|role| role.name.as_str());
    let fix = nearest(name, names()).map_or_else(|| one_of(roles, fits), str::to_owned);
    Error::new(Code::NotFound, format!("there is no role `{}`", name.escape_debug()), fix).with("input", name)
}

fn one_of(roles: &[Role], fits: fn(&Role) -> bool) -> String {
    let usable = roles.iter().filter(|role| role.is_active() && fits(role));
    let names: Vec<String> = usable.map(|role| format!("{} ({})", role.name, role.description)).collect();
    format!("one of: {}", names.join(", "))
}

/// The most bytes of the list that the model reads.
const MAX_LIST: usize = 4 << 10;

/// The roles that a model may give to agents, besides those that pixir has by itself; `None` where there are none.
pub(crate) fn list_for_model(roles: &[Role]) -> Option<String> {
    let others = roles.iter().filter(|it| it.origin != RoleOrigin::Builtin && it.is_active() && it.is_for_children());
    let mut text = String::new();
    for (at, role) in others.enumerate() {
        let line = format!("{}: {}\n", role.name, role.description);
        if text.len() + line.len() > MAX_LIST {
            text.push_str("and more\n");
            break;
        }
        if at == 0 {
            text.push_str("more roles for spawn_agent:\n");
        }
        text.push_str(&line);
    }
    Some(text.trim_end().to_owned()).filter(|text| !text.is_empty())
}

/// The schema of a reviewer's findings.
fn findings_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "findings": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "path": { "type": "string" },
                    "line": { "type": "integer" },
                    "severity": { "type": "string", "enum": ["high", "medium", "low"] },
                    "confidence": { "type": "string", "enum": ["high", "medium", "low"] },
                    "what": { "type": "string" },
                    "fix": { "type": "string" },
                },
                "required": ["path", "severity", "confidence", "what"],
                "additionalProperties": false,
            } },
            "summary": { "type": "string" },
        },
        "required": ["findings", "summary"],
        "additionalProperties": false,
    })
}
