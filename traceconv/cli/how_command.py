"""`traceconv how`."""

from __future__ import annotations

from collections.abc import Iterator

import click

from traceconv.cli import _complete
from traceconv.cli._terminal import say
from traceconv.families.importer import extras
from traceconv.families.registry import formats_called, importer_class

_ABOUT_PERF = (
    "# With -k CLOCK_MONOTONIC perf.data states how its clock relates to others. Pids agree within one container.",
    "# Names of functions: -O symbols=true reads them from the files on this machine. Wheels may be stripped of them.",
    "# -g needs frame pointers, which few libraries have. --call-graph dwarf needs none. If you use it, print the "
    "samples with the next command, and give report perf.script.txt in place of perf.data -O symbols=true:",
    "perf script --header --ns -F comm,pid,tid,time,event,period,ip,sym,symoff,dso > perf.script.txt",
    "# -X perf names functions of Python from 3.12 on, in `perf script`, if Python was built with frame pointers.",
    "# Page faults: -e cpu-clock,page-faults",
    "# IPC and cache misses: -e cycles,instructions,cache-misses",
    "# Most virtual machines have no hardware events (`perf stat -e cycles true` says <not supported>): software "
    "events work. Containers need --cap-add PERFMON, or kernel.perf_event_paranoid at 2 or less.",
)


@click.command("how")
@click.argument("format", shell_complete=_complete.formats)
def command(format: str) -> None:
    """Print how to record a file of a format, so that it can be merged with others.

    \b
      traceconv how onednn-verbose
      traceconv how perf
    """
    for line in _lines(format):
        say(line, err=False, whole=not line.startswith("#"))  # a command is copied


def _lines(format: str) -> Iterator[str]:
    name, *others = formats_called(format)
    cls = importer_class(name)
    yield f"# {cls.title}"
    yield from cls.record.splitlines()
    yield f"# {cls.line_up}"
    with_perf = extras(cls).with_perf
    if with_perf:
        yield "# What each layer costs inside the machine:"
        yield from with_perf.splitlines()
        yield from _ABOUT_PERF if "perf record" in with_perf else ()
    if cls.name != "clock-anchor":
        yield "# For any format: this reads all clocks before and after the run. Merge anchor.json with the others."
        yield "traceconv anchor -o anchor.json -- COMMAND"
    if others:
        with_costs = [name for name in others if extras(importer_class(name)).with_perf]
        yield f"# {format} is also {', '.join(others)}: traceconv how {others[0]}"
        if with_costs and not with_perf:
            yield f"# What each layer costs inside the machine: traceconv how {with_costs[0]}"
