use super::*;
use protocol::event::{HeadMoved, HistoryCompaction, SessionId, ToolCall, ToolResult, UserMessage, now};

fn log(facts: Vec<Fact>) -> History {
    let id = SessionId::now();
    History::fold(facts.into_iter().enumerate().map(|(seq, fact)| {
        Arc::new(Entry {
            id: uuid::Uuid::now_v7(),
            session_id: id.clone(),
            seq: seq as u64,
            ts: now(),
            turn: Some(1),
            fact,
            beyond: None,
        })
    }))
}

fn says(text: &str) -> Fact {
    UserMessage { text: text.into(), ..UserMessage::default() }.into()
}

fn calls(id: &str) -> Fact {
    ToolCall { call_id: id.into(), name: "read".into(), args: serde_json::json!({}).into(), info: None }.into()
}

fn told(history: &History) -> Vec<String> {
    history
        .items()
        .iter()
        .map(|item| match item.piece() {
            Piece::User { text, .. } | Piece::Note { text } | Piece::Assistant { text, .. } => text.into_owned(),
            Piece::Call { id, .. } => format!("call {id}"),
            Piece::Result { id, .. } => format!("result {id}"),
            Piece::Reasoning { .. } => "thought".into(),
        })
        .collect()
}

#[test]
fn a_call_that_was_cut_off_never_reaches_a_model_without_a_result() {
    let history = log(vec![says("a"), calls("1"), calls("2"), says("b"), calls("3")]);
    assert_eq!(told(&history), ["a", "call 1", "call 2", "result 1", "result 2", "b", "call 3", "result 3"]);
    assert_eq!(history.orphans().collect::<Vec<_>>(), ["3"]);
}

#[test]
fn what_the_person_ran_is_told_with_what_came_of_it_or_not_at_all() {
    let ran = |id: &str, send_to_model| {
        Fact::from(UserCommand { call_id: id.into(), command: format!("cmd {id}"), send_to_model })
    };
    let result =
        |id: &str| Fact::from(ToolResult { call_id: id.into(), output: format!("out {id}"), ..ToolResult::default() });
    let history = log(vec![ran("1", true), result("1"), ran("2", false), result("2"), says("so?"), ran("3", true)]);
    assert_eq!(told(&history), ["<command by=\"the user\">\ncmd 1\n</command>\n<output>\nout 1\n</output>", "so?"]);
    assert_eq!(history.orphans().collect::<Vec<_>>(), ["3"], "a command that was cut off gets a result as well");
}

/// Broken build: a compaction folds the path from the root again.
#[test]
fn a_compaction_folds_what_it_keeps_however_long_the_session_is() {
    let turn = |n: u64| {
        let compaction = HistoryCompaction {
            strategy: "deterministic".into(),
            trigger: protocol::event::Trigger::Threshold,
            // The last two Turns stay.
            kept_from_seq: (n * 4).saturating_sub(4),
            summary: "before".into(),
            ..HistoryCompaction::default()
        };
        let call = format!("call {n}");
        let result = ToolResult { call_id: call.clone(), ..ToolResult::default() };
        [says("a"), calls(&call), result.into(), compaction.into()]
    };
    let of = |turns: u64| log((0..turns).flat_map(turn).collect());
    let (short, long) = (of(100), of(10_000));
    assert_eq!(told(&long).len(), told(&short).len());
    assert_eq!(long.recent_path().count(), short.recent_path().count());
    assert!(long.folded <= 101 * short.folded, "{} Entries were folded, {} for 100 Turns", long.folded, short.folded);
    assert!(long.folded < 12 * 40_000, "{} for 40,000 Entries", long.folded);
}

#[test]
fn after_the_head_moved_the_conversation_goes_on_from_there_and_the_log_keeps_all() {
    let back = HeadMoved { to_seq: Some(0), reason: "rewind".into() };
    let history = log(vec![says("a"), says("b"), says("c"), back.into(), says("d")]);
    assert_eq!(told(&history), ["a", "d"]);
    assert_eq!((history.parent(4), history.head(), history.entries().len()), (Some(0), Some(4), 5));
}
