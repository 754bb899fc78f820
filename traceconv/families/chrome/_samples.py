"""Collect the samples of a Chrome trace, whose call stacks are known only at the end of the file."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from msgspec import Raw

from traceconv.families.chrome.event import ABSENT, Event, extra_of, text_of
from traceconv.model.builder import Builder
from traceconv.model.json_values import decode_json
from traceconv.model.numbers import number_of
from traceconv.model.trace import NO_CPU, StackId, TrackId

_LARGEST = sys.float_info.max


def number_in(value: object) -> float | None:
    """Return the number in a counter value, which may be a text; integers stay exact."""
    if isinstance(value, str):
        value = number_of(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) <= _LARGEST else None


class Samples:
    """Collects samples.

    Args:
        out: the builder.
        place: a function that returns the track of an event.
    """

    def __init__(self, out: Builder, place: Callable[[Event], TrackId]) -> None:
        self._out = out
        self._place = place
        self._samples: list[tuple[int, TrackId, int, str, Raw, int, int]] = []

    def add(self, event: Event, ts: int, number: int) -> None:
        """Read P: a sample of a thread, with a call stack if the event has one."""
        frame = event.extra["sf"] if event.extra and "sf" in event.extra else ABSENT
        weight = number_in(decode_json(extra_of(event, "weight") or b"1"))
        if weight is None or not 1 <= abs(weight) < 2**63:
            weight = 1
        cpu = number_in(decode_json(extra_of(event, "cpu") or b"-1"))
        on_cpu = int(cpu) if cpu is not None and cpu >= 0 else NO_CPU
        self._samples.append((ts, self._place(event), number, event.name, frame, int(weight), on_cpu))
        self._out.balance.written += 1

    def write(self, frames: dict[str, Any] | None) -> None:
        """Write all samples; `frames` are the `stackFrames` of the trace, by id."""
        stacks: dict[str, StackId] = {}
        frames = frames if isinstance(frames, dict) else {}
        frames = {key: entry for key, entry in frames.items() if isinstance(entry, dict)}
        for ts, track, number, name, raw, weight, cpu in self._samples:
            stack = self._stack(text_of(bytes(raw)), frames, stacks) if raw is not ABSENT else None
            stack = self._out.frame(name) if stack is None else stack
            self._out.sample(track, ts, stack, name, weight, number, cpu=cpu)

    def _stack(self, frame: str, frames: dict[str, Any], known: dict[str, StackId]) -> StackId | None:
        """Return the stack that ends in a frame of the `stackFrames` table."""
        chain: dict[str, None] = {}
        last = frame
        while last in frames and last not in known and last not in chain:
            chain[last] = None
            last = str(frames[last].get("parent", ""))
        for name in reversed(chain):
            entry = frames[name]
            parent = known.get(str(entry.get("parent", "")), StackId(-1))
            known[name] = self._out.frame(str(entry.get("name", "")), str(entry.get("category", "")), parent)
        return known.get(frame)
