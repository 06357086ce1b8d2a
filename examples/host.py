#!/usr/bin/env python3
"""Drives a session of pixir by lines: an approval, a steer, a compaction, a resume. Usage: host.py [pixir's options]"""
import json
import subprocess
import sys


class Pixir:
    def __init__(self, *args):
        command = ["pixir", *args, "-p", "--input", "jsonl"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.asked, self.later = 0, []
        self.session = self.wait("ready")["session_id"]

    def read(self, fits):
        """The next line that fits. The others wait for their turn."""
        for at, line in enumerate(self.later):
            if fits(line):
                return self.later.pop(at)
        for text in self.process.stdout:
            line = json.loads(text)
            if fits(line):
                return line
            self.later.append(line)
        raise SystemExit("pixir ended")

    def wait(self, kind):
        return self.read(lambda line: line["type"] == kind)

    def ask(self, **wish):
        self.asked += 1
        self.process.stdin.write(json.dumps({"id": self.asked, **wish}) + "\n")
        self.process.stdin.flush()
        answer = self.read(lambda line: line["type"] == "response" and line["id"] == self.asked)
        if not answer["ok"]:
            raise SystemExit(f"{answer['error']['message']}; {answer['remediation']}")
        return answer

    def end(self):
        self.process.stdin.close()
        return self.wait("result"), self.process.wait()


pixir = Pixir(*sys.argv[1:])
pixir.ask(type="prompt", text="write a.txt")
question = pixir.wait("approval_requested")["data"]
print("asks:", question["tool"], "because", question["reason"])
pixir.ask(type="steer", text="and say so")
pixir.ask(type="decide", call_id=question["call_id"], decision={"answer": "allow"})
pixir.wait("turn_ended")
pixir.ask(type="compact")
result, _ = pixir.end()
print("first:", result["output"])

pixir = Pixir("resume", pixir.session, *sys.argv[1:])
pixir.ask(type="prompt", text="and now?")
pixir.wait("turn_ended")
result, code = pixir.end()
print("then:", result["output"])
sys.exit(code)
