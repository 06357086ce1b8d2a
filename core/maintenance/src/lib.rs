//! Work on Sessions at rest: export and import, diagnosis, inspection.
#![forbid(unsafe_code)]

pub mod archive; // a Session as one JSON document, and back
pub mod diagnose; // what is wrong with a Session, and what to do about it
pub mod inspect; // the exact request at any Entry
pub mod search; // words in stored Sessions, and their last messages
