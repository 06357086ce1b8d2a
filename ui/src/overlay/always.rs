//! The choice of a rule for "always": allow or deny, what it covers, where and how long it holds, and what it would have
//! covered in this Session.

use std::path::Path;

use pixir_core::Decision;
use pixir_core::agent::Asker;
use pixir_core::call_info::CallKind;
use pixir_core::event::{Approval, Confirmation, DecidedBy, Fact, Rule, Scope, Verdict};
use pixir_core::history::History;
use pixir_core::input::RuleReach;
use pixir_core::rules;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::{Effect, OnHarness, Outcome, Paint, Press, Request, View, docked, panel};
use crate::input::action::{self, LayerAction};
use crate::render::preview;
use crate::render::text::{fit, visible, width};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent};

/// What the user types before a rule for a dangerous command is saved.
const WORD: &str = Confirmation::ALWAYS;
/// The rows of the dialog, so that it keeps its size while the user looks at rules.
const HEIGHT: u16 = 18;
/// How long a rule may hold, in seconds, with the words for it.
const LASTS: [(Option<u64>, &str); 4] = [
    (None, "until you revoke it"),
    (Some(3_600), "for one hour"),
    (Some(86_400), "for one day"),
    (Some(604_800), "for one week"),
];

/// What a Session has decided and run before, for the comparison with a rule.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// Its commands, the latest first.
    commands: Vec<String>,
    /// The last calls that needed a decision, the latest first.
    decided: Vec<Decided>,
}

impl Before {
    pub(crate) fn of(history: &History) -> Before {
        let mut commands: Vec<String> = Vec::new();
        for entry in history.entries().iter().rev() {
            let Fact::ToolCall(call) = &entry.fact else { continue };
            if let Some(command) = call.args.value()["command"].as_str()
                && commands.iter().all(|it| it != command)
            {
                commands.push(command.to_owned());
            }
        }
        Before { commands, decided: Decided::last(history) }
    }
}

/// Who asks.
#[derive(Debug, PartialEq, Eq)]
enum From {
    /// The Session that the user started.
    Root,
    /// An agent, by its name. The Session on the screen may be another one.
    Agent(String),
}

#[derive(Debug)]
pub(crate) struct AlwaysView {
    approval: Approval,
    from: From,
    choices: Vec<(Rule, RuleReach)>,
    list: ListView,
    /// The rule denies.
    denies: bool,
    /// The index in [`LASTS`].
    lasts: usize,
    /// Of the Session that asks; `None` until it is read.
    before: Option<Before>,
    typed: String,
}

/// A call that needed a decision.
#[derive(Debug)]
struct Decided {
    command: Option<String>,
    /// The files that it would have changed.
    files: Vec<String>,
    was_refused: bool,
}

/// The most decisions that a rule is compared with.
const COMPARED: usize = 20;

impl Decided {
    fn is_covered_by(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Command(_) | Scope::Pattern(_) => {
                self.command.as_ref().is_some_and(|line| rules::overlap(scope, line) == Some(true))
            }
            Scope::FileChanges | Scope::Files(_) => !self.files.is_empty() && rules::covers_files(scope, &self.files),
            Scope::Reads(_) | Scope::Writes(_) | Scope::Mcp(_) | Scope::Network | Scope::Unknown => false,
        }
    }

    /// The last of them, the latest first.
    fn last(history: &History) -> Vec<Decided> {
        let mut wanted: Vec<(&str, bool)> = Vec::new();
        let mut found: Vec<Decided> = Vec::new();
        for entry in history.entries().iter().rev() {
            match &entry.fact {
                Fact::PermissionDecision(it)
                    if it.by == DecidedBy::User
                        && wanted.len() < COMPARED
                        && wanted.iter().all(|(id, _)| *id != it.call_id) =>
                {
                    wanted.push((&it.call_id, it.verdict == Verdict::Deny));
                }
                Fact::ToolCall(call) => {
                    if let Some((_, was_refused)) = wanted.iter().find(|(id, _)| *id == call.call_id) {
                        let about = call.about();
                        let changes_files = about.kind == CallKind::Edit;
                        found.push(Decided {
                            command: call.args.value()["command"].as_str().map(str::to_owned),
                            files: if changes_files { about.paths.clone() } else { Vec::new() },
                            was_refused: *was_refused,
                        });
                    }
                }
                _ => {}
            }
            if found.len() == COMPARED {
                break;
            }
        }
        found
    }
}

