//! What runs without asking here: the mode, the sandbox, the rules in force, and the last decisions of the Session.

use pixir_core::Input;
use pixir_core::event::{DecidedBy, Fact, Mode, Rule, Verdict};
use pixir_core::history::History;
use pixir_core::rule::SavedRule;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::always::covered;
use super::list::ListView;
use super::{Effect, Notification, Outcome, Paint, Press, View, panel};
use crate::input::action::{LayerAction, Scope};
use crate::render::text::{fit, visible, wrap_lines};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::theme::Theme;

/// Decisions that are shown.
const MOST_DECISIONS: usize = 40;

#[derive(Debug)]
pub(crate) struct PermissionsView {
    mode: Mode,
    sandbox: String,
    /// `None` until the Session has sent them.
    rules: Option<Vec<SavedRule>>,
    warning: Option<String>,
    decisions: Vec<Decided>,
    list: ListView,
    /// Where the rules of the last frame stood.
    /// The user is asked whether the chosen rule is to be revoked.
    is_confirming: bool,
}

/// A decision of this Session.
#[derive(Debug)]
struct Decided {
    verdict: Verdict,
    by: &'static str,
    what: String,
}

impl PermissionsView {
    pub(crate) fn new(history: &History) -> PermissionsView {
        let subject = |call_id: &str| {
            history.entries().iter().rev().find_map(|entry| match &entry.fact {
                Fact::ToolCall(call) if call.call_id == call_id => {
                    let target = call.info.as_ref().map_or(String::new(), |info| info.target.clone());
                    Some(format!("{} {target}", call.name))
                }
                Fact::UserCommand(it) if it.call_id == call_id => Some(format!("!{}", it.command)),
                _ => None,
            })
        };
        let decided = history.entries().iter().rev().filter_map(|entry| match &entry.fact {
            Fact::PermissionDecision(it) => Some(Decided {
                verdict: it.verdict,
                by: match it.by {
                    DecidedBy::User if it.rule.is_some() => "you, always",
                    DecidedBy::User => "you",
                    DecidedBy::Mode => "the mode",
                    DecidedBy::Rule => "a rule",
                    DecidedBy::Role => "the role",
                    DecidedBy::Task => "the task",
                    DecidedBy::NoAsker => "no one to ask",
                    DecidedBy::Unknown => "unknown",
                },
                what: subject(&it.call_id).unwrap_or_else(|| it.reason.clone()),
            }),
            _ => None,
        });
        PermissionsView {
            mode: history.settings.mode,
            sandbox: history.started.sandbox.clone().unwrap_or_else(|| "unknown".to_owned()),
            rules: None,
            warning: None,
            decisions: decided.take(MOST_DECISIONS).collect(),
            list: ListView::default(),
            is_confirming: false,
        }
    }

    fn rule_line(&self, at: usize, it: &SavedRule, columns: usize, theme: &Theme) -> Line<'static> {
        let (effect, colour, scope) = match &it.rule {
            Rule::Allow(scope) => ("allow", theme.added, scope),
            Rule::Deny(scope) => ("deny ", theme.removed, scope),
        };
        let is_chosen = at == self.list.chosen;
        let tail = match it.expires {
            _ if is_chosen && self.is_confirming => "  revoke? y".to_owned(),
            Some(end) => format!("  {} until {}", it.holds.name(), end.strftime("%Y-%m-%d %H:%M UTC")),
            None => format!("  {}", it.holds.name()),
        };
        let what = fit(&covered(scope), columns.saturating_sub(8 + tail.chars().count()));
        Line::from(vec![
            Span::styled(if is_chosen { "▸ " } else { "  " }, theme.fg(theme.accent)),
            Span::styled(format!("{effect} "), theme.fg(colour)),
            Span::styled(what, theme.fg(theme.text)),
            Span::styled(tail, if is_chosen && self.is_confirming { theme.fg(theme.warning) } else { theme.dim() }),
        ])
    }
}

