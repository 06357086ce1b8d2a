//! Models under the names that clouds and gateways give them.

use crate::server::{Dialect, Server, text};
use crate::shell::Shell;

/// Broken builds: a name counts only if it begins as the maker's does, as on ce783d9e, so that the answer has 1,228 tokens and the
/// model does not think; a deployment cannot say which model it is.
#[test]
fn a_model_has_its_window_answer_and_thinking_under_every_name() {
    let names = [
        "claude-sonnet-5-5",
        "anthropic.claude-sonnet-5-5",
        "us.anthropic.claude-sonnet-5-5-v1:0",
        "eu.anthropic.claude-sonnet-5-5-v2",
        "global.anthropic.claude-sonnet-5-5",
        "anthropic/claude-sonnet-5.5",
        "bedrock/us.anthropic.claude-sonnet-5-5-v1:0",
        "claude-sonnet-5-5@20260901",
        "my-deployment",
    ];
    for name in names {
        let shell = Shell::new(&[]);
        let server = Server::start(vec![text("Hello.")]);
        let address = server.flags(Dialect::Anthropic).swap_remove(1);
        shell.configure(&format!(
            "[providers.gateway]\ndialect = \"anthropic\"\nbase_url = \"{address}\"\n\
             [models.\"gateway/my-deployment\"]\nmodel_name = \"claude-sonnet-5-5\"\n"
        ));
        let model = format!("gateway/{name}");
        let ran = shell.run(["--headless", "--json", "--effort", "high", "--model", &model, "hello"]);
        assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
        let body = &server.bodies()[0];
        let most = body["max_tokens"].as_u64().expect("a number");
        assert!(most > 16_000 && !body["thinking"].is_null(), "{name}: {most}, {}", body["thinking"]);
    }
}