impl AlwaysView {
    /// `None` where the approval offers no rule.
    pub(crate) fn new(approval: &Approval, history: &History) -> Option<AlwaysView> {
        let offered = approval.rule.clone()?;
        let workspace = Path::new(&history.started.workspace);
        let others = match &offered {
            Rule::Allow(Scope::Command(line)) => {
                rules::pattern_of(line, workspace).map(Scope::Pattern).into_iter().collect()
            }
            Rule::Allow(Scope::FileChanges) => rules::scopes_of_files(&approval.preview.paths),
            Rule::Allow(_) | Rule::Deny(_) => Vec::new(),
        };
        let kinds: Vec<Rule> = std::iter::once(offered).chain(others.into_iter().map(Rule::Allow)).collect();
        let from = match &approval.agent {
            Some(agent) => agent.path.last().cloned().map_or(From::Root, From::Agent),
            // An agent's own screen.
            None => history.started.parent.as_ref().map_or(From::Root, |it| From::Agent(it.name.clone())),
        };
        let for_tree = (from != From::Root).then_some(RuleReach::Tree);
        let choices = [Some(RuleReach::Session), for_tree, Some(RuleReach::Project), Some(RuleReach::User)]
            .into_iter()
            .flatten()
            .flat_map(|reach| kinds.iter().map(move |rule| (rule.clone(), reach)))
            .collect();
        Some(AlwaysView {
            approval: approval.clone(),
            from,
            choices,
            list: ListView::default(),
            denies: false,
            lasts: 0,
            before: approval.agent.is_none().then(|| Before::of(history)),
            typed: String::new(),
        })
    }

    /// The path of the Session whose past is still to be read.
    fn wanted(&self) -> Option<&[String]> {
        self.approval.agent.as_ref().filter(|_| self.before.is_none()).map(|it| it.path.as_slice())
    }

    /// What the Session that asks has done before was read.
    pub(crate) fn learn(&mut self, path: &[String], history: &History) {
        if self.wanted() == Some(path) {
            self.before = Some(Before::of(history));
        }
    }

    /// What the chosen rule could allow to be destroyed.
    fn danger(&self) -> Option<String> {
        let (Rule::Allow(scope) | Rule::Deny(scope)) = &self.choices[self.list.chosen].0;
        let of_call = || self.approval.confirm.as_ref().map(Confirmation::clauses);
        rules::danger_of(scope).or_else(of_call).filter(|_| !self.denies)
    }

    /// `would have allowed 14 of the last 20 calls, none that you refused`
    fn backtest(&self) -> Option<String> {
        let (Rule::Allow(scope) | Rule::Deny(scope)) = &self.choices[self.list.chosen].0;
        let Before { decided, .. } = self.before.as_ref()?;
        let covered: Vec<&Decided> = decided.iter().filter(|it| it.is_covered_by(scope)).collect();
        let is_known = matches!(scope, Scope::Command(_) | Scope::Pattern(_) | Scope::FileChanges | Scope::Files(_));
        if decided.is_empty() || !is_known {
            return None;
        }
        let refused = covered.iter().filter(|it| it.was_refused).count();
        let (did, against) = if self.denies {
            (
                "denied",
                match covered.len() - refused {
                    0 => "none that you allowed".to_owned(),
                    n => format!("{n} that you allowed"),
                },
            )
        } else {
            (
                "allowed",
                match refused {
                    0 => "none that you refused".to_owned(),
                    n => format!("{n} that you refused"),
                },
            )
        };
        let calls = match decided.len() {
            1 => "the one call that asked before".to_owned(),
            n => format!("the last {n} calls that asked"),
        };
        Some(match (covered.len(), decided.len()) {
            (0, 1) => format!("would not have {did} {calls}"),
            (0, _) => format!("would have {did} none of {calls}"),
            (_, 1) => format!("would have {did} {calls}, {against}"),
            (n, _) => format!("would have {did} {n} of {calls}, {against}"),
        })
    }

