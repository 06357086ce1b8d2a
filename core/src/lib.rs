//! The agent without a face: Sessions, Turns, Providers, tools, and an append-only Log that is the truth.
//!
//! A Presenter sends [`Input`]s to a [`Handle`] and hears [`Event`]s; it never owns History, permissions or tools. Nothing
//! here draws, prints or reads the environment, and two harnesses in one process do not know each other. The one global
//! is the table of child processes, because a process has only one.
//!
//! The modules are private rooms; what an embedder needs of them is named below and nowhere else. A tool of one's own
//! begins at [`call`], a Provider of one's own at [`provider`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// The rooms, from the top floor down.
mod harness; // the Sessions of one workspace: start, resume, list
mod maintenance; // work on Sessions at rest
mod agents; // child Sessions, and where every Session begins
mod session; // one conversation: the single writer of its Log
mod turn; // ask the model, run its tools, repeat

pub mod run; // the run language: one line is a whole workflow
mod workflow; // graphs of steps: checked, carried out, resumed
mod mcp; // other people's tools, over the Model Context Protocol
mod tools; // the built-in tools, one per file
pub mod call; // the way of a tool call
mod door; // the door to a running Session: Inputs in, Events out
mod context; // what the model is sent
pub mod provider; // trait Provider and its dialects

mod conversation; // what a Log means
mod files; // the workspace and its file versions
mod permissions; // may this call run?
mod sandbox; // the kernel's confinement of programs
mod process; // processes that are stopped together
mod storage; // Logs, and what is stored beside them

mod config; // settings, read once and passed in
mod protocol; // what crosses the boundary
pub mod text; // text at the edges

// The vocabulary: what a Presenter asks, what it hears, what can go wrong.
pub use permissions::rules;
pub use protocol::effort::Effort;
pub use protocol::error::{Code, Error, ErrorKind, Result};
pub use protocol::event::{Entry, Event, Fact, Live};
pub use protocol::input::{Accepted, Decision, Input};
pub use protocol::remedy::Remedy;
pub use protocol::sandbox::Tier;
pub use protocol::{agent, call_info, error, event, input, now, remedy, rule, servers, tool_spec, trust};

// Sessions that run.
pub use config::{
    AgentsConfig, CompactionConfig, Config, Environment, Expose, LimitsConfig, McpLimits, McpServer, OAuth, OnChange,
    Patience, RequestsConfig, StartFolder, SummaryAuthor, catalogue, credentials, edit, layers, project::PROJECT_KEYS,
};
pub use door::{Handle, Watch};
pub use harness::{Harness, McpServers, SessionDefaults, builtin_tools, usable_servers};
pub use mcp::login::{LoginOffer, ServerLogin};
pub use mcp::prompts::ServerPrompt;
pub use mcp::sign_out::SignedOut;
pub use provider::{budget::Budget, rest_between_parts};
pub use session::{AgentOptions, CompactionOptions, Limits, Options};
pub use workflow::{Fault as WorkflowFault, PlannedStep, Rehearsed, RunView, StepView, WorkflowFile, WorkflowPlan};

// Sessions at rest.
pub use maintenance::{archive, diagnose, inspect, search};
pub use storage::{blobs::Blobs, log, rules as saved_rules, store, trust::TrustDecision};

// What a Log means.
pub use context::{
    arguments, compaction,
    contributions::{NotRead, ProjectFile, project_config},
    git::Git,
    ledger, prompt, review,
    roles::{PLAN as PLAN_ROLE, Role, RoleKind, RoleLimits, RoleOrigin},
    sketch::Sketch,
    skills::{Fields, Finding, Skill, Validated, Weight},
    templates::Template,
};
pub use conversation::{history, tree, usage};
pub use files::{changes, diff};

// Processes and signals of the program around it, and its part as the sandbox's launcher.
pub use process::{EndSignals, OfThePerson, adopt_orphans, between_starts};
pub use sandbox::{LAUNCHER, Policy, launch_through, run_as_launcher, working_tier};
