//! Random conversations, compacted again and again.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use protocol::event::{AssistantMessage, HistoryCompaction, Label, SessionId, ToolCall, ToolResult, UserMessage, now};

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
        self.add(ToolCall { call_id: call_id.clone(), name: "read".into(), args: args.into(), info: None });
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
            let room = Room { window, fixed, scale: Scale::default(), shrink };
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
                conversation::history::Piece::Call { id, .. } => Some(id.to_string()),
                _ => None,
            }).collect();
            let results: Vec<_> = items.iter().filter_map(|it| match it.piece() {
                conversation::history::Piece::Result { id, .. } => Some(id.to_string()),
                _ => None,
            }).collect();
            prop_assert_eq!(calls, results);
            talk.answer(&format!("answer {n} {}", "done ".repeat(answer / 5)));
        }
        // Without anything new, a second compaction finds nothing to do or leaves the summary as it is.
        let room = || Some(Room { window, fixed, scale: Scale::default(), shrink: 0 });
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
    let room = Some(Room { window: 16_000, fixed: 2_000, scale: Scale::default(), shrink: 0 });
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
    let compaction = plan(
        &talk.history,
        Trigger::Manual,
        None,
        Some(Room { window: 16_000, fixed: 2_000, scale: Scale::default(), shrink: 0 }),
    )
    .expect("long");
    talk.add(compaction.compaction);
    assert_ne!(talk.request(), before);
    talk.add(protocol::event::HeadMoved { to_seq: Some(head), reason: "rewind".into() });
    assert_eq!(talk.request(), before);
}

