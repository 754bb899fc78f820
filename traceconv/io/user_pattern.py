"""Regular expressions of the user, with a limit on their time.

`re` cannot be stopped, and can take exponential time: `(a+)+$` on forty letters and a sign takes hours. A pattern that
may do so is matched by a process of its own, which the system ends. It is Python's `re` all the same.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import PurePath

from msgspec import Struct

from traceconv.errors import UsageError
from traceconv.io.shown import one_line

#: How much CPU time it may take, s: at least, and more for each text.
LIMIT_S, _LIMIT_S_OF_TEXT = 5.0, 1e-4
#: A pattern without these signs takes one way through a text: its time is limited by the lengths of both.
_SEVERAL_WAYS = frozenset("*+?{|")
_LONGEST_SHOWN = 60
#: It writes a byte when it is ready, and one for each text: their number says which one takes too long.
_PROGRAM = """
import json, os, re, signal, sys
pattern, how, limit, texts = json.load(sys.stdin.buffer)
accepts = getattr(re.compile(pattern), how)
signal.setitimer(signal.ITIMER_PROF, limit)
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

        If no Python can be started, as in a program that embeds it, or on Windows, the time has no limit.

        Raises:
            UsageError: it takes longer than the limit.
        """
        how = "fullmatch" if whole else "search"
        is_python = PurePath(sys.executable or "").name.lower().startswith("python")
        if texts and is_python and hasattr(signal, "SIGPROF") and _SEVERAL_WAYS.intersection(self.text):
            given = json.dumps((self.text, how, LIMIT_S + _LIMIT_S_OF_TEXT * len(texts), texts)).encode()
            try:
                done = subprocess.run([sys.executable, "-I", "-S", "-c", _PROGRAM], input=given, capture_output=True)
            except OSError:
                pass  # as without Python
            else:
                found = done.stdout[1:]
                if len(found) == len(texts):
                    return [one == ord("1") for one in found]
                if done.returncode == -signal.SIGPROF:
                    raise self._too_slow(texts[len(found)])
        accepts = getattr(re.compile(self.text), how)
        return [accepts(text) is not None for text in texts]

    def _too_slow(self, text: str) -> UsageError:
        text, shown = (
            one if len(one) <= _LONGEST_SHOWN else f"{one[:_LONGEST_SHOWN]}..."
            for one in map(one_line, (text, self.text))
        )
        return UsageError(
            f"{self.option}: the pattern {shown} takes too long on {text!r}",
            hint="a repeat of what fits in several ways, as (a+)+ or (a|aa)+, can take hours: write a+, or a++",
        )


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
