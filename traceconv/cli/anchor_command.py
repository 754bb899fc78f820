"""`traceconv anchor`."""

from __future__ import annotations

import time

import click

from traceconv.cli import _common as common
from traceconv.cli import anchor, print_error
from traceconv.cli._terminal import say
from traceconv.errors import TraceconvError, UsageError
from traceconv.io.json_text import as_json
from traceconv.io.output import check_target, write_output
from traceconv.model.times import format_time


@click.command("anchor", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("-o", "--output", metavar="FILE", help="The file to write. Default: anchor-DATE-TIME.json.")
@common.force_option
@common.quiet_option
@click.pass_context
def command(ctx: click.Context, command: tuple[str, ...], output: str | None, force: bool, quiet: bool) -> None:
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
    content, status = anchor.record(command)
    if command and content["command"]["pid"] is None:
        print_error(_not_run(command[0], status))
        ctx.exit(status)
    try:
        _write(target, content, force)
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
    if status == anchor.NOT_FOUND:
        return UsageError(f"{program}: no such program", hint="for shell built-ins use: -- sh -c 'COMMAND'")
    return UsageError(f"{program}: is not executable", hint="a script needs chmod +x, or its interpreter")


def _write(target: str, content: dict[str, object], force: bool) -> None:
    write_output(target, lambda sink: sink.write(as_json(content).encode()), binary=False, force=force)