impl View for PermissionsView {
    fn title(&self) -> &'static str {
        "Permissions"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Permissions, Scope::Overlay]
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![Effect::Send(Input::ListRules)]
    }

    fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Rules { rules, warning } = notification {
            self.list.chosen = self.list.chosen.min(rules.len().saturating_sub(1));
            self.rules = Some(rules.to_vec());
            self.warning = warning.map(str::to_owned);
            self.is_confirming = false;
        }
    }

    fn scroll(&mut self, by: isize) {
        let count = self.rules.as_ref().map_or(0, Vec::len);
        self.list.scroll(by, count);
        self.is_confirming = false;
    }

    fn press(&mut self, at: Position) -> Press {
        if let Some(row) = self.list.row_at(at) {
            (self.list.chosen, self.is_confirming) = (row, false);
        }
        // A second click must neither close the list nor revoke a rule.
        Press::Nowhere
    }

    fn forget_question(&mut self) {
        self.is_confirming = false;
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        let rule = self.rules.as_ref().and_then(|rules| rules.get(self.list.chosen));
        match (action, rule) {
            (LayerAction::ConfirmRevoke, Some(rule)) if self.is_confirming => {
                return Outcome::send(Input::RevokeRule { id: rule.id.clone() });
            }
            (_, _) if self.is_confirming => self.is_confirming = false,
            (LayerAction::CloseOverlay | LayerAction::Choose, _) => return Outcome::Close,
            (LayerAction::OverlayUp, _) => self.scroll(-1),
            (LayerAction::OverlayDown, _) => self.scroll(1),
            (LayerAction::RevokeRule, Some(_)) => self.is_confirming = true,
            _ => {}
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let keys = if self.is_confirming {
            paint.hints(&[(LayerAction::ConfirmRevoke, "revoke it"), (LayerAction::CloseOverlay, "keep it")])
        } else {
            let has_rule = self.rules.as_ref().is_some_and(|rules| !rules.is_empty());
            paint.hints_of(&[(has_rule, LayerAction::RevokeRule, "revoke"), (true, LayerAction::CloseOverlay, "close")])
        };
        let inner = panel(canvas, area, "Permissions", &keys, theme);
        let columns = usize::from(inner.width);
        let height = usize::from(inner.height);
        let mut lines = vec![Line::from(vec![
            Span::styled("mode ", theme.dim()),
            Span::styled(self.mode.name(), theme.bold()),
            Span::styled("   sandbox ", theme.dim()),
            Span::styled(self.sandbox.clone(), theme.bold()),
        ])];
        lines.extend(wrap_lines(&[Span::styled(about(self.mode), theme.dim())], columns, &[], &[]));
        if let Some(warning) = &self.warning {
            let text = Span::styled(visible(warning), theme.fg(theme.warning));
            lines.extend(wrap_lines(&[text], columns, &[], &[]));
        }
        lines.push(Line::default());
        lines.push(Line::styled("Rules in force", theme.bold()));
        let rules = self.rules.as_deref().unwrap_or_default();
        if rules.is_empty() {
            let text = if self.rules.is_none() {
                "reading them…"
            } else {
                "none yet: “Always…” in an approval makes one"
            };
            lines.push(Line::styled(text, theme.dim()));
        }
        // The decisions keep a third of the panel.
        let room = (height * 2 / 3).saturating_sub(lines.len()).max(1);
        let top = (self.list.chosen + 1).saturating_sub(room);
        let rows = rules.iter().enumerate().skip(top).take(room);
        let first = lines.len();
        let shown = rules.len().saturating_sub(top).min(room);
        let chosen = first + self.list.chosen.saturating_sub(top);
        lines.extend(rows.map(|(at, rule)| self.rule_line(at, rule, columns, theme)));
        lines.push(Line::default());
        lines.push(Line::styled("Last decisions of this session", theme.bold()));
        if self.decisions.is_empty() {
            lines.push(Line::styled("none yet", theme.dim()));
        }
        lines.extend(self.decisions.iter().map(|it| it.line(columns, theme)));
        self.list.begin();
        for (at, (y, line)) in (inner.y..inner.bottom()).zip(lines).enumerate() {
            let row = Rect { y, height: 1, ..inner };
            if at == chosen && !rules.is_empty() {
                canvas.region("option", row, || line.to_string());
                canvas.region_state(RegionState { focused: false, selected: true });
            }
            if (first..first + shown).contains(&at) {
                self.list.put(row, top + at - first);
            }
            canvas.line(line, row);
        }
    }
}

impl Decided {
    fn line(&self, columns: usize, theme: &Theme) -> Line<'static> {
        let (mark, colour) = match self.verdict {
            Verdict::Allow => ("✓", theme.added),
            Verdict::Deny => ("⊘", theme.removed),
        };
        Line::from(vec![
            Span::styled(format!("{mark} "), theme.fg(colour)),
            Span::styled(format!("{:<14}", self.by), theme.dim()),
            Span::styled(fit(&visible(&self.what), columns.saturating_sub(16)), theme.fg(theme.text)),
        ])
    }
}

/// What runs in this mode without asking.
fn about(mode: Mode) -> &'static str {
    match mode {
        Mode::ReadOnly => "what changes something is refused",
        Mode::Ask => "what only reads runs; the rest asks, unless a rule allows it",
        Mode::Auto => "runs without asking, inside the sandbox; protected paths ask",
    }
}
