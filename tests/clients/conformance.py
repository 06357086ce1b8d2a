"""pixir as the client of the conformance suite of MCP: FOLDER PIXIR URL; the scenario is in the environment.

The model is a script that calls the tool of the scenario. A form gets empty answers: the user agrees to what it shows. Where the
server wants a sign-in, this is the user's browser.
"""
import json
import os
import subprocess
import sys
import urllib.request

config, pixir, url = sys.argv[1], sys.argv[2], sys.argv[-1]
scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
tools = {
    "tools_call": ("add_numbers", {"a": 5, "b": 3}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    "sse-retry": ("test_reconnection", {}),
}
context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
client = context.get("client_id")
if scenario == "auth/basic-cimd":
    # The document of a client that the suite knows.
    client = "https://conformance-test.local/client-metadata.json"
home = os.path.join(config, scenario.replace("/", "-"))
os.makedirs(os.path.join(home, "app"))
os.makedirs(os.path.join(home, "config/pixir"))
with open(os.path.join(home, "config/pixir/config.toml"), "w") as file:
    file.write(f'[mcp.suite]\nurl = "{url}"\nallow = ["*"]\n')
    if client:
        file.write(f'oauth = {{ client_id = "{client}" }}\n')
environment = {**os.environ, "PIXIR_HOME": os.path.join(home, "state"), "XDG_CONFIG_HOME": os.path.join(home, "config")}
if "client_secret" in context:
    environment["OAUTH_CLIENT_SECRET"] = context["client_secret"]
usual = {"cwd": os.path.join(home, "app"), "env": environment}


def sign_in(scope):
    more = ["--scope", scope] if scope else []
    words = [pixir, "mcp", "login", "suite", "--json", *more]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **usual)
    line = child.stderr.readline()
    if '"open"' in line:
        urllib.request.urlopen(json.loads(line)["open"]).read()
    print(line, child.stderr.read())
    return child.wait()


def error(ran):
    document = json.loads(ran.stdout or ran.stderr)
    print(document)
    inside = document.get("server") or document.get("result") or {}
    return document.get("error") or inside.get("error") or {}


if scenario.startswith("auth/"):
    # A user signs in when pixir says so, and gives up after the third time.
    for words in (["test", "suite"], ["call", "suite.test-tool"]):
        for _ in range(3):
            ran = subprocess.run([pixir, "mcp", *words, "--json"], capture_output=True, text=True, **usual)
            if ran.returncode == 0:
                break
            why = error(ran)
            code = why.get("code") or why.get("name")
            if code != "MCP_AUTH_REQUIRED" or sign_in(why.get("details", {}).get("scope")) != 0:
                sys.exit(1)
        else:
            sys.exit(1)
    sys.exit(0)
tested = subprocess.run([pixir, "mcp", "test", "suite"], **usual)
if scenario not in tools:
    sys.exit(tested.returncode)
name, args = tools[scenario]
steps = [{"calls": [{"name": f"suite__{name}", "args": args}]}, {"text": "Done."}]
script = os.path.join(home, "script.json")
with open(script, "w") as file:
    json.dump({"steps": steps}, file)
words = ["--headless", "--input", "jsonl", "--format", "jsonl", "--mode", "ask", "--provider", f"script:{script}"]
child = subprocess.Popen([pixir, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **usual)


def send(message):
    child.stdin.write(json.dumps(message) + "\n")
    child.stdin.flush()


send({"id": "p", "type": "prompt", "text": "go"})
failed = False
for line in child.stdout:
    print(line, end="")
    it = json.loads(line)
    if it["type"] == "question_asked":
        form = it["data"]
        send({"type": "answer", "call_id": form["call_id"], "answers": [[] for _ in form["questions"]]})
    if it["type"] == "tool_result":
        failed = failed or not it["data"]["ok"]
    if it["type"] == "turn_ended":
        child.stdin.close()
sys.exit(child.wait() or int(failed))
