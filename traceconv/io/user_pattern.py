"""Regular expressions of the user, with a limit on their time.

`re` cannot be stopped, and can take exponential time: `(a+)+$` on forty letters and a sign takes hours. A pattern that
may do so is matched by a process of its own, which the system ends. It is Python's `re` all the same. Windows has no
such limit: there the time is that of the pattern.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from msgspec import Struct

from traceconv.errors import UsageError
from traceconv.io.shown import one_line

#: How much CPU time it may take, s: at least, and more for each text.
LIMIT_S, _LIMIT_S_OF_TEXT = 5.0, 1e-4
#: A pattern without these signs takes one way through a text: its time is limited by the lengths of both.
_SEVERAL_WAYS = frozenset("*+?{|")
_LONGEST_SHOWN = 60
#: It writes a byte when it is ready, and one for each text: their number says which one takes too long. The signal of
#: the limit may be ignored or blocked by who started us. It leaves no core.
_PROGRAM = """
import json, os, re, resource, signal, sys
pattern, how, limit, texts = json.load(sys.stdin.buffer)
accepts = getattr(re.compile(pattern), how)
signal.signal(signal.SIGXCPU, signal.SIG_DFL)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGXCPU])
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
resource.setrlimit(resource.RLIMIT_CPU, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
os.write(1, b"-")
for text in texts:
    os.write(1, b"1" if accepts(text) else b"0")
"""


class UserPattern(Struct, frozen=True):
    """A regular expression that the user stated.

    Attributes:
        option: where, for messages: "--where".
        text: the expression.
    """

    option: str
    text: str

    def accepted(self, texts: list[str], *, whole: bool = False) -> list[bool]:
        """Return for each text whether the pattern matches it: as a whole, or anywhere.

        Raises:
            UsageError: it takes longer than the limit, or no process with a limit could match it.
        """
        how = "fullmatch" if whole else "search"
        if sys.platform != "win32" and texts and _SEVERAL_WAYS.intersection(self.text):
            return self._accepted_in_time(texts, how)
        accepts = getattr(re.compile(self.text), how)
        return [accepts(text) is not None for text in texts]

    def _accepted_in_time(self, texts: list[str], how: str) -> list[bool]:
        given = json.dumps((self.text, how, math.ceil(LIMIT_S + _LIMIT_S_OF_TEXT * len(texts)), texts)).encode()
        try:
            done = subprocess.run([_python(), "-I", "-S", "-c", _PROGRAM], input=given, capture_output=True)
        except OSError as error:
            raise self._not_matched(error.strerror or str(error)) from None
        found = done.stdout[1:]
        if done.returncode == 0 and len(found) == len(texts):
            return [one == ord("1") for one in found]
        if done.returncode == -signal.SIGXCPU and len(found) < len(texts):
            raise self._too_slow(texts[len(found)])
        raise self._not_matched(f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}")

    def _not_matched(self, why: str) -> UsageError:
        return UsageError(
            f"{self.option}: no Python could match the pattern within a limit of time ({why})",
            hint="a pattern without * + ? { and | needs no limit",
        )

    def _too_slow(self, text: str) -> UsageError:
        text, shown = (
            one if len(one) <= _LONGEST_SHOWN else f"{one[:_LONGEST_SHOWN]}..."
            for one in map(one_line, (text, self.text))
        )
        return UsageError(
            f"{self.option}: the pattern {shown} takes too long on {text!r}",
            hint="a repeat of what fits in several ways, as (a+)+ or (a|aa)+, can take hours: write a+, or a++",
        )


def _python() -> str:
    """Return the path of this Python: a program that embeds it, or a copy with another name, may be none."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    named = Path(sys.executable or "")
    installed = Path(sys.base_prefix, "bin", version)
    return str(named if named.name.startswith("python") and os.access(named, os.X_OK) else installed)


def user_pattern(option: str, text: str) -> UserPattern:
    """Return a regular expression of the user.

    Raises:
        ValueError: it is not one.
    """
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(error.msg) from None
    except (OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None
    return UserPattern(option, text)
