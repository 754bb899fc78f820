"""Helpers for both outputs of the profiler of TensorFlow and JAX: names of steps, flows, kinds of tracks.

Source: tsl/profiler/utils/xplane_schema.h in github.com/openxla/xla and from recordings. A flow is told in one of
two ways. In a raw XSpace an event has the stats `_p` and `_pt` (it is the producer of a context: its id and type), or
`_c` and `_ct` (a consumer). Once it was prepared for a viewer it has the stat `flow`: two bits for the direction (1 in,
2 out, 3 both), 56 for the id, 6 for the type of the context.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceconv.families.chrome.flows import FlowSteps
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import absent
from traceconv.model.trace import SliceId, TrackId

HALF_FLOW = absent("xprof.half_flow", "an event starts or ends a flow whose other end is not in the file: not drawn")

#: What is a process; other planes are devices.
HOST, DEVICE = "/host:", "/device:"
#: The names of all planes with events, by which a recording is recognised.
PLANES = (HOST, DEVICE, "Task Environment", "#Chip")
#: The arg of an iteration: of jax.profiler.StepTraceAnnotation, of tf.profiler.experimental.Trace, of Keras.
STEP_ARGS = ("step_num",)
_IN, _OUT = 1, 2
_PRODUCER, _CONSUMER = ("_p", "_pt"), ("_c", "_ct")
#: Stats that tell about the flows or the grouping of events only.
INTERNAL = frozenset((*_PRODUCER, *_CONSUMER, "_r"))


def step_name(name: str, args: Mapping[str, Any]) -> str:
    """Return the name of an event; that of a step has its number, as the viewers of TensorBoard show it."""
    number = args.get("step_num")
    if number is None or f" {name}".endswith(f" {number}"):
        return name
    return f"{name} {number}"


def ends_of_flows(stats: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Return the flows that an event takes part in.

    Each is "s" for a start or "f" for an end, and the key of the flow.
    """
    ends = []
    for phase, (id, kind) in (("s", _PRODUCER), ("f", _CONSUMER)):
        if id in stats:
            ends.append((phase, f"{stats.get(kind, 0)} {stats[id]}".encode()))
    flow = stats.get("flow")
    if isinstance(flow, int):
        key = b"flow %d" % (flow >> 2)
        ends += [(phase, key) for phase, bit in (("f", _IN), ("s", _OUT)) if flow & bit]
    return ends


class Timeline:
    """Puts events on tracks: as slices, or as instants if they have neither a duration nor a flow.

    Args:
        out: the builder.
    """

    def __init__(self, out: Builder) -> None:
        self.flows = FlowSteps(unpaired=HALF_FLOW)
        self._out = out

    def add(
        self, track: TrackId, ts: int, dur: int, name: str, args: dict[str, Any], stats: Mapping[str, Any], at: int
    ) -> None:
        """Add an event.

        Args:
            stats: the stats, with those of flows.
        """
        flows = ends_of_flows(stats)
        name = step_name(name, args)
        if dur or flows:
            row = self._out.slice(track, ts, dur, name, "", args, at)
            for phase, key in flows:
                self.flows.add(("", "", key), phase, track, ts, at, row=SliceId(row), counts=False)
        else:
            self._out.instant(track, ts, name, "", args, at)
        self._out.balance.written += 1
