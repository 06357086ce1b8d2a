//! What the user can do, and the keys and slash commands for it. Only a table: `update` carries actions out.

pub(crate) mod action; // every action once: its name, keys, slash command
pub(crate) mod keymap; // which keys trigger which action, where
pub(crate) mod keys; // keys as the configuration writes them
pub(crate) mod slash; // slash commands
