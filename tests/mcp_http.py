"""An MCP server over Streamable HTTP with sessions and streams, for the stories about them: PORT JOURNAL OPTION…

`stateless`: of the revision without sessions. `forgetful`: it forgets its session once, at a call. `pages=MB`: such a list.
"""
import json
import os
import queue
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port_file, journal = sys.argv[1:3]
options = dict(it.split("=", 1) if "=" in it else (it, "1") for it in sys.argv[3:])
lock = threading.Lock()
sessions = {}
answers = {}
kept = {}


def note(text):
    with lock, open(journal, "a") as file:
        file.write(text + "\n")


def tool(name, properties=None):
    return {"name": name, "description": f"Does {name}", "inputSchema": {"type": "object", "properties": properties or {}}}


names = "plain stream resume cut ask elsewhere change hang big refused error html".split()
tools = [tool(name) for name in names]
tools.append(tool("place", {"region": {"type": "string", "x-mcp-header": "Region"}}))
if "stateless" in options:
    tools.append(tool("impossible", {"all": {"type": "array", "x-mcp-header": "All"}}))


def result(id, text):
    return {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reply(self, code, body=None, kind="application/json", **headers):
        text = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        if text:
            self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def event(self, message=None, **fields):
        lines = [f"{name}: {value}" for name, value in fields.items()]
        if message is not None:
            lines.append(f"data: {json.dumps(message)}")
        self.wfile.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        self.wfile.flush()

    def session(self):
        """The session of the request; what is not known is refused."""
        id = self.headers.get("Mcp-Session-Id")
        if id not in sessions:
            self.reply(404 if id else 400, {"error": "no session"})
            return None
        return sessions[id]

    def do_GET(self):
        last = self.headers.get("Last-Event-ID")
        session = self.session()
        if session is None:
            return
        note(f"GET {last}")
        self.stream()
        if last:
            return self.event(kept.pop(last))
        while True:
            message = session.get()
            if message is None:
                return
            self.event(message)

    def do_DELETE(self):
        note(f"DELETE {self.headers.get('Mcp-Session-Id')}")
        sessions.pop(self.headers.get("Mcp-Session-Id"), None)
        self.reply(204)

    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        version = self.headers.get("MCP-Protocol-Version")
        note(f"{method} {version} {self.headers.get('Mcp-Session-Id')}")
        if method == "server/discover":
            if "stateless" not in options:
                return self.reply(400, b"bad request", "text/plain")
            found = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
            return self.reply(200, {"jsonrpc": "2.0", "id": id, "result": {**found, "ttlMs": 0, "cacheScope": "private"}})
        if method == "initialize":
            session = f"s{len(sessions) + sum(1 for it in kept if it == 'forgotten') + 1}"
            sessions[session] = queue.Queue()
            hello = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}}
            hello = {"jsonrpc": "2.0", "id": id, "result": {**hello, "serverInfo": {"name": "http", "version": "1"}}}
            return self.reply(200, hello, Mcp_Session_Id=session)
        session = None
        if "stateless" in options:
            note("headers " + " ".join(f"{it}={self.headers[it]}" for it in sorted(self.headers) if it.startswith("mcp-")))
            if params.get("_meta", {}).get("io.modelcontextprotocol/protocolVersion") != version:
                return self.reply(400, {"jsonrpc": "2.0", "id": id, "error": {"code": -32020, "message": "mismatch"}})
        else:
            if "forgetful" in options and method == "tools/call" and "forgotten" not in kept:
                kept["forgotten"] = True
                for it in sessions.values():
                    it.put(None)
                sessions.clear()
            session = self.session()
            if session is None:
                return
        if method is None:
            answers[id].put(message)
            return self.reply(202)
        if method == "notifications/cancelled":
            note(f"cancelled {params['requestId']}")
        if id is None:
            return self.reply(202)
        if method == "tools/list":
            listed = list(tools)
            if "pages" in options:
                listed += [tool(f"tool_{n}") | {"description": "x" * (1 << 20)} for n in range(int(options["pages"]))]
            return self.reply(200, {"jsonrpc": "2.0", "id": id, "result": {"tools": listed}})
        if method == "tools/call":
            note(f"call {params['name']}")
            return self.call(id, params["name"], params, session)
        self.reply(200, {"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no"}})

    def call(self, id, name, params, session):
        if name == "stream":
            self.stream()
            progress = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
            self.event(event="ping")
            self.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
            self.event(result(id, "streamed"))
            time.sleep(60)
        elif name == "resume":
            kept["7"] = result(id, "resumed")
            self.stream()
            self.event(id="7", retry="50")
        elif name == "cut":
            self.stream()
            self.event(event="ping")
        elif name == "ask":
            answers["q"] = queue.Queue()
            schema = {"type": "object", "properties": {"branch": {"type": "string"}}}
            question = {"message": "Which?", "requestedSchema": schema}
            self.stream()
            self.event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": question})
            self.event(result(id, json.dumps(answers["q"].get()["result"])))
        elif name == "elsewhere":
            session.put(result(id, "came on the other stream"))
            self.reply(202)
        elif name == "change":
            tools[0]["description"] = "Does something else"
            session.put({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            # The call ends after the server has said so.
            session.put(result(id, "changed"))
            self.reply(202)
        elif name == "hang":
            self.connection.settimeout(30)
            note("cut" if self.connection.recv(1) == b"" else "more")
            self.close_connection = True
        elif name == "big":
            self.reply(200, result(id, "x" * (17 << 20)))
        elif name == "refused":
            self.reply(503, b"<p>out of cheese</p>", "text/html")
        elif name == "error":
            self.reply(500, {"jsonrpc": "2.0", "id": None, "error": {"code": -32603, "message": "no cheese"}})
        elif name == "html":
            self.reply(200, b"<p>welcome</p>", "text/html")
        else:
            self.reply(200, result(id, name))

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that has gone is no fault of the server."""


server = Server(("127.0.0.1", 0), Handler)
with open(port_file + ".new", "w") as file:
    file.write(str(server.server_address[1]))
os.rename(port_file + ".new", port_file)
server.serve_forever()
