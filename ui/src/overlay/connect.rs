//! Connecting a model: a key that the user pastes, a server of this machine, a sign-in with a browser.

use pixir_core::provider::{Account, LocalServer, MAX_KEY, provider_of};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::narrow::Narrow;
use super::{Effect, Notification, Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::input::slash::fuzzy;
use crate::render::text::{fit, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (84, 16);
/// The most dots that stand for a key.
const DOTS: usize = 40;

/// A key as the user typed or pasted it. It is shown nowhere.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct PastedKey(pub(crate) String);

impl std::fmt::Debug for PastedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PastedKey")
    }
}

/// What the application has to do for the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Look for keys and for servers of this machine.
    Look,
    /// Test this key, store it, and connect its Provider.
    UseKey {
        provider: String,
        key: PastedKey,
    },
    UseLocal {
        provider: String,
    },
    SignIn {
        provider: String,
    },
    /// What the user has pasted in place of a browser that does not come back.
    Answer(PastedKey),
    /// The user does not wait for it any more.
    Cancel,
    /// Show the demo on this terminal, and come back.
    Demo,
}

/// The result of a connection step.
#[derive(Debug, Clone, Copy)]
pub(crate) enum News<'a> {
    /// Providers that take a key.
    Accounts(&'a [Account]),
    /// The model servers of this machine that answer.
    LocalServers(&'a [LocalServer]),
    /// The user can sign in on this page with this code.
    Invited { url: &'a str, code: Option<&'a str> },
    /// The attempt has failed, for this reason.
    Failed(&'a str),
}

/// The ways to a model, in the order of the menu.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Key,
    SignIn,
    Local,
    Demo,
}

impl Way {
    pub(crate) const ALL: [Way; 4] = [Way::Key, Way::SignIn, Way::Local, Way::Demo];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Way::Key => "Paste a key",
            Way::SignIn => "Sign in with a browser",
            Way::Local => "Local server",
            Way::Demo => "Watch the demo",
        }
    }

    /// What chooses it in the menu.
    pub(crate) fn action(self) -> LayerAction {
        match self {
            Way::Key => LayerAction::PasteKey,
            Way::SignIn => LayerAction::SignIn,
            Way::Local => LayerAction::UseLocalServer,
            Way::Demo => LayerAction::WatchDemo,
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Way::Key => "Anthropic, OpenAI, OpenRouter, Gemini, …",
            Way::SignIn => "OpenRouter, a ChatGPT plan, …",
            Way::Local => "ollama, llama.cpp, LM Studio, vLLM",
            Way::Demo => "no key, 40 seconds",
        }
    }
}

/// What the dialog shows.
#[derive(Debug)]
enum Step {
    Menu(ListView),
    /// The Providers, of which one gets a key or a sign-in.
    Providers {
        narrow: Narrow,
        signs_in: bool,
    },
    Key {
        provider: String,
        key: PastedKey,
        error: Option<String>,
    },
    Local(ListView),
    /// The server or the issuer has been asked. Esc goes back to the step before.
    Waiting {
        what: String,
        invitation: Option<(String, Option<String>)>,
        /// The address at which the browser of another machine has ended.
        answer: PastedKey,
        before: Box<Step>,
    },
}

impl Step {
    fn menu() -> Step {
        Step::Menu(ListView::default())
    }

