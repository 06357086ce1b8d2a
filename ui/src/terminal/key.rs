//! Keys and mouse events, independent of the library and the terminal that they come from.

use std::ops::{BitOr, BitOrAssign, Sub};

/// A key, without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyCode {
    Backspace,
    Enter,
    Left,
    Right,
    Up,
    Down,
    Home,
    End,
    PageUp,
    PageDown,
    Tab,
    /// Shift+Tab, which terminals report as a key of its own.
    BackTab,
    Delete,
    Insert,
    /// F1 is `F(1)`.
    F(u8),
    Char(char),
    Esc,
    /// A key that no action can be bound to.
    Null,
}

/// The modifier keys that are held down, as a set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct KeyModifiers(u8);

impl KeyModifiers {
    pub(crate) const NONE: KeyModifiers = KeyModifiers(0);
    pub(crate) const SHIFT: KeyModifiers = KeyModifiers(1);
    pub(crate) const CONTROL: KeyModifiers = KeyModifiers(2);
    pub(crate) const ALT: KeyModifiers = KeyModifiers(4);
    /// The window system's own key: Super, Windows, Command.
    pub(crate) const SUPER: KeyModifiers = KeyModifiers(8);

    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Holds every modifier of `other`.
    pub(crate) const fn contains(self, other: KeyModifiers) -> bool {
        self.0 & other.0 == other.0
    }

    /// Holds any modifier of `other`.
    pub(crate) const fn intersects(self, other: KeyModifiers) -> bool {
        self.0 & other.0 != 0
    }

    /// At most Shift is held: with a character key this types text.
    pub(crate) fn is_typing(self) -> bool {
        (self - KeyModifiers::SHIFT).is_empty()
    }
}

impl BitOr for KeyModifiers {
    type Output = KeyModifiers;

    fn bitor(self, other: KeyModifiers) -> KeyModifiers {
        KeyModifiers(self.0 | other.0)
    }
}

impl BitOrAssign for KeyModifiers {
    fn bitor_assign(&mut self, other: KeyModifiers) {
        self.0 |= other.0;
    }
}

impl Sub for KeyModifiers {
    type Output = KeyModifiers;

    fn sub(self, other: KeyModifiers) -> KeyModifiers {
        KeyModifiers(self.0 & !other.0)
    }
}

/// Whether a key goes down, is held down, or goes up. Only the kitty keyboard protocol reports the last two.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum KeyEventKind {
    #[default]
    Press,
    Repeat,
    Release,
}

/// A key as the terminal reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyEvent {
    pub(crate) code: KeyCode,
    pub(crate) modifiers: KeyModifiers,
    pub(crate) kind: KeyEventKind,
}

impl KeyEvent {
    pub(crate) fn press(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent { code, modifiers, kind: KeyEventKind::Press }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseButton {
    Left,
    Middle,
    Right,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseEventKind {
    Down(MouseButton),
    Up(MouseButton),
    Drag(MouseButton),
    Moved,
    ScrollUp,
    ScrollDown,
    ScrollLeft,
    ScrollRight,
}

/// A click, a movement or a turn of the wheel; the first column and row are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MouseEvent {
    pub(crate) kind: MouseEventKind,
    pub(crate) column: u16,
    pub(crate) row: u16,
}
