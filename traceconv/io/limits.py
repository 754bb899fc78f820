"""Limits for hostile inputs, which no real recording reaches, and for the time of regular expressions of the user.

`re` cannot be stopped, and can take exponential time: `(a+)+$` on forty letters and a sign takes hours. A pattern that
may do so is matched by a process of its own, which the system ends. It is the `re` of Python all the same. Windows has
no such limit: there the time is that of the pattern.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import sys
from pathlib import Path

from msgspec import Struct

from traceconv.errors import InputError, UsageError
from traceconv.io.shown import one_line

#: So much is always allowed, whatever the size of the input. Unpacked bytes take longer than texts that are repeated.
FREE_BYTES, FREE_UNPACKED_BYTES = 256 << 20, 32 << 20


class Limits(Struct, frozen=True):
    """The limits of one input.

    Attributes:
        length: the most bytes of a line of a text, and of a name or an arg of an event. Longer lines and args are left
            out, longer names are cut; each is counted. JSON documents, tensors and values of databases may be longer.
        ratio: how many times its size an input may take unpacked, in the args of its events, and in an output; checked
            beyond FREE_UNPACKED_BYTES and FREE_BYTES; 0 for no limit.
    """

    length: int = 16 << 20
    ratio: int = 200

    def room(self, size: int) -> int:
        """Return the bytes that args or an output of an input of this size may take; 0 for no limit."""
        return max(FREE_BYTES, self.ratio * size) if self.ratio else 0

    def unpacked_room(self, size: int) -> int:
        """Return the bytes that an input of this packed size may take when it is unpacked; 0 for no limit."""
        return max(FREE_UNPACKED_BYTES, self.ratio * size) if self.ratio else 0


DEFAULT_LIMITS = Limits()


class Unpacked:
    """Counts the unpacked bytes in one pass over an input.

    Args:
        display: the input, for messages.
        packed: its size in the file, bytes.
        limits: its limits.
    """

    def __init__(self, display: str, packed: int, limits: Limits) -> None:
        self._display, self._packed, self._limits = display, packed, limits
        self._bytes = self._repeated = 0

    @property
    def size(self) -> int:
        """The size of the input in bytes: of the file, or of the unpacked data so far if that is more."""
        return max(self._packed, self._bytes)

    def add(self, count: int) -> None:
        """Count unpacked bytes. Raises InputError if they exceed the ratio."""
        self._bytes += count
        self._check(self._packed, self._bytes, self._limits.unpacked_room(self._packed), "unpack to")

    def repeat(self, count: int) -> None:
        """Count bytes of texts that stand in the file once, and are used again. Raises InputError as `add` does."""
        self._repeated += count
        self._check(self.size, self._repeated, self._limits.room(self.size), "repeat texts of")

    def _check(self, size: int, count: int, room: int, what: str) -> None:
        if room and count > room:
            raise too_large(self._display, size, count, f"{what} more than", self._limits.ratio)


def too_large(display: str, size: int, count: int, what: str, ratio: int) -> InputError:
    """Return the error that something takes far more than the input that it is of.

    Args:
        display: the input.
        size: its bytes.
        count: the bytes that are taken.
        what: the verb of the sentence, such as "unpack to more than".
        ratio: how many times the size is allowed.
    """
    return InputError(
        f"its {size} bytes {what} {count >> 20} MB, over {ratio} times as much: is it damaged, or made to fill memory?",
        hint="--max-ratio 0 reads it without this limit",
        at=display,
    )


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
        import subprocess  # few patterns need it

        given = json.dumps((self.text, how, math.ceil(LIMIT_S + _LIMIT_S_OF_TEXT * len(texts)), texts)).encode()
        try:
            done = subprocess.run([_python(), "-I", "-S", "-c", _PROGRAM], input=given, capture_output=True)
        except OSError as error:
            raise self._not_matched(error.strerror or str(error)) from None
        found = done.stdout[1:]
        if done.returncode == 0 and len(found) == len(texts):
            return [verdict == ord("1") for verdict in found]
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
            escaped if len(escaped) <= _LONGEST_SHOWN else f"{escaped[:_LONGEST_SHOWN]}..."
            for escaped in map(one_line, (text, self.text))
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
