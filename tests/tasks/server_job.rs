//! A server that answers wrongly: it is started in the background, asked, mended, started again, and asked again.

use serde_json::json;

use super::{Task, call, round};

const SERVER: &str = "\
import http.server


class Health(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = (200, b'up\\n') if self.path == '/healt' else (404, b'nothing here\\n')
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)


server = http.server.HTTPServer(('127.0.0.1', 0), Health)
open('port.txt', 'w').write(str(server.server_port))
print(f'listening on {server.server_port}', flush=True)
server.serve_forever()
";

/// Asks the server for its health, without a proxy.
const ASK: &str = "\
import sys, urllib.error, urllib.request

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
try:
    print(opener.open(f'http://127.0.0.1:{open(\"port.txt\").read()}/health').read().decode().strip())
except urllib.error.HTTPError as e:
    sys.exit(f'HTTP {e.code}: {e.read().decode().strip()}')
";

pub(super) fn task() -> Task {
    let start = json!({ "command": "python3 server.py", "background": true, "wait_output": "listening on" });
    Task {
        name: "a server job",
        prompt: "The health check of server.py answers 404. Start it, see it, fix it. ask.py asks it.",
        files: vec![("server.py", SERVER.into()), ("ask.py", ASK.into())],
        rounds: [
            vec![
                round([
                    call("bash", start.clone(), &["listening on"]),
                    call("read", json!({ "path": "server.py" }), &["/healt'"]),
                ]),
                round([call("bash", json!({ "command": "python3 ask.py" }), &["HTTP 404: nothing here"])]),
                round([
                    call(
                        "edit",
                        json!({ "path": "server.py", "old_text": "'/healt'", "new_text": "'/health'" }),
                        &["Edited server.py:6 (+1 −1)"],
                    ),
                    call("job_kill", json!({ "job": 1 }), &[]),
                    call("bash", start, &["listening on"]),
                    call("bash", json!({ "command": "python3 ask.py" }), &["up\n"]),
                ]),
            ],
            vec![
                round([call(
                    "run",
                    json!({ "command": "job start --wait-output 'listening on' python3 server.py ; python3 ask.py ; cat server.py" }),
                    &["listening on", "HTTP 404: nothing here", "/healt'"],
                )]),
                round([call(
                    "run",
                    json!({
                        "command": "edit server.py \"'/healt'\" \"'/health'\" && job kill 1 ; job start --wait-output 'listening on' python3 server.py ; python3 ask.py",
                    }),
                    &["Edited server.py:6 (+1 −1)", "listening on", "up\n"],
                )]),
            ],
        ],
        most: [56_700, 17_900],
        check: |shell| assert!(shell.read("server.py").contains("'/health'"), "it is fixed"),
    }
}