    /// The list of a step that has one.
    fn list_mut(&mut self) -> Option<&mut ListView> {
        match self {
            Step::Menu(list) | Step::Local(list) | Step::Providers { narrow: Narrow { list, .. }, .. } => Some(list),
            Step::Key { .. } | Step::Waiting { .. } => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ConnectView {
    step: Step,
    accounts: Vec<Account>,
    local: Option<Vec<LocalServer>>,
    /// Why the last attempt failed.
    failure: Option<String>,
}

impl ConnectView {
    /// The dialog at its menu, or at one of its ways.
    pub(crate) fn new(way: Option<Way>) -> ConnectView {
        let mut it = ConnectView { step: Step::menu(), accounts: Vec::new(), local: None, failure: None };
        if let Some(way) = way {
            it.enter(way);
        }
        it
    }

    /// Goes to one of the ways. The demo is none: it needs no dialog.
    fn enter(&mut self, way: Way) {
        self.failure = None;
        self.step = match way {
            Way::Key => Step::Providers { narrow: Narrow::default(), signs_in: false },
            Way::SignIn => Step::Providers { narrow: Narrow::default(), signs_in: true },
            Way::Local => Step::Local(ListView::default()),
            Way::Demo => Step::Menu(ListView::at(3)),
        };
    }

    /// Goes back to the step before the attempt, with the reason.
    fn fail(&mut self, why: &str) {
        let step = std::mem::replace(&mut self.step, Step::menu());
        self.step = match step {
            Step::Waiting { before, .. } => *before,
            other => other,
        };
        match &mut self.step {
            Step::Key { error, .. } => *error = Some(why.to_owned()),
            Step::Menu(_) | Step::Providers { .. } | Step::Local(_) | Step::Waiting { .. } => {
                self.failure = Some(why.to_owned());
            }
        }
    }

    fn wait(&mut self, what: String, order: Order) -> Outcome {
        let before = Box::new(std::mem::replace(&mut self.step, Step::menu()));
        self.step = Step::Waiting { what, invitation: None, answer: PastedKey::default(), before };
        Outcome::does(Effect::Connect(order))
    }

    fn listed(&self, narrow: &Narrow, signs_in: bool) -> Vec<&Account> {
        let all = self.accounts.iter().filter(|it| if signs_in { it.signs_in } else { it.takes_key }).collect();
        fuzzy(&narrow.letters, all, |it| it.provider.clone())
    }

    fn rows(&self) -> usize {
        match &self.step {
            Step::Menu(_) => Way::ALL.len(),
            Step::Providers { narrow, signs_in } => self.listed(narrow, *signs_in).len(),
            Step::Local(_) => self.local.as_ref().map_or(0, Vec::len),
            Step::Key { .. } | Step::Waiting { .. } => 0,
        }
    }

    fn choose(&mut self) -> Outcome {
        match &self.step {
            Step::Menu(list) => match Way::ALL.get(list.chosen) {
                Some(Way::Demo) => return Outcome::does(Effect::Connect(Order::Demo)),
                Some(way) => self.enter(*way),
                None => {}
            },
            Step::Providers { narrow, signs_in } => {
                let chosen = self.listed(narrow, *signs_in).get(narrow.list.chosen).map(|it| it.provider.clone());
                match (chosen, signs_in) {
                    (Some(provider), true) => {
                        let what = format!("asking the sign-in server of {provider}…");
                        return self.wait(what, Order::SignIn { provider });
                    }
                    (Some(provider), false) => {
                        self.step = Step::Key { provider, key: PastedKey::default(), error: None };
                    }
                    (None, _) => {}
                }
            }
            Step::Key { provider, key, .. } if !key.0.trim().is_empty() => {
                let order = Order::UseKey { provider: provider.clone(), key: key.clone() };
                let what = format!("{provider} checks the key…");
                return self.wait(what, order);
            }
            Step::Local(list) => {
                if let Some(server) = self.local.as_ref().and_then(|all| all.get(list.chosen)) {
                    let provider = server.provider.clone();
                    return self.wait(format!("connecting to {provider}…"), Order::UseLocal { provider });
                }
            }
            Step::Waiting { answer, .. } if !answer.0.is_empty() => {
                return Outcome::does(Effect::Connect(Order::Answer(answer.clone())));
            }
            Step::Key { .. } | Step::Waiting { .. } => {}
        }
        Outcome::Stay
    }

    /// One step back, or out of the dialog.
    fn back(&mut self) -> Outcome {
        match std::mem::replace(&mut self.step, Step::menu()) {
            Step::Menu(_) => return Outcome::Close,
            Step::Waiting { before, .. } => {
                self.step = *before;
                return Outcome::does(Effect::Connect(Order::Cancel));
            }
            Step::Providers { .. } | Step::Local(_) => {}
            Step::Key { .. } => self.enter(Way::Key),
        }
        self.failure = None;
        Outcome::Stay
    }

    fn go(&mut self, by: isize) {
        let rows = self.rows();
        if let Some(list) = self.step.list_mut() {
            list.scroll(by, rows);
        }
    }
}

// ─── Drawing ───

impl ConnectView {
    fn draw_menu(&self, list: &ListView, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        list.begin();
        let theme = paint.theme;
        let text = "Nothing needs a restart, and the key is stored on this machine only.";
        let said = wrap_lines(&[Span::styled(text, theme.dim())], usize::from(area.width), &[], &[]);
        let first = area.y + 1 + u16::try_from(said.len()).unwrap_or(1);
        for (y, line) in (area.y..area.bottom()).zip(said) {
            canvas.line(line, Rect { y, height: 1, ..area });
        }
        let step = if area.bottom().saturating_sub(first) >= 8 { 2 } else { 1 };
        let abouts = Way::ALL.map(|way| self.about(way));
        // If one of them would be cut, all stand below their titles.
        let is_cut = abouts.iter().any(|about| OPTION + width(about) > usize::from(area.width));
        for (number, (way, about)) in Way::ALL.into_iter().zip(abouts).enumerate() {
            let y = first + step * u16::try_from(number).unwrap_or(0);
            if y >= area.bottom() {
                break;
            }
            let here = Rect { y, height: 1, ..area };
            let key = paint.keys.key_of(way.action()).unwrap_or_default();
            let title = format!("{key}  {}", way.title());
            if step == 2 && is_cut && y + 1 < area.bottom() {
                option(list, canvas, here, number, &title, "", theme);
                let below = Rect { y: y + 1, x: here.x + 3, width: here.width.saturating_sub(3), ..here };
                canvas.line(Line::styled(fit(&about, usize::from(below.width)), theme.dim()), below);
                list.put(Rect { y: y + 1, ..here }, number);
            } else {
                option(list, canvas, here, number, &title, &about, theme);
            }
        }
    }

    /// What is to be said about a way.
    fn about(&self, way: Way) -> String {
        match (way, &self.local) {
            (Way::Local, Some(servers)) if !servers.is_empty() => {
                servers.iter().map(describe).collect::<Vec<_>>().join(", ")
            }
            (Way::Local, Some(_)) => "none answers now: start ollama, LM Studio, …".to_owned(),
            (Way::Local, None) => "looking…".to_owned(),
            (Way::Key | Way::SignIn | Way::Demo, _) => way.about().to_owned(),
        }
    }

    fn draw_providers(&self, narrow: &Narrow, signs_in: bool, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        narrow.list.begin();
        let list = narrow.draw(canvas, area, theme);
        let listed = self.listed(narrow, signs_in);
        if listed.is_empty() {
            let text = match (signs_in, narrow.letters.is_empty()) {
                (_, true) => "reading which keys there are…",
                (_, false) => "No matches",
            };
            let lines = wrap_lines(&[Span::styled(text, theme.dim())], usize::from(list.width), &[], &[]);
            for (y, line) in (list.y..list.bottom()).zip(lines) {
                canvas.line(line, Rect { y, height: 1, ..list });
            }
            return;
        }
        narrow.draw_place(canvas, area, listed.len(), list.height, theme);
        for (y, (number, it)) in
            (list.y..list.bottom()).zip(listed.iter().enumerate().skip(narrow.list.top(list.height)))
        {
            let about = match (&it.source, &it.variable) {
                (Some(source), _) => format!("has a key, from {source}"),
                (None, Some(variable)) => variable.clone(),
                (None, None) => String::new(),
            };
            let here = Rect { y, height: 1, ..list };
            option(&narrow.list, canvas, here, number, &visible(&it.provider), &visible(&about), theme);
        }
    }

    fn draw_local(&self, list: &ListView, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        list.begin();
        let text = match &self.local {
            None => Some("looking for servers on their usual ports…"),
            Some(servers) if servers.is_empty() => {
                Some("No server answers. Start ollama, llama.cpp, LM Studio or vLLM, then open this again.")
            }
            Some(_) => None,
        };
        if let Some(text) = text {
            let lines = wrap_lines(&[Span::styled(text, theme.dim())], usize::from(area.width), &[], &[]);
            for (y, line) in (area.y..area.bottom()).zip(lines) {
                canvas.line(line, Rect { y, height: 1, ..area });
            }
        }
        for (y, (number, it)) in (area.y..area.bottom()).zip(self.local.iter().flatten().enumerate()) {
            let about = match &it.models {
                Ok(models) => models.iter().take(4).cloned().collect::<Vec<_>>().join(", "),
                Err(e) => e.message.clone(),
            };
            let here = Rect { y, height: 1, ..area };
            option(list, canvas, here, number, &describe(it), &visible(&about), theme);
        }
    }
}

impl View for ConnectView {
    fn title(&self) -> &'static str {
        "Connect a model"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Connect, Scope::Overlay]
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![Effect::Connect(Order::Look)]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        let Notification::Connecting(news) = notification else { return };
        match news {
            News::Accounts(accounts) => self.accounts = accounts.to_vec(),
            News::LocalServers(servers) => self.local = Some(servers.to_vec()),
            News::Invited { url, code } => {
                if let Step::Waiting { invitation, .. } = &mut self.step {
                    *invitation = Some((url.to_owned(), code.map(str::to_owned)));
                }
            }
            News::Failed(why) => self.fail(why),
        }
    }

    fn is_loading(&self) -> bool {
        match &self.step {
            Step::Providers { .. } => self.accounts.is_empty(),
            Step::Local(_) => self.local.is_none(),
            Step::Menu(_) | Step::Key { .. } | Step::Waiting { .. } => false,
        }
    }

    fn scroll(&mut self, by: isize) {
        self.go(by);
    }

    fn press(&mut self, at: Position) -> Press {
        self.step.list_mut().map_or(Press::Nowhere, |list| list.press(at))
    }

    /// A field takes what the user types.
    fn is_typing(&self) -> bool {
        match &self.step {
            Step::Providers { .. } | Step::Key { .. } => true,
            Step::Menu(_) | Step::Local(_) | Step::Waiting { .. } => false,
        }
    }

    fn key(&mut self, pressed: KeyEvent) -> Option<Outcome> {
        match &mut self.step {
            Step::Providers { narrow, .. } => return narrow.key(pressed).then_some(Outcome::Stay),
            Step::Key { key, error, .. } => {
                match pressed.code {
                    KeyCode::Backspace => drop(key.0.pop()),
                    KeyCode::Char('u') if pressed.modifiers == KeyModifiers::CONTROL => key.0.clear(),
                    KeyCode::Char(c) if pressed.modifiers.is_typing() && key.0.len() < MAX_KEY => key.0.push(c),
                    KeyCode::Char(_) if pressed.modifiers.is_typing() => {}
                    _ => return None,
                }
                *error = None;
            }
            Step::Menu(_) | Step::Local(_) | Step::Waiting { .. } => return None,
        }
        Some(Outcome::Stay)
    }

    /// A pasted key goes into the field; before that it tells its Provider.
    fn paste(&mut self, text: &str) {
        let text = text.trim();
        if text.len() > MAX_KEY {
            return self.fail("the pasted text is too long for a key");
        }
        match &mut self.step {
            Step::Key { key, error, .. } => {
                key.0.push_str(text);
                *error = None;
            }
            Step::Menu(_) | Step::Providers { signs_in: false, .. } => match provider_of(text) {
                Some(provider) => {
                    let key = PastedKey(text.to_owned());
                    self.step = Step::Key { provider: provider.to_owned(), key, error: None };
                }
                None => {
                    self.enter(Way::Key);
                    self.failure = Some("choose whose key that is, then paste it again".to_owned());
                }
            },
            // It is sent with Enter, which also ends a paste that was a mistake.
            Step::Waiting { invitation: Some((_, None)), answer, .. } => *answer = PastedKey(text.to_owned()),
            Step::Providers { .. } | Step::Local(_) | Step::Waiting { .. } => {}
        }
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        if let Step::Menu(list) = &mut self.step
            && let Some(way) = Way::ALL.iter().position(|way| way.action() == action)
        {
            list.chosen = way;
            return self.choose();
        }
        match action {
            LayerAction::CloseOverlay => return self.back(),
            LayerAction::Choose => return self.choose(),
            LayerAction::OverlayUp => self.go(-1),
            LayerAction::OverlayDown => self.go(1),
            LayerAction::OverlayPageUp => self.go(-8),
            LayerAction::OverlayPageDown => self.go(8),
            _ => {}
        }
        Outcome::Stay
    }

    fn leave(self) -> Option<Request> {
        Some(Request::Do(vec![Effect::Connect(Order::Cancel)]))
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let hints = |choose: &str, close: &str| {
            paint.hints(&[(LayerAction::Choose, choose), (LayerAction::CloseOverlay, close)])
        };
        let (title, keys) = match &self.step {
            Step::Menu(_) => ("Connect a model".to_owned(), hints("choose", "close")),
            Step::Providers { signs_in: false, .. } => {
                ("Whose key is it?".to_owned(), format!("{} · or paste the key here", hints("choose", "back")))
            }
            Step::Providers { narrow, signs_in } if self.listed(narrow, *signs_in).is_empty() => {
                ("Sign in with a browser".to_owned(), paint.hints(&[(LayerAction::CloseOverlay, "back")]))
            }
            Step::Providers { .. } => ("Sign in with a browser".to_owned(), hints("sign in", "back")),
            Step::Key { provider, .. } => (format!("Key for {}", visible(provider)), hints("connect", "back")),
            Step::Local(_) if self.local.as_ref().is_none_or(|servers| servers.is_empty()) => {
                ("Servers of this machine".to_owned(), paint.hints(&[(LayerAction::CloseOverlay, "back")]))
            }
            Step::Local(_) => ("Servers of this machine".to_owned(), hints("connect", "back")),
            Step::Waiting { .. } => {
                ("Connect a model".to_owned(), paint.hints(&[(LayerAction::CloseOverlay, "cancel")]))
            }
        };
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), &title, &keys, theme);
        let below = match &self.failure {
            Some(why) => {
                let columns = usize::from(inner.width);
                let lines = wrap_lines(&[Span::styled(visible(why), theme.fg(theme.error))], columns, &[], &[]);
                let rows = u16::try_from(lines.len()).unwrap_or(1).min(inner.height / 2);
                for (y, line) in (inner.bottom() - rows..inner.bottom()).zip(lines) {
                    canvas.line(line, Rect { y, height: 1, ..inner });
                }
                Rect { height: inner.height - rows, ..inner }
            }
            None => inner,
        };
        match &self.step {
            Step::Menu(list) => self.draw_menu(list, canvas, below, paint),
            Step::Providers { narrow, signs_in } => {
                self.draw_providers(narrow, *signs_in, canvas, below, theme);
            }
            Step::Key { provider, key, error } => {
                let variable =
                    self.accounts.iter().find(|it| it.provider == *provider).and_then(|it| it.variable.as_deref());
                draw_key(key, error.as_deref(), variable, canvas, below, theme);
            }
            Step::Local(list) => self.draw_local(list, canvas, below, theme),
            Step::Waiting { what, invitation, answer, .. } => {
                draw_waiting(what, invitation.as_ref(), !answer.0.is_empty(), canvas, below, theme);
            }
        }
    }
}