/// The numbers of the Entries that the next request has, as they are or by a note.
fn sent(history: &History) -> BTreeSet<u64> {
    history.items().iter().filter_map(|item| Some(item.entry()?.seq)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    /// Broken build: one that forgets a move at the next compaction, lets a pinned message go, keeps a call without its
    /// result, or tells of another conversation after a resume.
    #[test]
    fn what_the_user_moves_is_where_the_user_moved_it(
        turns in proptest::collection::vec((1_usize..300, 0_usize..4, 0_usize..1_500, 0_usize..500, 0_u8..12), 8..40),
        moves in proptest::collection::vec((0_usize..60, 0_u8..3), 0..20),
        drops in proptest::collection::vec(0_usize..60, 0..4),
        rounds in 1_usize..4,
    ) {
        let room = Room { window: 65_536, fixed: 2_400, scale: Scale::default(), shrink: 4 };
        let mut talk = Talk::new();
        let mut pinned: Vec<String> = Vec::new();
        for round in 0..rounds {
            let mut asked = String::new();
            for (n, (request, calls, output, answer, pin)) in turns.iter().enumerate() {
                asked = format!("request {round}.{n}: {}", "please ".repeat(request / 7));
                let seq = talk.ask(&asked);
                if *pin == 0 && pinned.len() < 3 {
                    talk.pin(seq);
                    pinned.push(asked.clone());
                }
                (0..*calls).for_each(|_| talk.call(*output));
                talk.answer(&format!("answer {round}.{n} {}", "done ".repeat(answer / 5)));
            }
            // The user drops some of it from the context first.
            let path: Vec<u64> = talk.history.recent_path().map(|it| it.seq).collect();
            for at in &drops {
                let seq = path[at % path.len()];
                let is_asked = matches!(&talk.history.entry(seq).expect("there").fact, Fact::UserMessage(_));
                if !is_asked {
                    talk.add(Label { seq, dropped: Some(true), ..Label::default() });
                }
            }
            let Ok(first) = plan(&talk.history, Trigger::Manual, None, Some(room)) else { continue };
            let preview = first.preview(&talk.history);
            let movable: Vec<u64> = preview.segments.iter().filter(|it| !it.fixed).filter_map(|it| it.seq).collect();
            let mut options = CompactOptions::default();
            let mut wished = std::collections::BTreeMap::new();
            for (at, list) in moves.iter().filter(|_| !movable.is_empty()) {
                let seq = movable[at % movable.len()];
                wished.insert(seq, [List::Kept, List::SummedUp, List::Dropped][usize::from(*list)]);
            }
            for (seq, list) in &wished {
                match list {
                    List::Kept => options.keep.push(*seq),
                    List::SummedUp => options.sum_up.push(*seq),
                    List::Dropped => options.drop.push(*seq),
                }
            }
            let Ok(moved) = plan_with(&talk.history, Trigger::Manual, None, Some(room), &options) else { continue };
            let shown = moved.preview(&talk.history);
            for segment in &shown.segments {
                if let Some(wish) = segment.seq.and_then(|seq| wished.get(&seq)) {
                    prop_assert_eq!(segment.list, *wish);
                }
            }
            let text = format!("My own words, round {round}.");
            let compaction = moved.with_text(&text, None).expect("a text");
            let before = talk.seq;
            talk.add(compaction.clone());
            let (sent, request) = (sent(&talk.history), talk.request());
            prop_assert!(request.contains(&shown_in(&text)), "the summary word for word");
            prop_assert!(request.contains(&shown_in(&asked)), "the last request");
            for text in &pinned {
                prop_assert!(request.contains(&shown_in(text)), "pinned: {text}");
            }
            for segment in &shown.segments {
                let Some(seq) = segment.seq else { continue };
                let stays = segment.list == List::Kept && !compaction.pinned.contains(&seq) && !asked_before(&talk, seq, &compaction);
                prop_assert_eq!(sent.contains(&seq), stays, "entry {} in {:?}", seq, segment.list);
            }
            // What was recorded shows the same lists.
            let recorded = recorded(&talk.history, before).expect("it is a compaction");
            let lists = |it: &protocol::event::CompactionPreview| -> Vec<(Option<u64>, List)> {
                it.segments.iter().map(|it| (it.seq, it.list)).collect()
            };
            prop_assert_eq!(lists(&recorded), lists(&shown));
            // A resume sends the same.
            let again = History::fold(talk.history.entries().iter().cloned());
            prop_assert_eq!(format!("{:?}", again.items()), format!("{:?}", talk.history.items()));
            let ids = |is_call: bool| -> Vec<String> {
                let items = talk.history.items();
                let of = items.iter().filter_map(|it| match it.piece() {
                    conversation::history::Piece::Call { id, .. } if is_call => Some(id.to_string()),
                    conversation::history::Piece::Result { id, .. } if !is_call => Some(id.to_string()),
                    _ => None,
                });
                of.collect()
            };
            prop_assert_eq!(ids(true), ids(false));
        }
    }
}

/// The last request stands in the summary, because the cut is behind it.
fn asked_before(talk: &Talk, seq: u64, compaction: &HistoryCompaction) -> bool {
    let last = talk.history.path().rfind(|it| conversation::history::is_request(&it.fact));
    last.is_some_and(|it| it.seq == seq) && compaction.has_replaced(seq)
}

fn shown_in(text: &str) -> String {
    shown(text)
}

/// Broken build: one that sends the dropped text, breaks the pair of a call and its result, or cannot take it back.
#[test]
fn a_dropped_result_is_a_note_until_it_is_sent_again() {
    let mut talk = Talk::new();
    talk.ask("look");
    talk.call(4_000);
    talk.answer("seen");
    let before = talk.request();
    let result = 2;
    talk.add(Label { seq: result, dropped: Some(true), ..Label::default() });
    let request = talk.request();
    assert!(!request.contains(&"x".repeat(100)) && request.contains("dropped this result"), "{request}");
    assert_eq!(talk.history.items().len(), 4);
    talk.add(Label { seq: result, dropped: Some(false), ..Label::default() });
    assert_eq!(talk.request(), before);
}

#[test]
fn a_pinned_message_and_the_last_request_cannot_be_moved() {
    let mut talk = Talk::new();
    for n in 0..30 {
        let seq = talk.ask(&format!("request {n}"));
        if n == 1 {
            talk.pin(seq);
        }
        talk.call(2_000);
        talk.answer(&format!("answer {n}"));
    }
    let room = Some(Room { window: 16_000, fixed: 2_000, scale: Scale::default(), shrink: 0 });
    let preview = plan(&talk.history, Trigger::Manual, None, room).expect("long").preview(&talk.history);
    let fixed: Vec<u64> = preview.segments.iter().filter(|it| it.fixed).filter_map(|it| it.seq).collect();
    assert_eq!(fixed.len(), 2, "{:?}", preview.segments);
    for seq in fixed {
        let options = CompactOptions { drop: vec![seq], ..CompactOptions::default() };
        let error = plan_with(&talk.history, Trigger::Manual, None, room, &options).expect_err("it stays");
        assert_eq!(error.code, Code::InvalidArgs, "{}", error.message);
    }
    let token = token(&talk.history);
    talk.ask("one more");
    assert_ne!(token, self::token(&talk.history), "a preview of before is out of date");
}
