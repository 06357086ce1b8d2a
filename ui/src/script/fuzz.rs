//! Random interleavings of keys, clicks, focus, arrivals and frames: nothing that the user did before an approval or a
//! question was visible for a moment answers it, whether the Session or an agent asks.

use std::time::{Duration, Instant};

use pixir_core::agent::Asker;
use pixir_core::event::{
    Approval, Confirmation, Event, Form, Live, LiveEvent, Preview, Question, Rule, Scope, SessionId,
};
use pixir_core::{Decision, Input};
use proptest::prelude::*;

use crate::input::keymap::Keymap;
use crate::overlay::Overlay;
use crate::render::highlight::Highlighter;
use crate::state::{Effect, Focus, PendingApproval, State};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use crate::theme::{Background, Depth, Theme};
use crate::{update, view};

/// The shortest time that an approval is visible before a key decides about it.
const DELAY: Duration = Duration::from_millis(250);
const SIZE: (u16, u16) = (80, 24);

/// Something that happens to the interface.
#[derive(Debug, Clone)]
enum Happening {
    Key(KeyCode, KeyModifiers, KeyEventKind),
    Click(u16, u16),
    /// The window gets the focus back.
    Focus,
    /// Another approval arrives, from an agent or from the Session itself.
    Asked {
        by_agent: bool,
    },
    /// A question of the model arrives.
    Questioned {
        by_agent: bool,
    },
    /// The first approval is answered elsewhere.
    AnsweredElsewhere,
    Frame,
    Passes(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let letters = prop::sample::select(vec!['y', 'a', 's', 'n', 'f', 'x', ' ', '1']);
    let letter = letters.prop_map(letter_key);
    let chords = prop::sample::select(vec!['y', 'a', 's', 'n', 'f']);
    let kinds = prop::sample::select(vec![KeyEventKind::Press, KeyEventKind::Press, KeyEventKind::Repeat]);
    let chord = (chords, kinds).prop_map(|(c, kind)| Happening::Key(KeyCode::Char(c), KeyModifiers::ALT, kind));
    let others = vec![KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::Down, KeyCode::End, KeyCode::Backspace];
    let other = prop::sample::select(others);
    let other = other.prop_map(|code| Happening::Key(code, KeyModifiers::NONE, KeyEventKind::Press));
    prop_oneof![
        3 => letter,
        5 => chord,
        4 => other,
        1 => (0..SIZE.0, 0..SIZE.1).prop_map(|(x, y)| Happening::Click(x, y)),
        1 => Just(Happening::Focus),
        1 => any::<bool>().prop_map(|by_agent| Happening::Asked { by_agent }),
        1 => Just(Happening::Asked { by_agent: false }),
        1 => any::<bool>().prop_map(|by_agent| Happening::Questioned { by_agent }),
        // The word before damage that lasts, faster than a person types it.
        1 => prop::sample::select(vec!['a', 'l', 'o', 'w']).prop_map(letter_key),
        1 => Just(Happening::AnsweredElsewhere),
        6 => Just(Happening::Frame),
        4 => (0_u64..120).prop_map(Happening::Passes),
        4 => (240_u64..400).prop_map(Happening::Passes),
    ]
}

fn letter_key(letter: char) -> Happening {
    Happening::Key(KeyCode::Char(letter), KeyModifiers::NONE, KeyEventKind::Press)
}

fn agent() -> Asker {
    Asker { path: vec!["worker-1".into()], role: "worker".into() }
}

/// The interface, and what a careful observer has noted of it.
struct Observed {
    state: State,
    canvas: Canvas,
    asked: u32,
    /// When the text of each approval and each question was first on the screen.
    seen: Vec<(String, Instant)>,
    /// The last key, click or focus.
    disturbed: Instant,
    decided: usize,
}

impl Observed {
    fn new() -> Observed {
        let theme = Theme::load("dark", None, Depth::True, Background::Dark).expect("a theme");
        let keymap = Keymap::new(&std::collections::BTreeMap::new()).expect("the defaults");
        let state = State::new("/w".into(), theme, Depth::True, Highlighter::new(|| ()), keymap);
        let disturbed = state.now.at;
        Observed { state, canvas: Canvas::default(), asked: 0, seen: Vec::new(), disturbed, decided: 0 }
    }

    fn ask(&mut self, by_agent: bool) {
        let call_id = self.next_call();
        let lasts = self.asked.is_multiple_of(3);
        let command = if lasts { format!("rm -rf src/{call_id}") } else { format!("cargo test {call_id}") };
        let confirm = |word: &str| Confirmation {
            word: word.to_owned(),
            dangers: vec!["it deletes folders".into()],
            unseen: Vec::new(),
        };
        let preview = Preview { would: "run".into(), target: command.clone(), ..Preview::default() };
        self.arrives(Live::ApprovalRequested(Approval {
            call_id,
            tool: "bash".into(),
            preview: Box::new(preview),
            reason: "runs a program that may do anything".into(),
            rule: Some(Rule::Allow(Scope::Command(command))),
            confirm: lasts.then(|| confirm(Confirmation::ONCE)),
            confirm_rule: lasts.then(|| confirm(Confirmation::ALWAYS)),
            agent: by_agent.then(agent),
        }));
    }

    fn question(&mut self, by_agent: bool) {
        let call_id = self.next_call();
        let question = format!("Which way for {call_id}?");
        let options = vec!["north".to_owned(), "south".to_owned()];
        let questions = vec![Question { question, options, multiple: false, only_options: false }];
        self.arrives(Live::FormOpened(Form { call_id, questions, agent: by_agent.then(agent) }));
    }

    /// Ids of one length, so that no id stands in another one.
    fn next_call(&mut self) -> String {
        self.asked += 1;
        format!("c{:03}", self.asked)
    }

