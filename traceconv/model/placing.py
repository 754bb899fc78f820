"""How certain the times of an input are on the time axis of a trace, and in outputs that it was read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from traceconv.model.clocks import Verdict


@dataclass(frozen=True, slots=True, eq=False)
class Placing:
    """How one file was put on the time of a trace; inputs of one output share that of the output.

    Attributes:
        bound_ns: how wrong its times can be, ns; None if not known.
        apart: whether it is drawn beside the others without alignment.
        host: the host that it states, "" if it states none.
    """

    bound_ns: int | None = None
    apart: bool = False
    host: str = ""


def placing_of(file: str, alignment: Any) -> Placing:
    """Return the placing of a file from the alignment in the metadata of a trace, which may be damaged or missing."""
    lines = [one for one in alignment if isinstance(one, dict)] if isinstance(alignment, list) else []
    own = [
        read_placing([one.get("bound_ns"), one.get("verdict"), one.get("host")])
        for one in lines
        if one.get("file") == file
    ]
    bounds = [one.bound_ns for one in own if one.bound_ns is not None]
    bound = max(bounds) if own and len(bounds) == len(own) else None
    return Placing(bound, any(one.apart for one in own), next((one.host for one in own if one.host), ""))


def read_placing(values: Any) -> Placing:
    """Return a placing from its bound, verdict and host, as a file states them; the bound of a damaged one is None."""
    bound, verdict, host = values if isinstance(values, list) and len(values) == 3 else (None, "", "")
    known = bound if type(bound) is int and bound >= 0 else None
    return Placing(known, verdict == Verdict.SEPARATE, host if isinstance(host, str) else "")


def unshared(one: tuple[Placing, ...], other: tuple[Placing, ...]) -> list[Placing]:
    """Return the placings that lie between two inputs: those of both, without those of outputs that hold both."""
    return [*(step for step in one if step not in other), *(step for step in other if step not in one)]
