"""`traceconv open`."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import click

from traceconv.cli._terminal import say
from traceconv.cli.serve import TIMEOUT_S, serve
from traceconv.errors import OutputError, UsageError
from traceconv.io.source import Source


@click.command("open")
@click.argument("file")
@click.option("--browser/--no-browser", default=True, help="Start the browser, or only print the address.")
@click.option(
    "--timeout", default=TIMEOUT_S, show_default=True, metavar="SECONDS", help="Time to wait for the browser."
)
def command(file: str, browser: bool, timeout: float) -> None:
    """Show a trace in ui.perfetto.dev.

    \b
      traceconv open out.pftrace

    The file is served once, on 127.0.0.1 and to ui.perfetto.dev only; it does not leave the machine: the page reads it
    inside the browser, which may ask you to allow that. The command ends when the file was fetched.
    """
    head = Source(file).head()
    if head.data[:1] != b"\x0a" and head.text[:1] not in (b"{", b"["):
        raise UsageError(
            f"{file}: is not a trace that the UI can show",
            hint=f"traceconv convert {shlex.quote(file)} -o trace.pftrace",
        )
    fetched = serve(Path(file), open_browser=browser, timeout_s=timeout, on_ready=partial(say, err=False))
    if not fetched:
        raise OutputError(
            f"{file}: nobody fetched the trace within {timeout:g} s",
            hint="when the browser asks, allow ui.perfetto.dev to connect to this device; --timeout waits longer",
        )
