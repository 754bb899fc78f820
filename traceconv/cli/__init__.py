"""The command line. The module of a command is imported when the command is used."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO

import click

from traceconv import __version__
from traceconv.cli.terminal import say
from traceconv.errors import TraceconvError, UnrecognizedInput, UsageError
from traceconv.io import process

#: The commands, under the headings of the help.
_SECTIONS = {
    "Make a trace": {
        "convert": "Turn one recording into a trace.",
        "merge": "Put several recordings on one time axis.",
        "demo": "Merge two recordings that come with traceconv.",
        "open": "Show a trace in ui.perfetto.dev.",
    },
    "Ask recordings": {
        "report": "Print what was slow, how long steps took, what waited.",
        "diff": "Compare runs before and after a change.",
        "history": "Tell since which run operations are slower or faster.",
        "query": "Answer a question in SQL.",
        "export": "Write recordings as tables, or as stacks for flame graphs.",
        "info": "Print the content of a recording.",
        "check": "Find everything in a trace that viewers drop, misplace or refuse.",
    },
    "Understand clocks": {
        "align": "Print how recordings can be aligned, and how certain that is.",
        "clocks": "Print the clocks of recordings, and how they are related.",
        "anchor": "Read all clocks of this machine, around a command.",
    },
    "Formats": {
        "formats": "List the formats that can be read.",
        "identify": "Print the format of a file.",
        "how": "Print how to record a file of a format.",
    },
}
_COMMANDS = [name for commands in _SECTIONS.values() for name in commands]
#: The commands in each module, as functions NAME_command.
_MODULES = {
    "trace_commands": ("convert", "merge", "demo"),
    "open_command": ("open",),
    "question_commands": ("report", "export"),
    "comparison_command": ("diff", "history"),
    "query_command": ("query",),
    "content_commands": ("info", "check"),
    "clock_commands": ("align", "clocks", "anchor"),
    "format_commands": ("formats", "identify", "how"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}
#: Other names of commands.
_ALIASES = {"compare": "diff"}

#: What to use for commands that other tools have and this one lacks.
_ELSEWHERE = {
    "sql": "traceconv query FILE 'select ...'",
}

#: The signals that ask a process to end, besides the one of the keyboard.
_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]

#: Commands that run a programme of the user, which gets the environment as it is.
_RUN_OTHERS = {"anchor"}

_HELP = """Read what ML runtimes record about their performance. Print what was slow, or write timelines for
ui.perfetto.dev.

\b
  traceconv report kineto.json
  traceconv merge kineto.json onednn.log -o out.pftrace
  traceconv open out.pftrace

Perfetto has a tool of the same name that converts the other way: from Perfetto's format to others.
"""


@contextlib.contextmanager
def _standard_output() -> Iterator[None]:
    """Turn what failed while standard output was written into an error for the user, or the end by SIGPIPE.

    All other files are read and written by `traceconv.io`, whose errors name them.
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        from traceconv.io import output  # costs some ms

        if isinstance(error, BrokenPipeError):
            output.give_up_stdout()
            raise _Ended(signal.SIGPIPE) from None
        raise output.stdout_failure(error) from None


