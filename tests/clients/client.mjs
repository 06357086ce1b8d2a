// An editor made with the official TypeScript SDK: a task with an approval, a diff and a cancel, then a load in a new process.
// Usage: node client.mjs PIXIR CWD SCRIPT. Prints one line of JSON with what it saw; the caller judges it.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const [pixir, cwd, script] = process.argv.slice(2);
const capabilities = { session: { notices: {} }, elicitation: { form: {} } };

async function served(work) {
  const agent = spawn(pixir, ["acp", "--provider", `script:${script}`], { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => agent.on("exit", resolve));
  const seen = { asked: [], updates: [] };
  const decisions = [];
  const client = acp
    .client({ name: "editor" })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      seen.asked.push(params.toolCall);
      const kind = decisions.shift() ?? "reject_once";
      const option = params.options.find((option) => option.kind === kind);
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
      seen.wake?.();
    });
  const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
  const result = await client.connectWith(stream, async (ctx) => {
    const hello = await ctx.request(acp.methods.agent.initialize, {
      protocolVersion: acp.PROTOCOL_VERSION,
      clientCapabilities: capabilities,
    });
    return work(ctx, seen, decisions, hello);
  });
  agent.stdin.end();
  return { ...result, exit: await ended };
}

const text = (updates, kind) =>
  updates.filter((it) => it.sessionUpdate === kind).map((it) => it.content.text ?? "").join("");
const say = (ctx, sessionId, words) =>
  ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });

const first = await served(async (ctx, seen, decisions, hello) => {
  const { sessionId } = await ctx.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
  decisions.push("allow_once");
  const edited = await say(ctx, sessionId, "edit it");
  const diff = seen.asked[0].content.find((it) => it.type === "diff");
  const running = new Promise((resolve) => {
    seen.wake = () => text(seen.updates, "agent_message_chunk").includes("Waiting") && resolve();
  });
  const prompt = say(ctx, sessionId, "wait");
  await running;
  await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
  return {
    version: hello.protocolVersion,
    sessionId,
    edited: edited.stopReason,
    diff: { oldText: diff.oldText, newText: diff.newText },
    cancelled: (await prompt).stopReason,
    text: text(seen.updates, "agent_message_chunk"),
  };
});
const second = await served(async (ctx, seen) => {
  const loaded = await ctx.request(acp.methods.agent.session.load, { sessionId: first.sessionId, cwd, mcpServers: [] });
  const results = seen.updates.filter((it) => it.sessionUpdate === "tool_call_update" && it.status === "completed");
  return {
    mode: loaded.modes.currentModeId,
    asked: text(seen.updates, "user_message_chunk"),
    diffs: results.flatMap((it) => it.content ?? []).filter((it) => it.type === "diff").length,
  };
});
console.log(JSON.stringify({ first, second }));
process.exit(0);
