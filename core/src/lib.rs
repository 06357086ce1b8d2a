//! The agent without a face: Sessions, Turns, Providers, tools, and an append-only Log that is the truth.
//!
//! A Presenter sends [`Input`]s to a [`Handle`] and hears [`Event`]s; it never owns History, permissions or tools. Nothing
//! here draws, prints or reads the environment, and two harnesses in one process do not know each other. Two things are the
//! process's own, because it has them once: the table of child processes, and the proxies and authorities of HTTP, which
//! are read from the environment.
//!
//! Each room is a crate beside this file (`core/session`, `core/turn`, …), from `protocol` on the ground floor up to
//! `harness`. This crate is their façade: it names what an embedder needs. A tool of one's own begins at [`call`], a
//! Provider of one's own at [`provider`].
#![forbid(unsafe_code)]
#![warn(missing_docs)]

// The rooms that an embedder enters whole.
pub use ::call; // the way of a tool call
pub use ::provider; // trait Provider and its dialects
pub use ::run; // the run language: one line is a whole workflow
pub use ::text; // text at the edges

// The vocabulary: what a Presenter asks, what it hears, what can go wrong.
pub use ::net::{proxy, tls};
pub use ::permissions::{Readable, Takes, UnaskedProgram, prove, rules, unasked_programs};
pub use ::protocol::effort::Effort;
pub use ::protocol::error::{Code, Error, ErrorKind, Result};
pub use ::protocol::event::{Entry, Event, Fact, Live};
pub use ::protocol::input::{Accepted, Decision, Input};
pub use ::protocol::remedy::Remedy;
pub use ::protocol::sandbox::Tier;
pub use ::protocol::{agent, call_info, error, event, input, now, remedy, rule, servers, tool_spec, trust, verbs};

// Sessions that run.
pub use ::config::{
    AgentsConfig, CompactionConfig, Config, Environment, Expose, LimitsConfig, McpLimits, McpServer, OAuth, OnChange,
    Patience, RequestsConfig, StartFolder, SummaryAuthor, catalogue, credentials, edit, layers, project::PROJECT_KEYS,
};
pub use ::door::{Handle, Watch};
pub use ::harness::{Harness, McpServers, SessionDefaults, builtin_tools, usable_servers};
pub use ::mcp::login::{LoginOffer, ServerLogin};
pub use ::mcp::prompts::ServerPrompt;
pub use ::mcp::sign_out::SignedOut;
pub use ::provider::{budget::Budget, rest_between_parts};
pub use ::session::{AgentOptions, CompactionOptions, Limits, Options};
pub use ::workflow::{Fault as WorkflowFault, PlannedStep, Rehearsed, RunView, StepView, WorkflowFile, WorkflowPlan};

// Sessions at rest.
pub use ::maintenance::{archive, diagnose, inspect, search};
pub use ::storage::{blobs::Blobs, log, rules as saved_rules, store, trust::TrustDecision};

// What a Log means.
pub use ::context::{
    arguments, compaction,
    contributions::{NotRead, ProjectFile, project_config},
    git::Git,
    ledger, prompt, review,
    roles::{PLAN as PLAN_ROLE, Role, RoleKind, RoleLimits, RoleOrigin},
    sketch::Sketch,
    skills::{Fields, Finding, Skill, Validated, Weight},
    templates::Template,
};
pub use ::conversation::{history, tree, usage};
pub use ::files::{changes, diff, new_file::NewFile, walk::Border, walk::has_blocking_rules};

// Processes and signals of the program around it, and its part as the sandbox's launcher.
pub use ::process::{EndSignals, OfThePerson, adopt_orphans, between_starts};
pub use ::sandbox::{LAUNCHER, Policy, launch_through, run_as_launcher, working_tier};
#[cfg(target_os = "linux")]
pub use ::sandbox::{Lack, lacks};
