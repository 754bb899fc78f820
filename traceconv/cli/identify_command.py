"""`traceconv identify`."""

from __future__ import annotations

import click

from traceconv.cli import _complete, print_error
from traceconv.cli._inputs import expanded, left_out_json
from traceconv.cli._json import failure, json_option, print_json
from traceconv.cli._limits import limit_options
from traceconv.cli._terminal import say
from traceconv.errors import TraceconvError
from traceconv.families.importer import Match
from traceconv.families.registry import answers
from traceconv.io.folders import AnyPath, shown
from traceconv.io.limits import Limits
from traceconv.io.source import Source


@click.command("identify")
@click.argument("files", nargs=-1, required=True, shell_complete=_complete.files)
@click.option("--all", "show_all", is_flag=True, help="Print the answer of each importer.")
@json_option
@limit_options
@click.pass_context
def command(ctx: click.Context, files: tuple[str, ...], show_all: bool, as_json: bool, limits: Limits) -> None:
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
