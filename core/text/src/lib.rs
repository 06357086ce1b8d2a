//! Text at the edges: what a terminal sequence, a size or a media type looks like. It imports nothing of ours but the
//! vocabulary.
#![forbid(unsafe_code)]

pub mod clean; // text of others, made harmless
pub mod edits; // two sequences compared, unified diffs
pub mod encoding; // text in other encodings than UTF-8
pub mod form; // byte order mark and ends of lines, kept
pub mod human; // sizes, durations, names on one line
pub mod json_rpc; // messages of JSON-RPC
pub mod long_line; // long lines, cut
pub mod media; // text, image or other bytes
pub mod strip; // terminal sequences out of a stream of bytes
