"""`traceconv formats`, `identify` and `how`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from traceconv import api
from traceconv.cli import print_error
from traceconv.cli.completion import complete_files, complete_formats
from traceconv.cli.options import expanded, left_out_json, limit_options
from traceconv.cli.terminal import clock_json, failure, json_option, print_json, say
from traceconv.errors import TraceconvError
from traceconv.families.importer import Importer, Match
from traceconv.families.registry import (
    answers,
    formats_called,
    importer_class,
    option_help,
    options_of,
)
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import Limits
from traceconv.io.source import Source


@click.command("formats")
@click.argument("name", required=False, shell_complete=complete_formats)
@json_option
def formats_command(name: str | None, as_json: bool) -> None:
    """List all formats or those of a family, or describe one.

    \b
      traceconv formats
      traceconv formats perf
      traceconv formats --json kineto
      traceconv formats onednn-verbose
    """
    known = api.formats()
    if name is not None:
        wanted = formats_called(name)
        if len(wanted) == 1 and not as_json:
            say(*_details(importer_class(wanted[0])), err=False)
            return
        known = {format_name: known[format_name] for format_name in wanted}
    if as_json:
        print_json(formats=[_json(cls) for cls in known.values()])
        return
    width = max(map(len, known))
    for format_name, cls in known.items():
        say(f"{format_name:{width}}  {cls.title}: {cls.versions}", err=False)


def _details(cls: type[Importer]) -> list[str]:
    lines = [
        f"{cls.name}: {cls.title}",
        *_column("recorded", [f"no: {cls.unrecorded}"] if cls.unrecorded else []),
        f"  versions  {cls.versions}",
        f"  clock     {cls.clock.describe()}",
        *_column("record", cls.record.splitlines()),
        f"  aligned   {cls.line_up}",
        *_column("becomes", [f"{what}: {thing}" for what, thing in cls.becomes]),
        *_column("limits", cls.lost),
        *_column("skipped", [f"{code.help} ({code.name})" for code in cls.skips]),
        f"  see       {cls.url}",
    ]
    for option, value in options_of(cls).items():
        default = "not given" if value in (None, "") else value
        lines.append(f"  option    {option} (default: {default}): {option_help(cls, option)}")
    return lines


def _json(cls: type[Importer]) -> dict[str, Any]:
    return {
        "name": cls.name,
        "title": cls.title,
        "versions": cls.versions,
        "unrecorded": cls.unrecorded,
        "clock": clock_json(cls.clock),
        "record": cls.record.splitlines(),
        "line_up": cls.line_up,
        "becomes": cls.becomes,
        "limits": cls.lost,
        "skipped": {code.name: code.help for code in cls.skips},
        "options": {
            option: {"default": value, "help": option_help(cls, option)} for option, value in options_of(cls).items()
        },
        "url": cls.url,
    }


def _column(title: str, lines: Iterable[str]) -> list[str]:
    return [f"  {title if number == 0 else '':8}  {line}" for number, line in enumerate(lines)]


@click.command("identify")
@click.argument("files", nargs=-1, required=True, shell_complete=complete_files)
@click.option("--all", "show_all", is_flag=True, help="Print the answer of each importer.")
@json_option
@limit_options
@click.pass_context
def identify_command(ctx: click.Context, files: tuple[str, ...], show_all: bool, as_json: bool, limits: Limits) -> None:
    """Print the format of a file, detected from its content.

    \b
      traceconv identify *.json *.log
      traceconv identify --all strange.txt
      traceconv identify --json *.log
    """
    failed, rows = 0, []
    expansion = expanded(files, limits, each=True)
    for recording in expansion.recordings:
        file = shown(recording.path)
        try:
            recognised = recording.recognised(limits)
        except TraceconvError as error:
            print_error(error)
            failed = 1
            rows.append(failure(file, error))
        else:
            name = recognised.cls.name
            rows.append({"file": file, "format": name, "reason": recognised.reason})
            if not as_json:
                say(f"{file}: {name} ({recognised.reason})", err=False)
        each = _answers(recording.path, limits) if show_all else []
        if not as_json:
            _print_answers(each)
        elif each:
            rows[-1]["answers"] = [
                {"format": name, "certainty": match.certainty.name.lower(), "reason": match.reason}
                for name, match in each
            ]
    if as_json:
        print_json(files=rows, left_out=left_out_json(expansion))
    ctx.exit(failed)


def _answers(file: AnyPath, limits: Limits) -> list[tuple[str, Match]]:
    """Return what each importer says, the surest first; nothing for a file that cannot be read."""
    try:
        matches = answers(Source(file, limits=limits))
    except TraceconvError:
        return []
    return sorted(matches.items(), key=lambda item: -item[1].certainty)


def _print_answers(matches: list[tuple[str, Match]]) -> None:
    width = max((len(name) for name, _ in matches), default=0)
    for name, match in matches:
        say(f"  {name:{width}}  {match.certainty.name.lower():8}  {match.reason}", err=False)


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
@click.argument("format", shell_complete=complete_formats)
def how_command(format: str) -> None:
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
    if cls.with_perf:
        yield "# What each layer costs inside the machine:"
        yield from cls.with_perf.splitlines()
        yield from _ABOUT_PERF if "perf record" in cls.with_perf else ()
    if cls.name != "clock-anchor":
        yield "# For any format: this reads all clocks before and after the run. Merge anchor.json with the others."
        yield "traceconv anchor -o anchor.json -- COMMAND"
    if others:
        with_costs = [name for name in others if importer_class(name).with_perf]
        yield f"# {format} is also {', '.join(others)}: traceconv how {others[0]}"
        if with_costs and not cls.with_perf:
            yield f"# What each layer costs inside the machine: traceconv how {with_costs[0]}"
