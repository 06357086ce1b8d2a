//! From text and data to lines of a given width.

pub(crate) mod context; // theme, width and folds: what rows depend on besides their text
pub(crate) mod diff; // unified diffs
pub(crate) mod highlight; // syntax colours, worked out beside the screen
pub(crate) mod markdown; // what models write
pub(crate) mod preview; // what a call would do
pub(crate) mod sgr; // colours of programs, in those of the theme
pub(crate) mod split; // a long text in parts
pub(crate) mod text; // widths, wrapping, making the invisible visible
pub(crate) mod thinking; // what a model thinks
