"""An MCP server with one tool that does one wrong thing at one moment: KIND MOMENT ARMED JOURNAL.

It does nothing wrong while there is no file ARMED, and nothing during a call with `plain`.
"""
import json
import os
import signal
import sys
import threading
import time

kind, moment, armed, journal = sys.argv[1:5]
is_armed = os.path.exists(armed)
lock = threading.Lock()


def note(text):
    with open(journal, "a") as file:
        file.write(f"{kind} {moment} {text}\n")


def write(text):
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def fault(id=None, result=None):
    """Does the wrong thing; tells whether the right one may follow."""
    note("fault")
    if kind == "exit":
        print("out of cheese", file=sys.stderr, flush=True)
        os._exit(3)
    if kind == "hang":
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if kind == "slow":
        time.sleep(0.3)
        return True
    if kind == "garbage":
        write('npm warn\n{"half": \n[1]\n\x1b[2J\x07\u202e\n\n"text"\n')
        return True
    if kind == "huge":
        if moment in ("call", "progress") and id is not None:
            write('{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"' % id)
            for _ in range(17 << 4):
                write("x" * (1 << 16))
            write('"}]}}\n')
            return False
        for _ in range(17 << 4):
            write("x" * (1 << 16))
        write("\n")
        return True
    if kind == "wrong_id":
        send({"id": 987654, "result": result or {}})
        return False
    if kind == "error":
        send({"id": id if id is not None else 987654, "error": {"code": -32603, "message": "no cheese\u001b[2J"}})
        return id is None
    if kind == "odd":
        send({"id": id if id is not None else 987654, "result": [1, {"content": "none"}]})
        return id is None
    if kind == "twice":
        if id is not None:
            send({"id": id, "result": result})
        return True
    if kind == "eof":
        os.close(1)
        time.sleep(600)


def at(it, id=None, result=None):
    return fault(id, result) if is_armed and moment == it else True


def call(id, params):
    args = params.get("arguments", {})
    result = {"content": [{"type": "text", "text": "fine"}]}
    note("call")
    if args.get("plain"):
        send({"id": id, "result": result})
        return
    if is_armed and moment == "cancel":
        return
    if is_armed and moment == "progress":
        token = params.get("_meta", {}).get("progressToken")
        for n in range(3):
            send({"method": "notifications/progress", "params": {"progressToken": token, "progress": n}})
    if at("call", id, result) and at("progress", id, result):
        send({"id": id, "result": result})


at("start")
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fault", "version": "1"},
        }
        if at("initialize", id, result):
            send({"id": id, "result": result})
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"plain": {"type": "boolean"}}}
        result = {"tools": [{"name": "go", "description": "Goes", "inputSchema": schema}]}
        if at("list", id, result):
            send({"id": id, "result": result})
    elif method == "tools/call":
        threading.Thread(target=call, args=(id, message["params"]), daemon=True).start()
    elif method == "notifications/cancelled":
        note("cancelled")
        at("cancel")
at("close")
