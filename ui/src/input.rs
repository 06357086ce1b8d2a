//! The user's actions, with their keys and slash commands. Only a table: `update` carries the actions out.

pub(crate) mod action; // the table of actions: name, keys, slash command
pub(crate) mod argument; // what follows the name of a slash command
pub(crate) mod keymap; // the bindings of keys to actions, by scope
pub(crate) mod keys; // the notation of keys
pub(crate) mod offer; // slash commands of templates and skills
pub(crate) mod slash; // slash commands
