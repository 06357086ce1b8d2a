//! Memories and past Sessions: stored in one Session, found in the next.

use pixir_core::provider::script::Step;
use serde_json::json;

use crate::driver::{Pixir, also_calls, calls, says};

#[tokio::test]
async fn recall_and_memory_reach_other_sessions() {
    let lines = |command: &str| calls("run", json!({ "command": command }));
    let toolset = |steps: Vec<Step>| Pixir::sized(steps, &[], 100, 30);
    let mut pixir = toolset(vec![lines("memory store 'the login needs a token'"), says("The timeout was the proxy.")]);
    pixir.does("/toolset both<Enter>").await;
    pixir.does("why does the login time out<Enter>").await;
    let id = pixir.log().iter().find(|e| e["type"] == "memory_fact").expect("it is recorded")["data"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    pixir.does("/new<Enter>").await;
    let mut pixir = pixir.anew(vec![
        calls("recall", json!({"query": "TIMEOUT proxy"})),
        also_calls(lines("memory facts"), "run", json!({"command": format!("memory search token; topic list; memory forget {id}; memory forget 000000")})),
        also_calls(lines("memory facts | wc -l"), "recall", json!({"query": "nothing of the kind"})),
        says("Found."),
    ]).await;
    pixir.does("/toolset both<Enter>").await;
    pixir.does("do you remember<Enter>").await;
    let log = pixir.log();
    let output: Vec<String> = log
        .iter()
        .filter(|e| e["type"] == "tool_result")
        .map(|e| e["data"]["output"].as_str().expect("text").to_owned())
        .collect();
    assert!(output[0].contains("model: The timeout was the proxy."), "{}", output[0]);
    assert!(output[1].contains(&format!("{id} ")) && output[1].contains("the login needs a token"), "{}", output[1]);
    assert!(
        output[2].contains("memory: the login needs a token") && output[2].contains("why does the login time out"),
        "{}",
        output[2]
    );
    assert!(output[2].contains("there is no note `000000`"), "{}", output[2]);
    assert!(output[3].ends_with("ms]"), "{output:?}");
    assert!(output[4].starts_with("no message has all these words\n[exit:1"), "{output:?}");
}