/// `ollama, 4 models`
fn describe(it: &LocalServer) -> String {
    match &it.models {
        Ok(models) if models.len() == 1 => format!("{}, 1 model", it.provider),
        Ok(models) => format!("{}, {} models", it.provider, models.len()),
        Err(_) => format!("{} on port {}", it.provider, it.port),
    }
}

/// The columns of the name of an option, where there is room.
const OPTION: usize = 28;

/// A row that can be chosen: what it is, and what is to be said about it.
fn option(list: &ListView, canvas: &mut Canvas, here: Rect, row: usize, title: &str, about: &str, theme: &Theme) {
    let columns = usize::from(here.width);
    let gap = OPTION.min(columns / 2).saturating_sub(width(title)).max(2);
    let room = columns.saturating_sub(width(title) + gap);
    let line = Line::from(vec![
        Span::styled(fit(title, columns), theme.fg(theme.text)),
        Span::styled(format!("{}{}", " ".repeat(gap), fit(about, room)), theme.dim()),
    ]);
    list.row(canvas, here, row, theme, || title.to_owned(), line);
}

/// The field for the key. The key itself is never drawn.
fn draw_key(
    key: &PastedKey,
    error: Option<&str>,
    variable: Option<&str>,
    canvas: &mut Canvas,
    area: Rect,
    theme: &Theme,
) {
    let columns = usize::from(area.width);
    let count = key.0.chars().count();
    let dots = "•".repeat(count.min(DOTS).min(columns.saturating_sub(22)));
    let tail = if count > 0 { format!("  {count} characters") } else { String::new() };
    let placeholder = if count == 0 { "paste or type the key" } else { "" };
    let field = Line::from(vec![
        Span::styled("› ", theme.fg(theme.accent)),
        Span::styled(dots.clone(), theme.fg(theme.text)),
        Span::styled(placeholder, theme.dim()),
        Span::styled(tail, theme.dim()),
    ]);
    canvas.line(field, Rect { height: area.height.min(1), ..area });
    let x = area.x + 2 + u16::try_from(width(&dots)).unwrap_or(0);
    canvas.set_cursor_position((x.min(area.right().saturating_sub(1)), area.y));
    let mut lines = vec![Line::default()];
    if let Some(error) = error {
        lines.extend(wrap_lines(&[Span::styled(visible(error), theme.fg(theme.error))], columns, &[], &[]));
        lines.push(Line::styled("Correct it and press Enter again; Ctrl+U clears the field.", theme.dim()));
        lines.push(Line::default());
    }
    let about = "The key is shown nowhere. It is tested, and stored with those of `pixir auth` once it works.";
    lines.extend(wrap_lines(&[Span::styled(about, theme.dim())], columns, &[], &[]));
    if let Some(variable) = variable {
        let text = format!("{variable} in the environment does the same.");
        lines.extend(wrap_lines(&[Span::styled(text, theme.dim())], columns, &[], &[]));
    }
    for (y, line) in (area.y + 1..area.bottom()).zip(lines) {
        canvas.line(line, Rect { y, height: 1, ..area });
    }
}

