//! MCP servers: how each is, its tools, what changed in them, what it printed.

use pixir_core::Input;
use pixir_core::servers::{ServerAct, ServerPhase, ServerState};
use pixir_core::trust::Standing;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::page::Page;
use super::panes;
use super::{Effect, Notification, Outcome, Paint, Press, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::render::text::{fit, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (120, 30);

#[derive(Debug)]
pub(crate) struct ServersView {
    servers: Vec<ServerState>,
    /// The list has arrived.
    is_known: bool,
    list: ListView,
    page: Page,
    preview_area: Rect,
}

impl ServersView {
    pub(crate) fn new() -> ServersView {
        ServersView {
            servers: Vec::new(),
            is_known: false,
            list: ListView::default(),
            page: Page::default(),
            preview_area: Rect::default(),
        }
    }

    fn usable(&self) -> Option<&ServerState> {
        let it = self.servers.get(self.list.chosen)?;
        (it.standing == Standing::InForce && it.enabled && !it.shadowed).then_some(it)
    }

    fn to_accept(&self) -> Option<(&ServerState, &str)> {
        let it = self.usable().filter(|it| !it.changes.is_empty())?;
        Some((it, it.seen.as_deref()?))
    }
}

impl View for ServersView {
    fn title(&self) -> &'static str {
        "MCP servers"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Servers, Scope::Overlay]
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![Effect::Send(Input::Mcp { server: None, act: ServerAct::Show })]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Servers(servers) = notification {
            let name = self.servers.get(self.list.chosen).map(|it| it.name.clone());
            self.servers = servers.to_vec();
            let same = name.and_then(|name| self.servers.iter().position(|it| it.name == name));
            self.list.chosen = same.unwrap_or(0);
            self.is_known = true;
            self.page.forget();
        }
    }

    fn scroll(&mut self, by: isize) {
        self.list.scroll(by, self.servers.len());
        self.page = Page::default();
    }

    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        if self.preview_area.contains(at) {
            self.page.scroll(by)
        } else {
            self.scroll(by)
        }
        Outcome::Stay
    }

    fn press(&mut self, at: Position) -> Press {
        let before = self.list.chosen;
        let pressed = self.list.press(at);
        if self.list.chosen != before {
            self.page = Page::default();
        }
        pressed
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        let about = |it: &ServerState, act: ServerAct| Outcome::send(Input::Mcp { server: Some(it.name.clone()), act });
        match action {
            LayerAction::CloseOverlay => Outcome::Close,
            LayerAction::OverlayUp => {
                self.scroll(-1);
                Outcome::Stay
            }
            LayerAction::OverlayDown => {
                self.scroll(1);
                Outcome::Stay
            }
            LayerAction::RestartServer => self.usable().map_or(Outcome::Stay, |it| about(it, ServerAct::Restart)),
            LayerAction::StopServer => self.usable().map_or(Outcome::Stay, |it| about(it, ServerAct::Stop)),
            LayerAction::AcceptServer => match self.to_accept() {
                // What is accepted must have been on the screen.
                Some(_) if !self.page.is_at_end() => {
                    self.page.act(LayerAction::OverlayPageDown);
                    Outcome::Stay
                }
                Some((it, seen)) => about(it, ServerAct::Accept { seen: seen.to_owned() }),
                None => Outcome::Stay,
            },
            other => {
                self.page.act(other);
                Outcome::Stay
            }
        }
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let phase = self.usable().map(|it| it.phase);
        let runs = phase == Some(ServerPhase::Running);
        let is_up = runs || phase == Some(ServerPhase::Starting);
        let keys = paint.hints_of(&[
            (self.to_accept().is_some(), LayerAction::AcceptServer, "accept the tools as shown"),
            (self.usable().is_some(), LayerAction::RestartServer, if runs { "restart" } else { "start" }),
            (is_up, LayerAction::StopServer, "stop"),
            (true, LayerAction::CloseOverlay, "close"),
        ]);
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "MCP servers", &keys, theme);
        if self.servers.is_empty() {
            let text = if self.is_known { "No MCP servers: pixir mcp add NAME -- COMMAND adds one" } else { "…" };
            canvas.line(Line::styled(fit(text, usize::from(inner.width)), theme.dim()), inner);
            return;
        }
        let most = u16::try_from(self.servers.len()).unwrap_or(u16::MAX).min(inner.height / 2);
        let (list, preview) = panes::split_after(canvas, inner, most, theme);
        let columns = usize::from(list.width);
        let longest = self.servers.iter().map(|it| width(&it.name)).max().unwrap_or(0).min(24);
        let tools = |it: &ServerState| {
            let tools = it.tools.as_ref().map_or("tools not known yet".to_owned(), |tools| counted(tools.len()));
            format!("  {tools}")
        };
        let name = |row: usize| {
            let it = &self.servers[row];
            format!("{}: {}{}", it.name, state(it, theme).0, tools(it))
        };
        let line = |row: usize| {
            let it = &self.servers[row];
            let (word, style) = state(it, theme);
            let (name, tools) = (format!("{:<longest$}  ", it.name), tools(it));
            Line::from(vec![
                Span::styled(name.clone(), theme.fg(theme.text)),
                Span::styled(word.clone(), style),
                Span::styled(fit(&tools, columns.saturating_sub(width(&name) + width(&word))), theme.dim()),
            ])
        };
        self.list.draw(canvas, list, self.servers.len(), theme, &name, &line);
        self.preview_area = preview.unwrap_or_default();
        let Some(it) = self.servers.get(self.list.chosen) else { return };
        if let Some(area) = preview {
            self.page.draw(canvas, area, paint, |columns| facts(it, columns, theme));
        }
    }
}

