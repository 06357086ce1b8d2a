"""An editor made with the Python SDK: a task with an approval, a diff and a cancel, then a load in a new process.

Usage: client.py PIXIR CWD SCRIPT. Prints one line of JSON with what it saw; the caller judges it.
"""

import asyncio
import json
import sys
from contextlib import suppress

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, ClientCapabilities, RequestPermissionResponse


class Editor(Client):
    def __init__(self):
        self.asked, self.updates, self.decisions = [], [], []
        self.waiting = asyncio.Event()

    async def request_permission(self, options, session_id, tool_call, **_):
        self.asked.append(tool_call)
        kind = self.decisions.pop(0) if self.decisions else "reject_once"
        option = next(option for option in options if option.kind == kind)
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option.option_id))

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        if "Waiting" in self.text("agent_message_chunk"):
            self.waiting.set()

    def text(self, kind):
        return "".join(it.content.text for it in self.updates if it.session_update == kind)

    def diffs(self):
        calls = (it for it in self.updates if it.session_update == "tool_call_update" and it.status == "completed")
        return [it for call in calls for it in call.content or [] if it.type == "diff"]


async def served(pixir, cwd, script, work):
    editor = Editor()
    async with spawn_agent_process(editor, pixir, "acp", "--provider", f"script:{script}", cwd=cwd) as (agent, process):
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=ClientCapabilities())
        result = await work(agent, editor, hello)
        process.stdin.close()
        with suppress(AttributeError):
            await process.stdin.wait_closed()
        result["exit"] = await process.wait()
    return result


async def main(pixir, cwd, script):
    async def first(agent, editor, hello):
        session = (await agent.new_session(cwd=cwd, mcp_servers=[])).session_id
        editor.decisions.append("allow_once")
        edited = await agent.prompt(session_id=session, prompt=[text_block("edit it")])
        diff = next(it for it in editor.asked[0].content if it.type == "diff")
        prompt = asyncio.create_task(agent.prompt(session_id=session, prompt=[text_block("wait")]))
        await editor.waiting.wait()
        await agent.cancel(session_id=session)
        return {
            "version": hello.protocol_version,
            "sessionId": session,
            "edited": edited.stop_reason,
            "diff": {"oldText": diff.old_text, "newText": diff.new_text},
            "cancelled": (await prompt).stop_reason,
            "text": editor.text("agent_message_chunk"),
        }

    told = await served(pixir, cwd, script, first)

    async def second(agent, editor, _):
        loaded = await agent.load_session(session_id=told["sessionId"], cwd=cwd, mcp_servers=[])
        # The SDK hands updates over after the response.
        while "wait" not in editor.text("user_message_chunk"):
            await asyncio.sleep(0)
        return {
            "mode": loaded.modes.current_mode_id,
            "asked": editor.text("user_message_chunk"),
            "diffs": len(editor.diffs()),
        }

    print(json.dumps({"first": told, "second": await served(pixir, cwd, script, second)}))


asyncio.run(main(*sys.argv[1:]))
