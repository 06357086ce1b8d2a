//! The agents of the Session, at any depth: what each does, its last words and calls, and what the user tells it.

use pixir_core::Input;
use pixir_core::agent::AgentState;
use pixir_core::event::SessionId;
use pixir_core::input::{Message, RestoreOptions};
use pixir_core::search::{self, Step};
use ratatui::layout::{Position, Rect};

use super::list::ListView;
use super::narrow::cut_word;
use super::{Effect, Load, Notification, OnHarness, Outcome, Paint, Press, Request, View};
use crate::input::action::{LayerAction, Scope};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use crate::transcript::Agents;

mod draw; // the list, the preview, the field

/// The steps of a preview.
const STEPS: usize = 60;

/// The last messages and calls of an agent.
#[derive(Debug, Clone, Default)]
struct AgentSteps {
    /// The agent's Session.
    session: String,
    steps: Vec<Step>,
}

/// Whether such steps are read now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Reads {
    #[default]
    Nothing,
    One,
    OneAndThenMore,
}

/// What the user writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// Letters that filter the list.
    Filter,
    /// A text that joins the agent's running Turn.
    Steer,
    /// A text for the Turn after it.
    Continue,
}

#[derive(Debug)]
pub(crate) struct AgentsView {
    agents: Agents,
    /// The Session of the chosen agent.
    chosen: Option<String>,
    filter: String,
    field: Option<Field>,
    /// The text for the agent.
    text: String,
    steps: AgentSteps,
    reads: Reads,
    /// The rows on the screen; its cursor is on the chosen agent.
    list: ListView,
}

impl AgentsView {
    /// The list, with the cursor on this agent, or on the first that asks or runs.
    pub(crate) fn new(agents: &Agents, at: Option<&[String]>) -> AgentsView {
        let mut view = AgentsView {
            agents: agents.clone(),
            chosen: None,
            filter: String::new(),
            field: None,
            text: String::new(),
            steps: AgentSteps::default(),
            reads: Reads::default(),
            list: ListView::default(),
        };
        let rows = view.rows();
        let at = at.and_then(|path| rows.iter().find(|it| it.path == path));
        let open = rows.iter().find(|it| it.asks());
        let open = open.or_else(|| rows.iter().find(|it| it.waiting_files > 0));
        let open = open.or_else(|| rows.iter().find(|it| it.status.is_open()));
        view.chosen = at.or(open).or(rows.first()).map(|it| it.session_id.clone());
        view
    }

    /// Those that match the filter: each after the one that started it, oldest first.
    fn rows(&self) -> Vec<&AgentState> {
        fn add<'a>(all: &'a [AgentState], above: &[String], rows: &mut Vec<&'a AgentState>) {
            let below = all.iter().filter(|it| it.path.len() == above.len() + 1 && it.path.starts_with(above));
            for agent in below {
                rows.push(agent);
                add(all, &agent.path, rows);
            }
        }
        let mut rows = Vec::new();
        add(self.agents.all(), &[], &mut rows);
        let letters = self.filter.to_lowercase();
        rows.retain(|it| {
            let text = format!("{} {} {} {}", it.path.join("/"), it.role, it.task, it.doing).to_lowercase();
            letters.split_whitespace().all(|word| text.contains(word))
        });
        rows
    }

    fn row(&self, rows: &[&AgentState]) -> usize {
        rows.iter().position(|it| Some(&it.session_id) == self.chosen.as_ref()).unwrap_or(0)
    }

    fn agent(&self) -> Option<&AgentState> {
        let rows = self.rows();
        rows.get(self.row(&rows)).copied()
    }

    /// The Session whose last messages and calls are shown.
    pub(crate) fn shows(&self, session: &str) -> bool {
        self.agent().is_some_and(|it| it.session_id == session)
    }

    fn step(&mut self, by: isize) {
        let rows = self.rows();
        let mut list = ListView::at(self.row(&rows));
        list.scroll(by, rows.len());
        self.chosen = rows.get(list.chosen).map(|it| it.session_id.clone());
    }

    /// Moves the cursor. False if the action has no meaning for a list.
    fn go(&mut self, action: LayerAction) -> bool {
        let rows = self.rows();
        let mut list = ListView::at(self.row(&rows));
        let has_meaning = list.act(action, rows.len());
        if has_meaning {
            self.chosen = rows.get(list.chosen).map(|it| it.session_id.clone());
        }
        has_meaning
    }

    /// Reads the last messages and calls of the chosen agent. While some are read, the next are read after them.
    pub(crate) fn read(&mut self) -> Option<Effect> {
        let session = self.agent()?.session_id.clone();
        if self.reads != Reads::Nothing {
            self.reads = Reads::OneAndThenMore;
            return None;
        }
        self.reads = Reads::One;
        Some(
            Load::new(
                move |from| {
                    let steps =
                        SessionId::parse(&session).map(|id| search::last_steps(&from.harness.place(&id), STEPS));
                    AgentSteps { session, steps: steps.unwrap_or_default() }
                },
                |view: &mut AgentsView, steps| {
                    if view.chosen.as_ref() == Some(&steps.session) {
                        view.steps = steps.clone();
                    }
                    match std::mem::take(&mut view.reads) {
                        Reads::OneAndThenMore => view.read(),
                        Reads::Nothing | Reads::One => None,
                    }
                },
            )
            .into(),
        )
    }

    fn look(&mut self) -> Outcome {
        self.read().map_or(Outcome::Stay, Outcome::does)
    }

    /// Sends the text to the chosen agent.
    fn tell(&mut self, field: Field) -> Outcome {
        let Some((path, is_open)) = self.agent().map(|it| (it.path.clone(), it.status.is_open())) else {
            return Outcome::Stay;
        };
        let typed = std::mem::take(&mut self.text).trim().to_owned();
        let text = match (typed.is_empty(), field) {
            (false, _) => typed,
            (true, Field::Continue) => "Go on.".to_owned(),
            (true, Field::Steer | Field::Filter) => {
                self.field = None;
                return Outcome::Stay;
            }
        };
        self.field = None;
        let message = Message { text, ..Message::default() };
        let input = match (is_open, field) {
            (true, Field::Steer | Field::Filter) => Input::Steer(message),
            (true, Field::Continue) => Input::FollowUp(message),
            (false, _) => Input::Prompt(message),
        };
        Outcome::send(Input::ToAgent { path, input: Box::new(input) })
    }
}

