"""What `--json` prints, one object that follows schemas/commands.schema.json, and what several commands say in it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from traceconv.cli._terminal import say

if TYPE_CHECKING:
    from traceconv.errors import TraceconvError
    from traceconv.model.clocks import ClockDomain

#: To be raised with each change that takes something away.
VERSION = 1

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; schemas/commands.schema.json describes it."
)


def print_json(**members: Sequence[dict[str, Any]]) -> None:
    """Print one object with some lists; ASCII, so that no name of an input can steer a terminal."""
    text = json.dumps(_plain({"schema_version": VERSION, **members}), indent=1, allow_nan=False)
    say(*text.splitlines(), err=False, whole=True)


def _plain(value: object) -> object:
    """Return a value as JSON can hold it: numbers that are not finite as null, what JSON does not know as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, str | int) else str(value)


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
