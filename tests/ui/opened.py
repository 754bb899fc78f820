"""The command `traceconv open` in a process of its own, with its link for the browser of the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from tests import HANG_S


class Opened:
    """A running `traceconv open`, and the link that it printed."""

    def __init__(self, *arguments: str | Path) -> None:
        command = [sys.executable, "-m", "traceconv", "open", "--no-browser", "--timeout", str(HANG_S), *arguments]
        environment = {name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"}
        pipe = subprocess.PIPE
        deadline = time.monotonic() + HANG_S
        while True:
            self.process = subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=pipe)
            assert self.process.stdout
            self.link = self.process.stdout.readline().strip()
            if self.link:
                return
            # Other tests that run now may hold the only port.
            said = self.end()
            assert "in use" in said, said
            assert time.monotonic() < deadline, said
            time.sleep(1)

    def end(self) -> str:
        """Wait until the command ends by itself, and return what it said besides the link."""
        try:
            return self.process.communicate(timeout=HANG_S)[1]
        finally:
            self.process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the command, whatever it still waits for."""
        with self.process:
            self.process.kill()