fn counted(tools: usize) -> String {
    if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") }
}

/// How it is, in one or two words.
fn state(it: &ServerState, theme: &Theme) -> (String, ratatui::style::Style) {
    match (&it.standing, it.phase) {
        _ if it.shadowed => ("shadowed by yours".to_owned(), theme.dim()),
        _ if !it.enabled => ("switched off".to_owned(), theme.dim()),
        (Standing::InForce, _) if it.error.is_some() => ("did not start".to_owned(), theme.fg(theme.error)),
        (Standing::InForce, _) if !it.changes.is_empty() => ("tools changed".to_owned(), theme.fg(theme.warning)),
        (Standing::InForce, ServerPhase::Failed) => ("failed".to_owned(), theme.fg(theme.error)),
        (Standing::InForce, ServerPhase::Running) => ("running".to_owned(), theme.fg(theme.accent)),
        (Standing::InForce, phase) => match it.waits_s {
            Some(seconds) => (format!("starts again in {seconds} s"), theme.dim()),
            None => (phase.name().to_owned(), theme.dim()),
        },
        (Standing::Unusable { .. }, _) => ("unusable".to_owned(), theme.fg(theme.error)),
        (Standing::New | Standing::Changed | Standing::Inert, _) => {
            ("not approved".to_owned(), theme.fg(theme.warning))
        }
    }
}

/// Everything about one server.
fn facts(it: &ServerState, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut say = |text: &str, style: ratatui::style::Style| {
        let indent = [Span::raw("  ")];
        lines.extend(wrap_lines(&[Span::styled(visible(text), style)], columns, &[], &indent));
    };
    let (plain, dim, bad) = (theme.fg(theme.text), theme.dim(), theme.fg(theme.warning));
    say(&format!("{}: {}", it.source, it.launch), plain);
    if let Standing::Unusable { why } = &it.standing {
        say(why, bad);
    }
    if let Standing::New | Standing::Changed | Standing::Inert = it.standing {
        say("it does not start before you approve this launch: /trust", bad);
    }
    if !it.ignored.is_empty() {
        say(&format!("ignored, because only your own file may say it: {}", it.ignored.join(", ")), bad);
    }
    if let Some(error) = &it.error {
        say(&error.message, theme.fg(theme.error));
    }
    for change in &it.changes {
        say(&format!("{} is {}:", change.subject(), change.what), bad);
        for line in change.diff.lines() {
            let style = match line.as_bytes().first() {
                Some(b'+') => theme.fg(theme.added),
                Some(b'-') => theme.fg(theme.removed),
                _ => dim,
            };
            say(line, style);
        }
    }
    if !it.version.is_empty() {
        say(&format!("protocol {} · {} bytes of definitions", it.version, it.bytes), dim);
    }
    it.left_out.iter().for_each(|why| say(&format!("not offered: {why}"), bad));
    if !it.instructions.is_empty() {
        say("what it says about itself:", dim);
        it.instructions.lines().for_each(|line| say(line, plain));
    }
    for tool in it.tools.iter().flatten() {
        let about = tool.description.lines().next().unwrap_or_default();
        say(&format!("{} ({}) {about}", tool.raw, tool.runs), plain);
    }
    if it.dropped_lines > 0 {
        say(&format!("{} lines on its stdout were no messages", it.dropped_lines), bad);
    }
    if !it.stderr.trim().is_empty() {
        say("stderr:", dim);
        let all: Vec<&str> = it.stderr.lines().collect();
        all.iter().rev().take(40).rev().for_each(|line| say(line, dim));
    }
    lines
}
