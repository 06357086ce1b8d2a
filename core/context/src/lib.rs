//! What the model is sent: instructions, documents, skills and History, cut to its window.
#![forbid(unsafe_code)]

pub mod arguments; // words after the name of a template or a skill
pub mod compaction; // where to cut a long History, and what to keep
pub mod contributions; // what a workspace brings along, in force only with trust
pub mod documents; // what is said before the conversation: AGENTS.md, the environment
pub mod environment; // where the model is, and what it may do
pub mod folders; // folders beside the workspace, and what is taken from them
mod finder; // files of one kind, of the user and of the workspace
pub mod git; // branch, commits and changed files, read without git
mod imports; // names of other documents in a context file
mod instructions; // one body for all Providers, a last block for the toolset
pub mod ledger; // what takes up the window, segment by segment
pub mod lighter; // what is left out after a server refused a request for its size
pub mod library; // past Sessions, memories and skills, for tools to search
mod project; // languages and commands, judged by files
pub mod prompt; // instructions, context, tools and History as one request
pub mod review; // changes that the user reviews
pub mod roles; // what an agent is for, and what it may do at most
pub mod servers; // MCP servers that the workspace brings along
pub mod sketch; // a first AGENTS.md, made from file names
pub mod skills; // find, read and activate SKILL.md
pub mod templates; // messages that the user sends by a name
pub mod tool_names; // our names of tools, and those of other programs
pub mod workflows; // files of workflows
mod title; // what a list of the context calls an Entry
