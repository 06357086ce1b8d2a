//! Random conversations, compacted again and again.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::protocol::event::{
    AssistantMessage, HistoryCompaction, Label, SessionId, ToolCall, ToolResult, UserMessage, now,
};

/// A conversation that grows as a Session does.
struct Talk {
    history: History,
    id: SessionId,
    turn: u32,
    seq: u64,
}

impl Talk {
    fn new() -> Talk {
        Talk { history: History::fold([]), id: SessionId::now(), turn: 0, seq: 0 }
    }

    fn add(&mut self, fact: impl Into<Fact>) -> u64 {
        let entry = Entry {
            id: uuid::Uuid::now_v7(),
            session_id: self.id.clone(),
            seq: self.seq,
            ts: now(),
            turn: Some(self.turn),
            fact: fact.into(),
            beyond: None,
        };
        self.seq += 1;
        self.history.append(Arc::new(entry));
        self.seq - 1
    }

    fn ask(&mut self, text: &str) -> u64 {
        self.turn += 1;
        self.add(UserMessage { text: text.into(), ..UserMessage::default() })
    }

    fn answer(&mut self, text: &str) -> u64 {
        self.add(AssistantMessage { text: text.into(), partial: false, phase: None })
    }

    fn call(&mut self, output: usize) {
        let call_id = format!("c{}", self.seq);
        let args = serde_json::json!({ "path": format!("src/file{}.rs", self.seq % 97) });
        self.add(ToolCall { call_id: call_id.clone(), name: "read".into(), args, info: None });
        self.add(ToolResult { call_id, output: "x".repeat(output), ok: true, ..ToolResult::default() });
    }

    fn pin(&mut self, seq: u64) {
        self.add(Label { seq, pinned: Some(true), ..Label::default() });
    }

    /// Compacts as a Session does before a request, until it uses less than 85 % of the window. `None` if nothing may be
    /// compacted any more.
    fn make_room(&mut self, window: u64, fixed: u64) -> Option<HistoryCompaction> {
        let mut last = None;
        for shrink in 0..4 {
            if fixed + self.history.estimated_tokens() < window * 85 / 100 {
                return last;
            }
            let room = Room { window, fixed, shrink };
            let compaction = plan(&self.history, Trigger::Threshold, None, Some(room)).ok()?.compaction;
            self.add(compaction.clone());
            last = Some(compaction);
        }
        last
    }

    /// The text of the next request.
    fn request(&self) -> String {
        self.history.items().iter().map(|item| format!("{:?}", item.piece())).collect::<Vec<_>>().join("\n")
    }
}

/// As the pieces of a request show a text.
fn shown(text: &str) -> String {
    let quoted = format!("{text:?}");
    quoted[1..quoted.len() - 1].to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Broken build: one that drops a pinned message, splits a call from its result, or whose summary grows each time.
    #[test]
    fn what_is_pinned_and_the_last_request_stay_and_the_rest_fits(
        turns in proptest::collection::vec((1_usize..600, 0_usize..4, 0_usize..2_500, 0_usize..900, 0_u8..12), 1..80),
        window in prop_oneof![Just(4_096_u64), Just(8_192), Just(32_768)],
    ) {
        let fixed = 2_400;
        let mut talk = Talk::new();
        let mut pinned: Vec<String> = Vec::new();
        for (n, (request, calls, output, answer, pin)) in turns.into_iter().enumerate() {
            let asked = format!("request {n}: {}", "please ".repeat(request / 7));
            let seq = talk.ask(&asked);
            if pin == 0 && pinned.iter().map(String::len).sum::<usize>() + asked.len() < 2_000 {
                talk.pin(seq);
                pinned.push(asked.clone());
            }
            for _ in 0..calls {
                talk.make_room(window, fixed);
                let request = talk.request();
                prop_assert!(request.contains(&shown(&asked)), "the request that is worked on: {asked}");
                talk.call(output);
            }
            talk.make_room(window, fixed);
            let request = talk.request();
            prop_assert!(request.contains(&shown(&asked)), "the last request: {asked}");
            for text in &pinned {
                prop_assert!(request.contains(&shown(text)), "pinned: {text}");
            }
            let needed = fixed + talk.history.estimated_tokens();
            prop_assert!(needed < window, "{needed} of {window} tokens after turn {n}");
            let items = talk.history.items();
            let calls: Vec<_> = items.iter().filter_map(|it| match it.piece() {
                crate::conversation::history::Piece::Call { id, .. } => Some(id.to_string()),
                _ => None,
            }).collect();
            let results: Vec<_> = items.iter().filter_map(|it| match it.piece() {
                crate::conversation::history::Piece::Result { id, .. } => Some(id.to_string()),
                _ => None,
            }).collect();
            prop_assert_eq!(calls, results);
            talk.answer(&format!("answer {n} {}", "done ".repeat(answer / 5)));
        }
        // Without anything new, a second compaction finds nothing to do or leaves the summary as it is.
        let room = || Some(Room { window, fixed, shrink: 0 });
        if let Ok(first) = plan(&talk.history, Trigger::Manual, None, room()) {
            talk.add(first.compaction.clone());
            if let Ok(second) = plan(&talk.history, Trigger::Manual, None, room()) {
                prop_assert!(second.compaction.tokens_after <= first.compaction.tokens_after);
            }
        }
    }
}

