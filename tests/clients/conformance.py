"""pixir as the client of the conformance suite of MCP: FOLDER PIXIR URL; the scenario is in the environment.

The model is a script that calls the tool of the scenario. A form gets empty answers: the user agrees to what it shows.
"""
import json
import os
import subprocess
import sys

config, pixir, url = sys.argv[1], sys.argv[2], sys.argv[-1]
scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
tools = {
    "tools_call": ("add_numbers", {"a": 5, "b": 3}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    "sse-retry": ("test_reconnection", {}),
}
home = os.path.join(config, scenario)
os.makedirs(os.path.join(home, "app"))
os.makedirs(os.path.join(home, "config/pixir"))
with open(os.path.join(home, "config/pixir/config.toml"), "w") as file:
    file.write(f'[mcp.suite]\nurl = "{url}"\nallow = ["*"]\n')
environment = {**os.environ, "PIXIR_HOME": os.path.join(home, "state"), "XDG_CONFIG_HOME": os.path.join(home, "config")}
usual = {"cwd": os.path.join(home, "app"), "env": environment}
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
