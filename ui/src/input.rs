//! From a key or a typed line to the verb that it means.

pub(crate) mod action; // every verb once: its keys, its words, what it does
pub(crate) mod keymap; // which keys mean which verb, where
pub(crate) mod keys; // keys as people write them
pub(crate) mod slash; // slash commands
