//! What a layer loads: work on another thread, and the layer's use of the result.

use std::fmt;
use std::path::Path;

use pixir_core::event::SessionId;
use pixir_core::{Error, Harness};

use super::{Effect, Overlay, View};
use crate::remedy::Remedies;

/// A view that is a layer of its own kind.
pub(crate) trait Layer: View + Sized + 'static {
    /// The view of this layer, if it is of this kind.
    fn of(overlay: &mut Overlay) -> Option<&mut Self>;
}

/// What a layer wants once it has the result of a load: nothing, or more.
pub(crate) trait Wants {
    fn effects(self) -> Vec<Effect>;
}

impl Wants for () {
    fn effects(self) -> Vec<Effect> {
        Vec::new()
    }
}

impl Wants for Vec<Effect> {
    fn effects(self) -> Vec<Effect> {
        self
    }
}

impl Wants for Option<Effect> {
    fn effects(self) -> Vec<Effect> {
        self.into_iter().collect()
    }
}

/// What a load reads from.
pub(crate) struct Source {
    pub(crate) harness: Harness,
    /// The Session on the screen.
    pub(crate) session: Option<SessionId>,
    pub(crate) remedies: Remedies,
    /// Reads the whole lines at the end of a file, and its size in bytes. A file that does not exist is empty.
    pub(crate) end_of: fn(&Path) -> Result<(String, u64), String>,
}

impl Source {
    /// An error and its remedy, on one line.
    pub(crate) fn one_line(&self, error: &Error) -> String {
        format!("{}; {}", error.message, self.remedies.word(&error.remedy))
    }
}

/// Work that a layer wants done on a thread that may block, and what the layer does with the result.
pub(crate) struct Load(Box<dyn FnOnce(&Source) -> Loaded + Send>);

impl Load {
    /// `read` runs on the thread; `show` gives its result to each open layer of this kind, and returns what that layer
    /// wants next.
    pub(crate) fn new<V: Layer, T: Send + 'static, W: Wants>(
        read: impl FnOnce(&Source) -> T + Send + 'static,
        show: impl Fn(&mut V, &T) -> W + Send + 'static,
    ) -> Load {
        Load(Box::new(move |source| {
            let result = read(source);
            Loaded::new(move |view: &mut V| show(view, &result))
        }))
    }

    pub(crate) fn run(self, source: &Source) -> Loaded {
        (self.0)(source)
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Load")
    }
}

/// The result of work for the layers of one kind. A layer that has closed meanwhile does not get it.
pub(crate) struct Loaded(Box<Give>);

/// Gives what was read to an open layer of its kind.
type Give = dyn Fn(&mut Overlay) -> Vec<Effect> + Send;

impl Loaded {
    pub(crate) fn new<V: Layer, W: Wants>(show: impl Fn(&mut V) -> W + Send + 'static) -> Loaded {
        Loaded(Box::new(move |overlay| V::of(overlay).map_or_else(Vec::new, |view| show(view).effects())))
    }

    /// Gives the result to this layer, if it is of the kind. Returns what the layer wants next.
    pub(crate) fn show(&self, overlay: &mut Overlay) -> Vec<Effect> {
        (self.0)(overlay)
    }
}
