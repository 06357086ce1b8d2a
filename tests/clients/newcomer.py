#!/usr/bin/env python3
"""Ten tasks by a program that knows pixir only from what `pixir agent` and `--help` print.

Before a command line is run, each of its words must have been read there: the commands, the flags, their values, the number
of the arguments. So must each field, Input and event that is used. Usage: newcomer.py WORKFLOW_FILE
"""
import json
import re
import shlex
import subprocess
import sys


class Manual:
    """What was read so far, and nothing else."""

    def __init__(self):
        self.pages = {}
        self.text = self.read("agent")

    def read(self, *words):
        done = subprocess.run(["pixir", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def page(self, path):
        if path not in self.pages:
            self.pages[path] = self.read(*path, "--help")
            self.text += self.pages[path]
        return self.pages[path]

    def part(self, path, head):
        """The lines below a headline of a help page."""
        found = re.search(rf"^{head}:\n(.*?)(?=^\S|\Z)", self.page(path), re.M | re.S)
        return found.group(1) if found else ""

    def commands(self, path):
        return re.findall(r"^  (\S+)", self.part(path, "Commands"), re.M)

    def flags(self, path):
        """Each spelling of a flag: whether it takes a value, and the values that are named."""
        found = {}
        blocks = re.split(r"^(?= +-{1,2}\w)", re.split(r"^Options:", self.page(path), flags=re.M)[-1], flags=re.M)
        for block in blocks:
            head = re.match(r" +((?:-{1,2}[\w-]+(?:, )?)+)( <)?", block)
            if head:
                one = re.search(r"\[possible values: ([^\]]*)\]", block, re.S)
                values = re.split(r",\s+", one.group(1)) if one else re.findall(r"^ +- (\w+):", block, re.M)
                for name in head.group(1).split(", "):
                    found[name] = (bool(head.group(2)), values)
        return found

    def places(self, path):
        """How many arguments a command takes."""
        usage = re.search(r"^Usage: (.*)", self.page(path), re.M).group(1)
        return len([it for it in re.findall(r"[<\[][A-Z|=-]+[>\]]", usage) if it not in ("[OPTIONS]", "<COMMAND>")])

    def check(self, line):
        path, rest = (), list(line)
        while rest and rest[0] in self.commands(path):
            path += (rest.pop(0),)
        flags, arguments = self.flags(path), 0
        while rest:
            word = rest.pop(0)
            if not word.startswith("-"):
                arguments += 1
                continue
            assert word in flags, f"nothing that was read names {word} of pixir {' '.join(path)}"
            takes_value, values = flags[word]
            if takes_value:
                value = rest.pop(0)
                assert not values or value in values, f"{value} is no value of {word}: {values}"
        assert arguments <= self.places(path), f"{arguments} arguments for pixir {' '.join(path)}"

    def knows(self, word):
        assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", self.text), f"nothing that was read names {word}"
        return word


manual = Manual()


def take(document, *fields):
    for field in fields:
        document = document[field if isinstance(field, int) else manual.knows(field)]
    return document


def run(*line, code=0):
    """Runs a command line that was found. Its document, or with a code the error on stderr."""
    manual.check(line)
    done = subprocess.run(["pixir", *line], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    manual.knows(str(code))
    assert done.returncode == code, f"{line}: exit {done.returncode}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout or done.stderr)


def follow(command, *more):
    """A command that pixir itself has named."""
    name, *line = shlex.split(command)
    assert name == "pixir", command
    return run(*line, *more)


def done(task):
    print(task, flush=True)


class Host:
    """A conversation by lines."""

    def __init__(self, *line):
        manual.check(line)
        self.process = subprocess.Popen(["pixir", *line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def say(self, **wish):
        for word in [*wish, *[it for it in wish.values() if isinstance(it, str) and " " not in it and it.isalpha()]]:
            manual.knows(word)
        self.process.stdin.write(json.dumps(wish) + "\n")
        self.process.stdin.flush()

    def hear(self, kind):
        manual.knows(kind)
        for text in self.process.stdout:
            line = json.loads(text)
            if line["type"] == kind:
                return line
        raise AssertionError(f"no {kind} came")

    def end(self):
        self.process.stdin.close()
        return self.hear("result"), self.process.wait()


# 1. A question, and its answer.
first = run("-p", "--json", "what is in notes.txt?")
assert take(first, "ok") is True and take(first, "exit_code") == 0
done(f"asked: {take(first, 'output')}")
session = take(first, "session_id")

# 2. A change that is refused says which flag opens the gate; with it the diff is in the result, and undo takes it back.
refused = run("-p", "--json", "add a line", code=12)
take(refused, "denials", 0)
assert manual.knows("--write") in json.dumps(take(refused, "next_actions")) + take(refused, "remediation")
changed = run("-p", "--json", "--write", "add a line")
diff = take(changed, "files_changed", 0, "diff")
run("undo", take(changed, "session_id"), "--dry-run", "--json")
before = open(take(changed, "files_changed", 0, "path")).read()
run("undo", take(changed, "session_id"), "--json")
assert open(take(changed, "files_changed", 0, "path")).read() != before
done("changed: " + " ".join(line for line in diff.splitlines() if line.startswith("+") and "+++" not in line))

# 3. A conversation by lines, in which this program approves a call.
host = Host("-p", "--input", "jsonl", "--mode", "ask")
host.say(id=1, type="prompt", text="write made.txt")
asked = host.hear("approval_requested")
host.say(id=2, type="decide", call_id=take(asked, "data", "call_id"), decision={manual.knows("answer"): manual.knows("allow")})
host.hear("turn_ended")
result, code = host.end()
assert code == 0 and take(result, "files_changed", 0, "path") == "made.txt"
done(f"approved: {take(asked, 'data', 'tool')}, {take(result, 'output')}")

# 4. The first conversation goes on: by the command that its result names, and by the id.
again = follow(take(first, "resume_command"), "-p", "--json", "and now?")
assert take(again, "session_id") == session
more = run("resume", session, "-p", "--json", "tell me more")
done(f"resumed: {take(again, 'output')}")

# 5. A fork from the first turn leaves the session as it is.
turns = take(run("tree", session, "--json"), "turns")
fork = run("fork", session, "--at", str(take(turns[0], "end_seq")), "--json")
assert take(fork, "session_id") != session
done(f"forked: {len(turns)} turns, {len(take(run('tree', take(fork, 'session_id'), '--json'), 'turns'))} in the fork")

# 6. An older part becomes a summary; a preview comes first.
run("compact", session, "--dry-run", "--json")
take(run("compact", session, "--json"), "compaction")
done("compacted")

# 7. An export as a page.
run("sessions", "export", session, "--to", "html", "--output", "talk.html", "--json")
assert "<html" in open("talk.html").read()
listed = take(run("sessions", "list", "--json", "--select", "id,turns"), "sessions")
assert session in [take(it, "id") for it in listed]
done("exported")

# 8. A rule lets one command run, and no other.
take(run("permissions", "why", "sh check.sh", "--json"), "verdict")
rule = take(run("permissions", "add", "bash(sh check.sh)", "--json"), "rule", "id")
assert rule in [take(it, "id") for it in take(run("permissions", "list", "--json"), "rules")]
checked = run("-p", "--json", "--mode", "ask", "run the check")
assert take(checked, "denials") == []
run("permissions", "revoke", rule, "--json")
run("-p", "--json", "--mode", "ask", "run the check", code=13)
done(f"allowed: {take(checked, 'output')}")

# 9. The events of a run and of a log.
line = ("-p", "--format", "jsonl", "read notes.txt")
manual.check(line)
events = [json.loads(it) for it in subprocess.run(["pixir", *line], capture_output=True, text=True).stdout.splitlines()]
kinds = [it["type"] for it in events]
for kind in ("tool_call", "tool_result", "text_delta", "turn_ended", "result"):
    assert manual.knows(kind) in kinds, kinds
assert kinds[-1] == "result"
log = take(run("replay", take(events[-1], "session_id"), "--json"), "events")
said = [take(it, "data", "text") for it in log if it["type"] == manual.knows("assistant_message")]
done(f"streamed: {said[-1]}")

# 10. A workflow, looked at before it runs.
flow = sys.argv[1]
run("workflow", "validate", flow, "--json")
run("workflow", "run", flow, "--dry-run", "--json")
flowed = run("workflow", "run", flow, "--write", "--json")
done(f"workflow: {take(flowed, 'status')}, {take(flowed, 'output')}")

# And what goes wrong has one code for one kind of fault, and a way on.
mistyped = session[:-1] + ("0" if session[-1] != "0" else "1")
wrong = run("sessions", "show", mistyped, "--json", code=5)
assert take(wrong, "ok") is False and take(wrong, "error", "details", "input") == mistyped, wrong
meant = re.search(r"\d+T\d+-\w+", take(wrong, "remediation")).group()
assert meant == session and take(run("sessions", "show", meant, "--json"), "session", "id") == session
unknown = subprocess.run(["pixir", "status", "--json", "--nonesuch"], capture_output=True, text=True)
manual.knows("2")
assert unknown.returncode == 2 and take(json.loads(unknown.stderr), "code") == "UNKNOWN_FLAG", unknown
assert take(run("status", "--json"), "latest", "session_id")
done("failed: 5, 2")
