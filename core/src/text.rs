//! Text at the edges: what a terminal sequence, a size or a media type looks like. It imports nothing of ours but the
//! vocabulary.

pub mod clean; // text of others, made harmless
pub mod human; // sizes, durations, names on one line
pub(crate) mod long_line; // long lines, cut
pub(crate) mod media; // text, image or other bytes
pub mod schema; // a JSON value against a JSON Schema
pub mod strip; // terminal sequences out of a stream of bytes
