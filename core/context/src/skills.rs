//! Skills: folders with a `SKILL.md`. Nothing in such a folder is run by finding, reading or activating a skill.

pub mod activation; // a skill's text joins the conversation
mod digest; // the hash of a skill's folder
mod fields; // the front matter's fields, as the format names them
mod finding; // what is wrong in a file, where, and what to do
pub mod found; // the skills of the user and of the workspace
pub(crate) mod front_matter; // the YAML between two `---` lines, read leniently
pub mod index; // names and descriptions, for the model
pub mod placeholders; // $ARGUMENTS and its kin
pub mod resources; // files beside a SKILL.md
pub mod text; // a file's bytes as text
pub(crate) mod validation; // every fault of a SKILL.md
mod yaml; // YAML as JSON values, within bounds

pub use digest::of_bytes as digest_of_bytes;
pub use fields::Fields;
pub use finding::{Finding, Weight};
pub use found::Skill;
pub use validation::Validated;

#[cfg(test)]
mod tests; // files as people write them
