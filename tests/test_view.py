"""Which window of time is shown first."""

from __future__ import annotations

import io

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from traceconv.families.perfetto.writer import PerfettoProto
from traceconv.merging.traces import concatenate_traces
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out
from traceconv.model.trace import SourceInfo, Trace
from traceconv.writers.view import window

MS = 1_000_000


def recording(*spans: tuple[int, int], mark: int | None = None, totals: bool = False) -> Trace:
    """Slices of a thread from and to some ms, and a mark."""
    out = Builder(SourceInfo("a", "b"), REALTIME)
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 1)
    for start, end in spans:
        out.slice(thread, start * MS, (end - start) * MS, "work")
    if mark is not None:
        out.instant(thread, mark * MS, "mark")
    if totals:
        out.belongs_to(("b",))
    return lay_out(out.finish())


def merged(*traces: Trace) -> Trace:
    """The recordings in one trace, as they are."""
    for number, trace in enumerate(traces):
        for index in range(len(trace.tracks)):
            trace.tracks.own(index).source = number  # type: ignore[attr-defined]
    return concatenate_traces(traces)


STARTUP = [(0, 50), (2390, 2400)]


@pytest.mark.parametrize(
    ("traces", "expected"),
    [
        ([recording((0, 10), (90, 100))], None),
        ([recording((0, 10), mark=100)], (0, 10.2)),
        ([recording(*STARTUP), recording((2377, 2400))], (2376.54, 2400)),
        ([recording((0, 100)), recording((20, 100))], None),
        ([recording((0, 100)), recording((9000, 9001))], (0, 102)),
        ([recording((0, 100)), recording((0, 1), totals=True)], None),
    ],
    ids=["whole", "mark", "start-up", "nearly", "far", "totals"],
)
def test_the_window_is_where_the_work_is(traces: list[Trace], expected: tuple[float, float] | None) -> None:
    found = window(merged(*traces))
    assert found == (expected and tuple(round(ms * MS) for ms in expected))


def test_the_file_says_its_window_once() -> None:
    sink = io.BytesIO()
    PerfettoProto().write(merged(recording(*STARTUP), recording((2377, 2400))), sink)
    packets = pb.Trace.FromString(sink.getvalue()).packet
    said = [(p.service_event, p.timestamp) for p in packets if p.HasField("service_event")]
    assert [time for _, time in said] == [2376.54 * MS, 2400 * MS]
    assert [one.tracing_started for one, _ in said] == [True, False]
    assert [one.tracing_disabled for one, _ in said] == [False, True]
    assert not any(p.timestamp_clock_id or p.HasField("clock_snapshot") for p in packets)
