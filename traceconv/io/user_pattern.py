"""Regular expressions of the user, with a limit on their time.

`re` cannot be stopped, and can take exponential time: `(a+)+$` on forty letters and a sign takes hours. A pattern that
may do so is matched by a process of its own, which ends itself if it stands still. It is Python's `re` all the same.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import PurePath

from msgspec import Struct

from traceconv.errors import UsageError
from traceconv.io.shown import one_line

#: How long a few texts may take, s.
LIMIT_S = 5.0
#: A pattern without these signs takes one way through a text: its time is limited by the lengths of both.
_SEVERAL_WAYS = frozenset("*+?{|")
_LONGEST_SHOWN = 60
#: It writes a byte for each text: their number says which one it stands still at. Then faulthandler ends it with 1,
#: from a thread that needs no Python; the limit starts again for every 256 texts. If it fails, it ends with 3.
_PROGRAM = """
import faulthandler, json, os, re, sys
try:
    pattern, how, limit, texts = json.load(sys.stdin.buffer)
    accepts = getattr(re.compile(pattern), how)
    for number, text in enumerate(texts):
        if number % 256 == 0:
            faulthandler.dump_traceback_later(limit, exit=True)
        os.write(1, b"1" if accepts(text) else b"0")
except BaseException:
    os._exit(3)
"""
_TOO_SLOW = 1


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

        If no Python can be started, as in a program that embeds it, the time has no limit.

        Raises:
            UsageError: a text takes longer than the limit.
        """
        how = "fullmatch" if whole else "search"
        is_python = PurePath(sys.executable or "").name.lower().startswith("python")
        if texts and is_python and _SEVERAL_WAYS.intersection(self.text):
            given = json.dumps((self.text, how, LIMIT_S, texts)).encode()
            try:
                done = subprocess.run([sys.executable, "-I", "-S", "-c", _PROGRAM], input=given, capture_output=True)
            except OSError:
                pass  # as without Python
            else:
                if done.returncode == 0:
                    return [one == ord("1") for one in done.stdout]
                if done.returncode == _TOO_SLOW:
                    raise self._too_slow(texts[len(done.stdout)])
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
