//! What the model is sent: instructions, documents, skills and History, cut to its window.

pub(crate) mod compaction; // where to cut a long History, and what to keep
pub(crate) mod contributions; // what a workspace brings along, in force only with trust
pub(crate) mod library; // past Sessions, memories and skills, for tools to search
pub mod prompt; // instructions, context, tools and History as one request
pub(crate) mod skills; // find, read and activate SKILL.md
pub(crate) mod templates; // messages that the user sends by a name
