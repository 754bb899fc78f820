"""`traceconv align`, `clocks` and `anchor`."""

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
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal

import click

from traceconv import __version__, api
from traceconv.align.clock_overview import ClockLine, PairLine
from traceconv.align.receipt import likewise
from traceconv.cli import print_error
from traceconv.cli.options import HeadedCommand, Named, Verbosity, left_out_json, recordings_options, settings_options
from traceconv.cli.results import force_option, print_receipt, quiet_option, report_option, verbosity_options
from traceconv.cli.terminal import clock_json, json_option, print_json, say, width_of, working
from traceconv.errors import TraceconvError, UsageError
from traceconv.io.folders import check_all_there
from traceconv.io.output import as_json, check_target, write_output
from traceconv.io.shown import quantity, shortened, widths_within
from traceconv.model.clocks import ClockMap, Provenance, Zero
from traceconv.model.diagnostics import FILES
from traceconv.model.numbers import format_bound, format_time
from traceconv.recordings import Settings

if TYPE_CHECKING:
    from traceconv.align.estimate import PairEstimate


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
                available.append(Clock(name, partial(time.clock_gettime_ns, number), resolution))
    for name, read in _PYTHON.items():
        info = time.get_clock_info(name)
        if not available or available[0].name == "monotonic" or name == "perf_counter":
            available.append(Clock(name, read, max(round(info.resolution * 1e9), 1), info.implementation))
    return available


def take_readings(known: Sequence[Clock], tries: int = _TRIES) -> list[dict[str, Any]]:
    """Return each clock against the first one."""
    return [_reading(known[0], other, tries) for other in known[1:]]