/// Broken build: one whose summary grows with each compaction, or that loses a pin. The facts of the first answers are in
/// the summary, or it says that its Turns are left out, so that the model searches for them.
#[test]
fn two_thousand_turns_fit_a_window_of_32k_and_the_summary_says_what_is_left_out() {
    let (window, fixed) = (32_768, 2_400);
    let mut talk = Talk::new();
    let pin = talk.ask("The licence is MIT; keep every header.");
    talk.pin(pin);
    talk.answer("Understood.");
    let mut compactions = 0;
    let mut longest = 0;
    let mut last = None;
    for n in 0..2_000 {
        talk.ask(&format!("do task {n}"));
        talk.call(1_500);
        talk.answer(&format!("Task {n} is done; its port is {}.", 10_000 + n));
        if let Some(compaction) = talk.make_room(window, fixed) {
            compactions += 1;
            longest = longest.max(compaction.summary.len());
            last = Some(compaction);
        }
        assert!(fixed + talk.history.estimated_tokens() < window, "turn {n}");
    }
    let last = last.expect("it was compacted");
    assert!(compactions > 20, "{compactions}");
    assert!(longest <= (window - fixed) as usize + 200, "{longest} bytes");
    assert!(talk.request().contains("The licence is MIT; keep every header."));
    assert_eq!(last.turns.len() as u64 + last.turns_left_out, u64::from(last.turns.last().expect("told").turn));
    assert!(
        last.summary.contains(&format!("The {} oldest turns are left out", last.turns_left_out)),
        "{}",
        last.summary
    );
    assert!(last.turns.len() > 30, "{} turns are told", last.turns.len());
    let told = last.turns.last().expect("told");
    assert!(told.answer.contains("is done; its port is"), "{told:?}");
}

#[test]
fn an_answered_request_is_not_called_open_and_each_side_keeps_its_words() {
    let mut talk = Talk::new();
    talk.ask("first question");
    talk.answer(&format!("{} The first answer ends with FORTY-TWO.", "word ".repeat(6_000)));
    talk.ask("second question");
    talk.answer(&format!("{} The second answer ends with BLUE.", "word ".repeat(6_000)));
    talk.ask("third question");
    talk.answer("short");
    let room = Some(Room { window: 16_000, fixed: 2_000, shrink: 0 });
    let compaction = plan(&talk.history, Trigger::Manual, None, room).expect("there is something").compaction;
    let summary = &compaction.summary;
    assert!(summary.contains("- Turn 1: first question\n  - You answered: …"), "{summary}");
    assert!(summary.contains("ends with FORTY-TWO.") && summary.contains("ends with BLUE."), "{summary}");
    assert!(!summary.contains("continue, word for word"), "no request is open: {summary}");
    assert_eq!(compaction.limitations.len(), 1, "{:?}", compaction.limitations);
}

/// Broken build: one that moves the head and leaves the compaction in the request.
#[test]
fn moving_the_head_before_a_compaction_restores_the_request() {
    let mut talk = Talk::new();
    for n in 0..30 {
        talk.ask(&format!("request {n}"));
        talk.call(2_000);
        talk.answer(&format!("answer {n}"));
    }
    let (before, head) = (talk.request(), talk.history.head().expect("there is one"));
    let compaction = plan(&talk.history, Trigger::Manual, None, Some(Room { window: 16_000, fixed: 2_000, shrink: 0 }))
        .expect("long");
    talk.add(compaction.compaction);
    assert_ne!(talk.request(), before);
    talk.add(crate::protocol::event::HeadMoved { to_seq: Some(head), reason: "rewind".into() });
    assert_eq!(talk.request(), before);
}