    /// The rows of the card, the same for every choice, so that it stands still.
    fn height(&self) -> u16 {
        let lists_commands = self.choices.iter().any(|(rule, _)| {
            let (Rule::Allow(scope) | Rule::Deny(scope)) = rule;
            matches!(scope, Scope::Command(_) | Scope::Pattern(_))
        });
        // The frame, the duration, what the rule would have allowed, and the danger of a command.
        let commands = self.before.as_ref().map_or(usize::from(HEIGHT), |it| it.commands.len());
        let around = if lists_commands { 10 + commands } else { 6 };
        u16::try_from(self.choices.len() + around).unwrap_or(HEIGHT).min(HEIGHT)
    }
}

impl View for AlwaysView {
    fn title(&self) -> &'static str {
        "Allow always"
    }

    fn scopes(&self) -> &'static [action::Scope] {
        &[action::Scope::Rule, action::Scope::Overlay]
    }

    fn is_guarded(&self) -> bool {
        true
    }

    /// The agent that asks; `None` if the Session itself does.
    fn asker(&self) -> Option<&Asker> {
        self.approval.agent.as_ref()
    }

    fn call_id(&self) -> Option<&str> {
        Some(&self.approval.call_id)
    }

    fn opened(&mut self) -> Vec<Effect> {
        self.wanted().map(|path| OnHarness::ReadPast(path.to_vec()).into()).into_iter().collect()
    }

    fn scroll(&mut self, by: isize) {
        self.list.scroll(by, self.choices.len());
    }

    /// A click chooses a rule and saves none: a rule wants a key.
    fn press(&mut self, at: Position) -> Press {
        self.list.press(at);
        Press::Did(Box::new(Outcome::Stay))
    }

    /// The user has to type a word first.
    fn is_typing(&self) -> bool {
        self.danger().is_some()
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        match key.code {
            KeyCode::Backspace => drop(self.typed.pop()),
            KeyCode::Char(c) if key.modifiers.is_typing() => {
                if self.typed.len() < 40 {
                    self.typed.push(c);
                }
            }
            _ => return None,
        }
        Some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::OverlayUp => self.scroll(-1),
            LayerAction::OverlayDown => self.scroll(1),
            LayerAction::RuleLastsShorter => self.lasts = self.lasts.saturating_sub(1),
            LayerAction::RuleLastsLonger => self.lasts = (self.lasts + 1).min(LASTS.len() - 1),
            LayerAction::SwitchRuleEffect => self.denies = !self.denies,
            LayerAction::Choose if self.danger().is_none() || self.typed.trim() == WORD => {
                let (rule, holds) = self.choices[self.list.chosen].clone();
                let seconds = LASTS[self.lasts].0;
                let word = self.danger().map(|_| WORD.to_owned());
                let decision = if self.denies {
                    let (Rule::Allow(scope) | Rule::Deny(scope)) = rule;
                    Decision::DenyAlways { rule: Some(Rule::Deny(scope)), holds, seconds, feedback: None }
                } else {
                    Decision::AllowAlways { rule: Some(rule), holds, seconds }
                };
                return Outcome::CloseAndAsk(Request::Decide {
                    agent: self.approval.agent.clone(),
                    call_id: self.approval.call_id.clone(),
                    decision,
                    word,
                });
            }
            _ => {}
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let (title, save, other) = if self.denies {
            ("Deny always", "deny and save", "allow")
        } else {
            ("Allow always", "allow and save", "deny")
        };
        let hint = paint.hints(&[
            (LayerAction::Choose, save),
            (LayerAction::OverlayDown, "next rule"),
            (LayerAction::RuleLastsLonger, "longer"),
            (LayerAction::SwitchRuleEffect, other),
            (LayerAction::CloseOverlay, "back"),
        ]);
        let title = match &self.from {
            From::Root => title.to_owned(),
            From::Agent(name) => format!("{title} · {} asks", visible(name)),
        };
        let about = preview::target_in_one_line(&self.approval.preview).unwrap_or_default();
        let room = usize::from(area.width).saturating_sub(width(&title) + 9);
        let title = if about.is_empty() { title } else { format!("{title} · {}", fit(&about, room)) };
        let inner = panel(canvas, docked(area, self.height()), &title, &hint, theme);
        let columns = usize::from(inner.width);
        let mut lines = Vec::new();
        for (at, (rule, reach)) in self.choices.iter().enumerate() {
            let (Rule::Allow(scope) | Rule::Deny(scope)) = rule;
            let holds = match (reach, &self.from) {
                (RuleReach::Session, From::Agent(name)) => format!("for {} only", visible(name)),
                (RuleReach::Session, From::Root) => "in this session".to_owned(),
                (RuleReach::Tree, _) => "in this session, all agents".to_owned(),
                (RuleReach::Project, _) => "in this project".to_owned(),
                (RuleReach::User, _) => "everywhere".to_owned(),
            };
            let what = fit(&covered(scope), columns.saturating_sub(width(&holds) + 5));
            lines.push(Line::from(vec![
                Span::styled(if at == self.list.chosen { "▸ " } else { "  " }, theme.fg(theme.accent)),
                Span::styled(what, if at == self.list.chosen { theme.bold() } else { theme.fg(theme.text) }),
                Span::styled(format!("  {holds}"), theme.dim()),
            ]));
        }
        lines.push(Line::styled(format!("  ◂ {} ▸", LASTS[self.lasts].1), theme.fg(theme.text)));
        lines.push(Line::default());
        if let Some(text) = self.backtest() {
            lines.push(Line::styled(fit(&text, columns), theme.fg(theme.accent)));
            lines.push(Line::default());
        }
        if let Some(danger) = self.danger() {
            let warning = format!("Careful: {danger}.");
            lines.push(Line::styled(fit(&warning, columns), theme.fg(theme.error)));
            lines.push(Line::from(vec![
                Span::styled(format!("type \"{WORD}\" to save a rule for it: "), theme.fg(theme.text)),
                Span::styled(format!("{}▏", visible(&self.typed)), theme.fg(theme.accent)),
            ]));
            lines.push(Line::default());
        }
        let (Rule::Allow(scope) | Rule::Deny(scope)) = &self.choices[self.list.chosen].0;
        if matches!(scope, Scope::Command(_) | Scope::Pattern(_)) {
            let did = if self.denies { "denied" } else { "allowed" };
            let whose = match &self.from {
                From::Root => "this session".to_owned(),
                From::Agent(name) => visible(name),
            };
            lines.push(Line::styled(format!("Commands of {whose} that it would have {did}"), theme.bold()));
            let commands = self.before.iter().flat_map(|it| &it.commands);
            let matching = commands.filter_map(|line| Some((line, rules::overlap(scope, line)?)));
            for (line, is_whole) in matching {
                let rest = if is_whole || self.denies { "" } else { "  (if the rest of it only reads)" };
                let text = fit(&visible(line), columns.saturating_sub(rest.len() + 2));
                lines.push(Line::from(vec![
                    Span::styled(format!("  {text}"), theme.fg(theme.text)),
                    Span::styled(rest, theme.dim()),
                ]));
            }
        }
        self.list.begin();
        for (at, (y, line)) in (inner.y..inner.bottom()).zip(lines).enumerate() {
            let row = Rect { y, height: 1, ..inner };
            if at < self.choices.len() {
                self.list.option(canvas, row, at, || line.to_string());
            }
            canvas.line(line, row);
        }
    }
}

/// What a rule covers, as lists show it.
pub(super) fn covered(scope: &Scope) -> String {
    match scope {
        Scope::FileChanges => "every change of files".to_owned(),
        // The hash of its definition says nothing to a person.
        Scope::Mcp(tool) => visible(&format!("mcp({}), as it is defined now", tool.split('#').next().unwrap_or(tool))),
        other => visible(&rules::shown(other)),
    }
}
