"""`traceconv formats`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from traceconv import api
from traceconv.cli import _complete
from traceconv.cli._json import clock_json, json_option, print_json
from traceconv.cli._terminal import say
from traceconv.families.importer import Importer, extras
from traceconv.families.registry import formats_called, importer_class, option_help, options_of, skipped_by_design


@click.command("formats")
@click.argument("name", required=False, shell_complete=_complete.formats)
@json_option
def command(name: str | None, as_json: bool) -> None:
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
        known = {one: known[one] for one in wanted}
    if as_json:
        print_json(formats=[_json(cls) for cls in known.values()])
        return
    width = max(map(len, known))
    for format_name, cls in known.items():
        say(f"{format_name:{width}}  {cls.title}: {cls.versions}", err=False)


def _details(cls: type[Importer]) -> list[str]:
    lines = [
        f"{cls.name}: {cls.title}",
        *_column("recorded", [f"no: {extras(cls).unrecorded}"] if extras(cls).unrecorded else []),
        f"  versions  {cls.versions}",
        f"  clock     {cls.clock.describe()}",
        *_column("record", cls.record.splitlines()),
        f"  aligned   {cls.line_up}",
        *_column("becomes", [f"{what}: {thing}" for what, thing in cls.becomes]),
        *_column("limits", cls.lost),
        *_column("skipped", [f"{code.help} ({code.name})" for code in skipped_by_design(cls)]),
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
        "unrecorded": extras(cls).unrecorded,
        "clock": clock_json(cls.clock),
        "record": cls.record.splitlines(),
        "line_up": cls.line_up,
        "becomes": cls.becomes,
        "limits": cls.lost,
        "skipped": {code.name: code.help for code in skipped_by_design(cls)},
        "options": {
            option: {"default": value, "help": option_help(cls, option)} for option, value in options_of(cls).items()
        },
        "url": cls.url,
    }


def _column(title: str, lines: Iterable[str]) -> list[str]:
    return [f"  {title if number == 0 else '':8}  {line}" for number, line in enumerate(lines)]
