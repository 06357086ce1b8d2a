"""Uploads files in chunks."""

import time
from pathlib import Path

from uploader.errors import UploadFailed

CHUNK = 4 * 1024 * 1024


def upload(session, path: Path, url: str) -> None:
    with path.open("rb") as file:
        for number, chunk in enumerate(iter(lambda: file.read(CHUNK), b"")):
            send(session, f"{url}/{number}", chunk)


def send(session, url: str, chunk: bytes) -> None:
    """Puts one chunk."""
    for attempt in range(3):
        response = session.put(url, data=chunk)
        if response.status != 503:
            return
        time.sleep(1)
    raise UploadFailed(url, response.status)