fn draw_waiting(
    what: &str,
    invitation: Option<&(String, Option<String>)>,
    has_answer: bool,
    canvas: &mut Canvas,
    area: Rect,
    theme: &Theme,
) {
    let columns = usize::from(area.width);
    let mut lines = Vec::new();
    let Some((url, code)) = invitation else {
        canvas.line(Line::styled(visible(what), theme.fg(theme.accent)), Rect { height: area.height.min(1), ..area });
        return;
    };
    lines.extend(wrap_lines(&[Span::styled("Open this page in a browser:", theme.dim())], columns, &[], &[]));
    lines.extend(wrap_lines(&[Span::styled(visible(url), theme.fg(theme.accent))], columns, &[], &[]));
    lines.push(Line::default());
    if let Some(code) = code {
        let label = Span::styled("and enter the code  ", theme.dim());
        lines.push(Line::from(vec![label, Span::styled(visible(code), theme.bold())]));
        lines.push(Line::default());
    }
    let text = match (code, has_answer) {
        (None, true) => "Enter sends the pasted address.",
        (None, false) => {
            "Waiting for the browser. Does the browser of another machine show an error at the end? Paste its address here."
        }
        (Some(_), _) => "waiting for you to sign in…",
    };
    lines.extend(wrap_lines(&[Span::styled(text, theme.dim())], columns, &[], &[]));
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        canvas.line(line, Rect { y, height: 1, ..area });
    }
}