def _reading(reference: Clock, other: Clock, tries: int) -> dict[str, Any]:
    """Return the narrowest of many tries to read two clocks at one instant."""
    read, read_other = reference.read, other.read
    best = (2**62, 0, 0)
    for _ in range(tries):
        before = read()
        there = read_other()
        after = read()
        if 0 <= after - before < best[0]:
            best = (after - before, before, there)
    width, before, there = best
    return {
        "clock": reference.name,
        "ns": before + width // 2,
        "other": other.name,
        "other_ns": there,
        "within_ns": (width + 1) // 2 + reference.resolution_ns + other.resolution_ns,
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
        "argv": [os.fsencode(word).decode("utf-8", "replace") for word in command],
        "clock": known[0].name,
        "start_ns": known[0].read(),
    }
    about["pid"], status = _run(command)
    about |= {"end_ns": known[0].read(), "exit_code": status}
    content["readings"] += take_readings(known)
    content["command"] = about
    return content, status


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

    # The command ignores those that are ignored already, as under nohup.
    handled = [number for number in _FORWARDED if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield forward_to
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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


@click.command("align", cls=HeadedCommand)
@recordings_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, that of --report align.json, instead of the tables."
)
@report_option
@force_option
@settings_options(policy=True)
@verbosity_options
def align_command(
    named: Named, as_json: bool, reports: tuple[str, ...], force: bool, settings: Settings, verbosity: Verbosity
) -> None:
    """Print how recordings can be aligned, and how certain that is, without writing a trace.

    \b
      traceconv align ort.json perf.data
      traceconv align ort.json perf.data --json
      traceconv align kineto.json onednn.log --report align.html
    """
    check_all_there(named.files)
    reports += ("-",) if as_json else ()
    api.check_reports(reports, "", named.files, force=force)
    recordings = named.opened(settings, verbosity)
    with working(f"aligning {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        alignment, checks = api.estimate(recordings, report=reports, force=force)
    if verbosity.quiet or as_json:
        return
    say(f"On one time axis: {alignment.clock.describe()}")
    print_receipt(alignment.receipt, checks, alignment.together, alignment.files, verbose=verbosity.verbose)
    for apart in alignment.hosts_apart:
        say(apart.describe())
    others_of: dict[tuple[str, str], list[str]] = {}
    for pair in alignment.pairs:
        others_of.setdefault((pair.a.name, _what_events_say(pair)), []).append(pair.b.name)
    for (name, text), (first, *others) in others_of.items():
        say(f"{name} and {first}: {text}", *[f"  {more}" for more in [likewise(others)] if more])


def _what_events_say(pair: PairEstimate) -> str:
    """Return the estimate for two files, and whether it placed them."""
    estimate = pair.estimate
    verdict = f"not used ({estimate.verdict})" if estimate.verdict.unusable and not pair.taken else estimate.verdict
    return f"{pair.clock_map.method}: {verdict}: {estimate.reason}"


#: Columns whose texts are shortened where the terminal is narrow.
_TEXTS = ("file", "clock", "machine", "wall clock by")
_UNLIMITED = 1 << 30
#: What gives the zero of a clock, by the sources of its relation to the wall clock: the first of these that is one.
_GIVEN = {
    Provenance.USER: "given by an option",
    Provenance.ESTIMATED: "estimated",
    Provenance.ASSUMED: "assumed",
    Provenance.METADATA: "stated by the file",
}


@click.command("clocks", cls=HeadedCommand)
@recordings_options
@json_option
@settings_options()
def clocks_command(named: Named, as_json: bool, settings: Settings) -> None:
    """Print the clocks of recordings, how they are related, and what would relate the rest.

    \b
      traceconv clocks perf.data profile.json onednn.log
      traceconv clocks --json perf.data profile.json
      traceconv clocks viztracer.json run.log --clock run.log=monotonic@myhost
    """
    recordings = named.opened(settings)
    survey = api.clocks(recordings)
    if as_json:
        print_json(
            clocks=list(map(_clock_json, survey.clocks)),
            pairs=list(map(_pair_json, survey.pairs)),
            left_out=left_out_json(recordings.expanded),
        )
        return
    _print_clocks(survey.clocks)
    for line in survey.clocks:
        say(*(f"warning: {line.file}: {warning}" for warning in line.warnings), err=False)
    for pair in survey.pairs:
        say("", err=False)
        say(*_pair(pair), err=False)
    if survey.pairs and survey.only_with_first:
        say("", f"of many inputs, only pairs with {survey.pairs[0].file} are listed", err=False)
    if survey.hosts:
        say("", *(host.describe() for host in survey.hosts), err=False)


def _clock_json(line: ClockLine) -> dict[str, Any]:
    return {
        "file": line.file,
        "clock": clock_json(line.clock),
        "host": line.host,
        "events": line.events,
        "realtime": _map_json(line.realtime),
        "warnings": list(line.warnings),
    }


def _pair_json(pair: PairLine) -> dict[str, Any]:
    return {
        "file": pair.file,
        "other": pair.other,
        "clock_map": _map_json(pair.clock_map),
        "advice": list(map(str, pair.advice)),
    }


def _map_json(clock_map: ClockMap | None) -> dict[str, Any] | None:
    if clock_map is None:
        return None
    return {
        "method": clock_map.method,
        "offset_ns": clock_map.offset_ns,
        "bound_ns": clock_map.bound_ns,
        "verdict": clock_map.verdict.value,
        "drift_ppm": clock_map.drift_ppm,
    }


def _print_clocks(lines: list[ClockLine]) -> None:
    rows = [("file", "clock", "zero", "steps", "machine", "wall clock by", "within")]
    for line in lines:
        clock = line.clock
        clock_map = ("nothing", "") if line.realtime is None else _map_cells(line.realtime)
        name = clock.name if line.events else f"({clock.name})"
        rows.append((line.file, name, _zero(line), format_time(clock.resolution_ns), line.host or "-", *clock_map))
    is_text = [title in _TEXTS for title in rows[0]]
    width = width_of(sys.stdout) or _UNLIMITED
    widths = widths_within(rows, is_text, width - 2 * (len(rows[0]) - 1))
    if widths is None:  # too narrow for a table
        for number, row in enumerate(rows[1:]):
            gap = [""] if number else []
            say(*gap, *(f"{title:<13}  {cell}".rstrip() for title, cell in zip(rows[0], row, strict=True)), err=False)
        return
    for row in rows:
        cells = (shortened(cell, room).ljust(room) for cell, room in zip(row, widths, strict=True))
        say("  ".join(cells).rstrip(), err=False)


def _zero(line: ClockLine) -> str:
    """Return what is zero of a clock; if the clock does not define it, what gives it."""
    clock = line.clock
    if clock.synthetic:
        return clock.run.value
    if clock.zero is not Zero.UNKNOWN or line.realtime is None:
        return clock.zero.value
    given = {step.provenance for step in line.realtime.steps}
    return next(words for by, words in _GIVEN.items() if by in given or by is Provenance.METADATA)


def _map_cells(clock_map: ClockMap) -> tuple[str, str]:
    assumed = " (assumed)" if clock_map.verdict.value == "assumed" else ""
    return f"{clock_map.method}{assumed}", format_bound(clock_map.bound_ns)


def _pair(pair: PairLine) -> list[str]:
    if pair.clock_map is None:
        return [f"{pair.file} and {pair.other}: not related", *(f"  {words}" for words in pair.advice)]
    method, bound = _map_cells(pair.clock_map)
    drift = f", drift {pair.clock_map.drift_ppm:+.3f} ppm" if pair.clock_map.drift else ""
    within = f", within {bound}"
    if pair.clock_map.two_hosts:
        within = f", bound {'not known (clocks of hosts may differ)'}"
    elif pair.clock_map.bound_ns is None:
        within = ", uncertainty not known"
    return [f"{pair.file} and {pair.other}: related by {method}{within}{drift}"]


@click.command("anchor", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--output", metavar="FILE", help="The file to write. Default: anchor-DATE-TIME.json.")
@force_option
@quiet_option
@click.pass_context
def anchor_command(ctx: click.Context, command: tuple[str, ...], output: str | None, force: bool, quiet: bool) -> None:
    """Read all clocks of this machine, and write how they are related.

    \b
      traceconv anchor -o anchor.json -- python run.py
      traceconv anchor -o a.json; python run.py; traceconv anchor -o b.json
      traceconv merge profile.json perf.data anchor.json -o out.pftrace

    Give the file to `merge` as one more input. It relates recordings of this machine that are on different clocks, with
    their drift. With COMMAND, the clocks are read before and after it; signals are passed on to it, and its exit code
    is returned. The file holds the command line, but not the environment.
    """
    target = output if output is not None else time.strftime("anchor-%Y-%m-%dT%H-%M-%S.json")
    if target == "-":
        raise UsageError("-o -: the readings need a file", hint="standard output belongs to the command")
    check_target(target, binary=False, force=force)
    content, status = record(command)
    if command and content["command"]["pid"] is None:
        print_error(_not_run(command[0], status))
        ctx.exit(status)
    try:
        write_output(target, lambda sink: sink.write(as_json(content).encode()), binary=False, force=force)
    except TraceconvError as error:  # the command is done all the same
        print_error(error)
        ctx.exit(status or error.exit_code)
    if not quiet:
        widest = max((reading["within_ns"] for reading in content["readings"]), default=0)
        count = len(content["clocks"])
        say(f"{target}: {count} clocks, read to within {format_time(widest)} of each other")
    ctx.exit(status)


def _not_run(program: str, status: int) -> TraceconvError:
    """Return why a command did not run; `status` is what a shell makes of it."""
    if status == NOT_FOUND:
        return UsageError(f"{program}: no such program", hint="for shell built-ins use: -- sh -c 'COMMAND'")
    return UsageError(f"{program}: is not executable", hint="a script needs chmod +x, or its interpreter")