impl View for AgentsView {
    fn title(&self) -> &'static str {
        "Agents"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Agents, Scope::Overlay]
    }

    fn opened(&mut self) -> Vec<Effect> {
        self.read().into_iter().collect()
    }

    fn follows(&self) -> bool {
        true
    }

    fn follow(&mut self) -> Vec<Effect> {
        self.read().into_iter().collect()
    }

    fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Agents(agents) = notification {
            self.agents = agents.clone();
            if self.chosen.is_none() {
                self.step(0);
            }
        }
    }

    fn scroll(&mut self, by: isize) {
        self.step(by);
    }

    fn press(&mut self, at: Position) -> Press {
        let Some(row) = self.list.row_at(at) else { return Press::Nowhere };
        let pressed = self.rows().get(row).map(|it| it.session_id.clone());
        let is_new = pressed.is_some() && pressed != self.chosen;
        self.chosen = pressed.or_else(|| self.chosen.take());
        if is_new { Press::Preview(row, Box::new(self.look())) } else { Press::OnRow(row) }
    }

    fn is_typing(&self) -> bool {
        self.field.is_some()
    }

    /// A key for the field.
    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let field = self.field?;
        match key.code {
            KeyCode::Esc => {
                self.field = None;
                if field == Field::Filter {
                    self.filter.clear();
                }
                self.text.clear();
                return Some(self.look());
            }
            KeyCode::Enter if field == Field::Filter => self.field = None,
            KeyCode::Enter => return Some(self.tell(field)),
            _ => {
                let text = if field == Field::Filter { &mut self.filter } else { &mut self.text };
                match key.code {
                    KeyCode::Backspace => drop(text.pop()),
                    KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => text.clear(),
                    KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(text),
                    KeyCode::Char(c) if key.modifiers.is_typing() => text.push(c),
                    _ => return None,
                }
            }
        }
        if field == Field::Filter {
            self.step(0);
            return Some(self.look());
        }
        Some(Outcome::Stay)
    }

    fn paste(&mut self, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match self.field {
            Some(Field::Filter) => self.filter.push_str(&text),
            Some(Field::Steer | Field::Continue) => self.text.push_str(&text),
            None => {}
        }
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::Choose => {
                return match self.agent() {
                    Some(agent) => {
                        let enter = OnHarness::EnterAgent { path: agent.path.clone(), from_list: true }.into();
                        Outcome::CloseAndAsk(Request::Do(vec![enter]))
                    }
                    None => Outcome::Stay,
                };
            }
            LayerAction::SteerAgent => {
                self.field = self.agent().map(|_| Field::Steer);
                return Outcome::Stay;
            }
            LayerAction::ContinueAgent => {
                self.field = self.agent().map(|_| Field::Continue);
                return Outcome::Stay;
            }
            LayerAction::FilterAgents => {
                self.field = Some(Field::Filter);
                return Outcome::Stay;
            }
            LayerAction::AdoptFiles => {
                return match self.agent().filter(|it| it.waiting_files > 0) {
                    Some(agent) => {
                        let options = RestoreOptions { dry_run: true, ..RestoreOptions::default() };
                        Outcome::send(Input::Adopt { path: agent.path.clone(), options, later: false })
                    }
                    None => Outcome::Stay,
                };
            }
            LayerAction::StopAgent => {
                return match self.agent().filter(|it| it.status.is_open()) {
                    Some(agent) => Outcome::send(Input::StopAgents { path: agent.path.clone() }),
                    None => Outcome::Stay,
                };
            }
            action => {
                if !self.go(action) {
                    return Outcome::Stay;
                }
            }
        }
        self.look()
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.paint(canvas, area, paint);
    }
}
