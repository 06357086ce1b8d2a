//! Turns text and data into lines of a given width.

pub(crate) mod agents; // an agent in words, and on a line
pub(crate) mod amount; // tokens: short numbers, bars
pub(crate) mod context; // theme, width and folds
pub(crate) mod diff; // unified diffs
pub(crate) mod figures; // counts, ages, percentiles
pub(crate) mod highlight; // syntax colours, computed in the background
pub(crate) mod lanes; // trees as rows with lanes
pub(crate) mod markdown; // Markdown of messages
pub(crate) mod marked; // letters that a search has found
pub(crate) mod preview; // previews of calls
pub(crate) mod report; // sections of values, checks and tables
pub(crate) mod sgr; // colours in program output, mapped to the theme
pub(crate) mod split; // long texts in parts
pub(crate) mod text; // width, wrapping, escaping
pub(crate) mod thinking; // reasoning of models
