"""An agent made with the official SDK for Python, as a client of `pixir mcp serve`: PIXIR SCRIPT; its user allows everything.

One task that writes a file, one line that prints, one that is refused for its arguments; prints what it saw as JSON.
"""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult

asked = []
progress = []


async def answer(context, params):
    asked.append(params.message)
    name = next(iter(params.requested_schema["properties"]))
    return ElicitResult(action="accept", content={name: "allow"})


async def note(done, total, message):
    progress.append(message)


def text(result):
    return "".join(it.text for it in result.content)


async def main(pixir, script):
    words = ["mcp", "serve", "--mode", "ask", "--provider", f"script:{script}"]
    server = StdioServerParameters(command=pixir, args=words, env=dict(os.environ), cwd=os.getcwd())
    async with stdio_client(server) as (read, write), ClientSession(read, write, elicitation_callback=answer) as session:
        hello = await session.initialize()
        tools = await session.list_tools()
        task = await session.call_tool("pixir_task", {"task": "write b.txt"}, progress_callback=note)
        ran = await session.call_tool("pixir_run", {"command": "echo alive"})
        try:
            wrong = text(await session.call_tool("pixir_task", {}))
        except Exception as e:
            wrong = str(e)
        await session.send_ping()
    seen = {
        "server": hello.server_info.name,
        "tools": [it.name for it in tools.tools],
        "task": text(task),
        "status": task.structured_content["status"],
        "ran": text(ran),
        "wrong": wrong,
        "asked": asked,
        "progress": len(progress),
    }
    print(json.dumps(seen))


asyncio.run(main(sys.argv[1], sys.argv[2]))