    fn arrives(&mut self, live: Live) {
        let event = LiveEvent { session_id: SessionId::now(), turn: Some(1), agent_path: Vec::new(), live };
        update::events::on_event(&mut self.state, Event::Live(event));
        update::agents::ask_next(&mut self.state);
    }

    fn happens(&mut self, it: &Happening) -> Result<(), TestCaseError> {
        let writes_feedback = self.state.approvals.first().is_some_and(PendingApproval::is_in_feedback);
        let is_choosing = matches!(self.state.overlays.last(), Some(Overlay::Always(_) | Overlay::Danger(_)));
        // A key that answers, pressed too early, is ignored. It does not postpone the moment at which it counts.
        let has_keys = match self.state.overlays.last() {
            None => self.state.focus == Focus::Approval,
            Some(overlay) => matches!(overlay, Overlay::Approval(_)),
        };
        let is_answer = match it {
            Happening::Key(KeyCode::Char('y' | 'a' | 's' | 'n' | 'f'), KeyModifiers::ALT, _) => true,
            Happening::Key(KeyCode::Char('y' | 'a' | 's' | 'n' | 'f') | KeyCode::Enter, _, _) => has_keys,
            _ => false,
        };
        let effects = match it {
            Happening::Key(code, modifiers, kind) => {
                let key = KeyEvent { code: *code, modifiers: *modifiers, kind: *kind };
                update::on_key(&mut self.state, key)
            }
            Happening::Click(column, row) => {
                let kind = MouseEventKind::Down(MouseButton::Left);
                let mut effects = update::on_mouse(&mut self.state, MouseEvent { kind, column: *column, row: *row })
                    .unwrap_or_default();
                let kind = MouseEventKind::Up(MouseButton::Left);
                effects.extend(
                    update::on_mouse(&mut self.state, MouseEvent { kind, column: *column, row: *row })
                        .unwrap_or_default(),
                );
                effects
            }
            Happening::Focus => {
                self.state.guard.quiet_since = self.state.now.at;
                Vec::new()
            }
            Happening::Asked { by_agent } => {
                self.ask(*by_agent);
                Vec::new()
            }
            Happening::Questioned { by_agent } => {
                self.question(*by_agent);
                Vec::new()
            }
            Happening::AnsweredElsewhere => {
                if let Some(first) = self.state.approvals.first().map(|it| it.approval.call_id.clone()) {
                    self.state.drop_approvals(|it| it.approval.call_id == first);
                    self.state.overlays.clear();
                }
                Vec::new()
            }
            Happening::Frame => {
                view::draw(&mut self.state, &mut self.canvas, SIZE);
                let text = self.canvas.to_text();
                for id in (1..=self.asked).map(|number| format!("c{number:03}")) {
                    if text.contains(&id) && self.seen.iter().all(|(seen, _)| *seen != id) {
                        self.seen.push((id, self.state.now.at));
                    }
                }
                Vec::new()
            }
            Happening::Passes(ms) => {
                self.state.now.at += Duration::from_millis(*ms);
                Vec::new()
            }
        };
        let now = self.state.now.at;
        for effect in effects {
            let Effect::Send(input) = effect else { continue };
            let input = if let Input::ToAgent { input, .. } = input { *input } else { input };
            let (call_id, decision) = match input {
                Input::Decide { call_id, decision, .. } => (call_id, Some(decision)),
                Input::Answer { call_id, .. } => (call_id, None),
                _ => continue,
            };
            self.decided += 1;
            let seen = self.seen.iter().find(|(id, _)| *id == call_id).map(|(_, at)| *at);
            prop_assert!(seen.is_some(), "{call_id} was answered unseen by {it:?}");
            let visible = now - seen.unwrap_or(now);
            prop_assert!(visible >= DELAY, "{call_id} was answered after {visible:?} by {it:?}");
            prop_assert!(matches!(it, Happening::Key(..)), "only keys answer, not {it:?}");
            // A key that answers at once was pressed after a moment of rest. Words and a rule are written for it.
            // A question takes keys one after the other, once it was on the screen for a moment.
            if decision.is_some() && !writes_feedback && !is_choosing {
                let rest = now - self.disturbed;
                prop_assert!(rest >= DELAY, "{call_id} was answered {rest:?} after something else, by {it:?}");
            }
            if let (Some(Decision::AllowAlways { .. } | Decision::DenyAlways { .. }), false) = (&decision, is_choosing)
            {
                prop_assert!(false, "a rule is saved only where its scope is visible");
            }
        }
        let is_disturbance = match it {
            Happening::Key(..) => !is_answer,
            Happening::Click(..) | Happening::Focus => true,
            Happening::Asked { .. } | Happening::Questioned { .. } => false,
            Happening::AnsweredElsewhere | Happening::Frame | Happening::Passes(_) => false,
        };
        if is_disturbance {
            self.disturbed = now;
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_typed_before_an_approval_was_visible_answers_it(all in prop::collection::vec(happening(), 1..80)) {
        let mut observed = Observed::new();
        for it in &all {
            observed.happens(it)?;
        }
    }
}

#[test]
fn a_user_who_waits_a_moment_is_heard() {
    let mut observed = Observed::new();
    let press = |c| Happening::Key(KeyCode::Char(c), KeyModifiers::ALT, KeyEventKind::Press);
    let rest = Happening::Passes(300);
    let story = [rest.clone(), Happening::Asked { by_agent: true }, Happening::Frame, press('y'), rest, press('y')];
    for it in &story {
        observed.happens(it).expect("no rule is broken");
    }
    assert_eq!(observed.decided, 1, "the first key came too early, the second did not");
}
