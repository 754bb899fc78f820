"""What `--json` prints, one object that follows schemas/commands.schema.json, and what several commands say in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from traceconv.cli._terminal import put
from traceconv.io.json_text import as_json

if TYPE_CHECKING:
    from traceconv.errors import TraceconvError
    from traceconv.model.clocks import ClockDomain

#: To be raised with each change that takes something away.
VERSION = 1

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; schemas/commands.schema.json describes it."
)


def print_json(**members: Sequence[dict[str, Any]]) -> None:
    """Print one object with some lists."""
    put(as_json({"schema_version": VERSION, **members}))


def failure(file: str, error: TraceconvError) -> dict[str, Any]:
    """Return the JSON object for an input that failed."""
    return {"file": file, "error": error.message} | ({"hint": error.hint} if error.hint else {})


def clock_json(clock: ClockDomain) -> dict[str, Any]:
    """Return a clock."""
    return {
        "name": clock.name,
        "zero": clock.zero.value,
        "run": clock.run.value,
        "resolution_ns": clock.resolution_ns,
        "machine": clock.machine,
    }
