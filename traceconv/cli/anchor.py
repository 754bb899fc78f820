"""Readings of all clocks of the machine, around a command or alone: the file that `traceconv anchor` writes.

Two clocks cannot be read at once. One is read before and after the other: at that instant it was somewhere between.
Of many such tries the narrowest is kept; half its width, with the resolutions of both clocks, bounds the error. On
Linux all clocks are read against CLOCK_MONOTONIC, which a system call takes well below a microsecond to give; elsewhere
against the monotonic clock of Python, and what each clock is called is what `time.get_clock_info` says.

The file is one JSON object; schemas/anchor.schema.json describes it. Nothing of the environment of the process is
recorded, but the command line is, as given.
"""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

from traceconv import __version__

#: The number of the format, behind its mark.
FORMAT = 1
MARK = "traceconv-anchor"
#: A try takes about a microsecond: a few ms for all clocks.
_TRIES = 1000
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_LINUX = ("CLOCK_MONOTONIC", "CLOCK_REALTIME", "CLOCK_MONOTONIC_RAW", "CLOCK_BOOTTIME", "CLOCK_TAI")
_PYTHON: dict[Literal["monotonic", "time", "perf_counter"], Callable[[], int]] = {
    "monotonic": time.monotonic_ns,
    "time": time.time_ns,
    "perf_counter": time.perf_counter_ns,
}
#: What a terminal sends to all processes in its foreground, the command included.
_FROM_TERMINAL = [getattr(signal, name) for name in ("SIGINT", "SIGQUIT") if hasattr(signal, name)]
_FORWARDED = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGBREAK")
    if hasattr(signal, name)
]
#: Exit codes of shells for a command that does not exist, is not a program, or was ended by a signal (plus its number).
NOT_FOUND, _NOT_EXECUTABLE, _SIGNALLED = 127, 126, 128


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock that can be read.

    Attributes:
        name: as the operating system calls it.
        read: gives its time, ns.
        resolution_ns: its smallest step, ns.
        implementation: what Python says of it, for clocks that it names itself.
    """

    name: str
    read: Callable[[], int]
    resolution_ns: int
    implementation: str = ""


def clocks() -> list[Clock]:
    """Return the clocks of this machine; all others are read against the first one."""
    available = []
    for name in _LINUX if sys.platform == "linux" else ():
        number = getattr(time, name, None)
        with contextlib.suppress(OSError):
            if number is not None:
                resolution = max(round(time.clock_getres(number) * 1e9), 1)
                available.append(Clock(name, _reader(number), resolution))
    for name, read in _PYTHON.items():
        info = time.get_clock_info(name)
        if not available or available[0].name == "monotonic" or name == "perf_counter":
            available.append(Clock(name, read, max(round(info.resolution * 1e9), 1), info.implementation))
    return available


def _reader(number: int) -> Callable[[], int]:
    return lambda: time.clock_gettime_ns(number)


def take_readings(known: Sequence[Clock], tries: int = _TRIES) -> list[dict[str, Any]]:
    """Return each clock against the first one."""
    return [_reading(known[0], other, tries) for other in known[1:]]


def _reading(one: Clock, other: Clock, tries: int) -> dict[str, Any]:
    """Return the narrowest of many tries to read two clocks at one instant."""
    read, read_other = one.read, other.read
    best = (2**62, 0, 0)
    for _ in range(tries):
        before = read()
        there = read_other()
        after = read()
        if 0 <= after - before < best[0]:
            best = (after - before, before, there)
    width, before, there = best
    return {
        "clock": one.name,
        "ns": before + width // 2,
        "other": other.name,
        "other_ns": there,
        "within_ns": (width + 1) // 2 + one.resolution_ns + other.resolution_ns,
    }


def describe_machine() -> dict[str, Any]:
    """Return which machine this is, and since which boot."""
    machine = {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
    }
    with contextlib.suppress(OSError), open(_BOOT_ID, encoding="ascii") as stream:
        machine["boot_id"] = stream.read().strip()
    return machine


def record(command: Sequence[str]) -> tuple[dict[str, Any], int]:
    """Read all clocks, and once more after the command if there is one.

    Args:
        command: the program with its arguments; empty to read the clocks only.

    Returns:
        The content of the file, and the exit code of the command: 128 and the number of the signal that ended it, 127
        if it was not found, 126 if it cannot be run, as shells have it.
    """
    known = clocks()
    content: dict[str, Any] = {MARK: FORMAT, "traceconv": __version__, **describe_machine()}
    content["clocks"] = {
        clock.name: {"resolution_ns": clock.resolution_ns}
        | ({"implementation": clock.implementation} if clock.implementation else {})
        for clock in known
    }
    content["readings"] = take_readings(known)
    if not command:
        return content, 0
    about: dict[str, Any] = {
        "argv": [_text(word) for word in command],
        "clock": known[0].name,
        "start_ns": known[0].read(),
    }
    about["pid"], status = _run(command)
    about |= {"end_ns": known[0].read(), "exit_code": status}
    content["readings"] += take_readings(known)
    content["command"] = about
    return content, status


def _text(word: str) -> str:
    """Return an argument of a command line as text; bytes that are not UTF-8 are replaced."""
    return os.fsencode(word).decode("utf-8", "replace")


def _run(command: Sequence[str]) -> tuple[int | None, int]:
    """Run the command with our open files and terminal, and pass on our signals."""
    with _signals() as forward_to:
        try:
            process = subprocess.Popen(command)
        except FileNotFoundError:
            return None, NOT_FOUND
        except (OSError, ValueError):
            return None, _NOT_EXECUTABLE
        forward_to(process)
        status = process.wait()
    return process.pid, status if status >= 0 else _SIGNALLED - status


@contextlib.contextmanager
def _signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """Hand on signals while the command runs; those that come before it runs are handed on when it does."""
    target: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def handle(number: int, _: FrameType | None) -> None:
        if number in _FROM_TERMINAL and _in_foreground():
            return  # the command got it from the terminal itself
        if target:
            target[0].send_signal(number)
        else:
            early.append(number)

    def forward_to(process: subprocess.Popen[bytes]) -> None:
        target.append(process)
        for number in early:
            process.send_signal(number)

    before = {number: signal.signal(number, handle) for number in _FORWARDED if _can_be_handled(number)}
    try:
        yield forward_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _can_be_handled(number: int) -> bool:
    """Return whether the signal is not ignored already, as under nohup: then the command ignores it as well."""
    return signal.getsignal(number) not in (signal.SIG_IGN, None)


def _in_foreground() -> bool:
    """Return whether a terminal sends its signals to this process, and so to the command."""
    if not hasattr(os, "tcgetpgrp"):
        return True  # Windows: the console sends Ctrl+C to all
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
