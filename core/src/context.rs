//! What the model is sent: instructions, documents, skills and History, cut to its window.

pub mod compaction; // where to cut a long History, and what to keep
pub mod library; // past Sessions, memories and skills, for tools to search
pub mod prompt; // instructions, context, tools and History as one request
pub mod skills; // find, read and activate SKILL.md
