"""Runs commands of traceconv in this process: to start a process for each costs most of what a test takes."""

from __future__ import annotations

import contextlib
import io
from subprocess import CompletedProcess

from click.testing import CliRunner

from traceconv.cli import cli, print_error
from traceconv.errors import TraceconvError


def run(*arguments: object) -> CompletedProcess[str]:
    """Run a command; what it prints and its exit code are those of `python -m traceconv`, with errors printed, too."""
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments])
    error, code, said = result.exception, result.exit_code, result.stderr
    if isinstance(error, TraceconvError):
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            print_error(error)
        code, said = error.exit_code, said + printed.getvalue()
    elif error is not None and not isinstance(error, SystemExit):
        raise error
    return CompletedProcess(arguments, code, result.stdout, said)