class _Commands(click.Group):
    """The commands by name, imported on use: `--help` must not pay for numpy."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _standard_output():  # for --help and --version
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _standard_output():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return _COMMANDS

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        name = _ALIASES.get(name, name)
        if name not in _COMMANDS:
            return None
        if name not in _RUN_OTHERS:
            # BLAS has a thread for each core that spins while numpy starts; no large matrices are multiplied here.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        process.require_memory()
        command = getattr(importlib.import_module(f"traceconv.cli.{_MODULE_OF[name]}"), f"{name}_command")
        gc.freeze()
        gc.enable()
        process.raise_again()  # now something may be begun that has to be cleared away, such as temporary files
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in (*_COMMANDS, *_ALIASES) and not args[0].startswith("-"):
            import difflib  # costs some ms
            import shlex

            similar = difflib.get_close_matches(args[0], [*_COMMANDS, *_ALIASES], 1)
            hint = f"did you mean {similar[0]}?" if similar else "traceconv --help lists the commands"
            hint = _ELSEWHERE.get(args[0], hint)
            if os.path.isfile(args[0]):
                hint = f"to convert it: traceconv convert {shlex.quote(args[0])} -o out.pftrace"
            raise UsageError(f"there is no command {args[0]!r}", hint=hint)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for title, commands in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), help_text) for name, help_text in commands.items()])


@click.group(cls=_Commands, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, _, wanted: _show_version(context) if wanted else None,
    help="Show the version and exit.",
)
def cli() -> None:
    """Turn recordings into timelines: the root of all commands."""


def _show_version(context: click.Context) -> None:
    from traceconv import kernel

    say(f"traceconv, version {__version__}", err=False)
    say(*kernel.about().splitlines(), err=False)
    context.exit()


def main() -> None:
    """Run the command line.

    The exit code is 0 for done, 1 for failed, 2 for a wrong call, 3 if the evidence is too weak to align the inputs, 4
    if statements about clocks contradict each other or the events. If the reader of standard output closes it early,
    the process ends by SIGPIPE, as other tools do.
    """
    for number in _ENDING:
        # One that is ignored, as with nohup, stays so.
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    warnings.showwarning = _warn
    _open_closed_streams()
    if "_TRACECONV_COMPLETE" in os.environ:
        from traceconv.cli.completion import prepare

        prepare()
    try:
        sys.exit(cli.main(prog_name="traceconv", standalone_mode=False) or 0)
    except _Ended as ended:
        # Unfinished files are removed by now. Ends by the same signal, so that its sender sees that it worked.
        signal.signal(ended.number, signal.SIG_DFL)
        os.kill(os.getpid(), ended.number)
    except MemoryError:
        say("error: not enough memory")
        say(f"hint: {process.memory_hint() or 'convert and merge take less with --memory SIZE, such as 500M'}")
        sys.exit(1)
    except (click.exceptions.Abort, KeyboardInterrupt):
        say("interrupted")
        sys.exit(process.EXIT_CODE)
    except getattr(click.exceptions, "NoArgsIsHelpError", ()) as error:  # since click 8.2
        say(*error.format_message().splitlines())
        sys.exit(error.exit_code)
    except click.ClickException as error:
        print_error(_as_ours(error))
        sys.exit(error.exit_code)
    except TraceconvError as error:
        print_error(error)
        sys.exit(error.exit_code)
    finally:
        # The interpreter looks for garbage as it ends: without this, among all that was imported and read.
        gc.freeze()


def _open_closed_streams() -> None:
    """Replace a standard stream that was closed (`>&-`), for which Python has None.

    Writing to standard output then fails as it does on a full device. Messages are dropped.
    """
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def _as_ours(error: click.ClickException) -> UsageError:
    """Return an error of click in the form of all others: what is wrong, and where to look."""
    what = error.format_message().rstrip(".")
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else "traceconv"
    return UsageError(f"{what[:1].lower()}{what[1:]}", hint=f"{command} --help lists arguments and options")


def _warn(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line, without where in the code it was raised."""
    say(f"warning: {message}")


class _Ended(BaseException):
    """A signal that asks to end; no `except Exception` on the way takes it for a failure of an input."""

    def __init__(self, number: int) -> None:
        self.number = number


def _end(number: int, _frame: FrameType | None) -> None:
    raise _Ended(number)


def print_error(error: TraceconvError) -> None:
    """Print an error as one line, with its hint on a second one."""
    for problem in getattr(error, "errors", [error]):
        say(f"error: {problem.message}")
        # All commands of several inputs have the option.
        hints = [problem.hint, *(["--skip-unknown leaves it out"] if isinstance(problem, UnrecognizedInput) else [])]
        if hint := "; ".join(filter(None, hints)):
            say(f"hint: {hint}")
