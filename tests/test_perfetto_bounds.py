"""Perfetto traces whose numbers, depths or sizes go beyond what can be: made by hand, no recording has them.

Nothing of it raises anything but our own errors, takes more than its share of time and memory, or is lost unsaid.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.make_perfetto import Packets, snapshot
from tests.test_perfetto_input import codes, instants_at, read_bytes, timed
from traceconv import api
from traceconv.ir.trace import Trace
from traceconv.times import LIMIT_NS


def weights(trace: Trace) -> list[int]:
    found: list[int] = trace.samples.weight.tolist()
    return found


# -- weights ------------------------------------------------------------------------------------------------------


def test_a_weight_beyond_64_bits(tmp_path: Path) -> None:
    packets = Packets()
    for ts, total in ((10, 5), (20, 2**64 - 1), (30, 7)):
        sample = packets.add(timestamp=ts).perf_sample
        sample.pid, sample.tid, sample.timebase_count = 3, 4, total
    trace = read_bytes(tmp_path, packets.bytes())
    assert weights(trace) == [5, 2**63 - 1, -(2**63)]
    assert codes(trace)["sample.impossible_weight"] == 2
    assert {len(getattr(trace.samples, name)) for name in ("ts", "track", "stack", "name", "origin")} == {3}


@pytest.mark.parametrize(
    ("given", "back"),
    [
        ([9 * 10**18] * 3, [9 * 10**18] * 2 + [2**64 - 1 - 18 * 10**18]),
        ([5, -7, 3], [5, -5, 3]),
        ([5, -5, 7], None),
        ([2**63 - 1, 7, 2**63 - 7], None),
    ],
)
def test_totals_of_weights_stay_in_range(given: list[int], back: list[int] | None, tmp_path: Path) -> None:
    """The format has the running total of the weights, in 64 bits without sign."""
    source, output = tmp_path / "w.json", tmp_path / "w.pftrace"
    events = [{"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": ts, "weight": one} for ts, one in enumerate(given)]
    source.write_text(json.dumps({"traceEvents": events}))
    notes = api.convert(source, output).trace.sources[-1].notes
    trace = api.read(output)
    assert weights(trace) == (back or given)
    assert codes(trace) == {}
    changed = sum(one != other for one, other in zip(given, weights(trace), strict=True))
    assert [note.split(" have ")[0] for note in notes] == ([f"{changed} call stack samples"] if changed else [])


# -- times --------------------------------------------------------------------------------------------------------


def shifted(folder: Path, value: str | int) -> Trace:
    packets = Packets()
    packets.descriptor(5, "work")
    packets.event(1000, "INSTANT", name="x")
    attribute = packets.add().trace_attributes.attribute.add(key="traceconv.time_shift_ns")
    if isinstance(value, int):
        attribute.long_value = value
    else:
        attribute.string_value = value
    return read_bytes(folder, packets.bytes())


@pytest.mark.parametrize("value", ["300", 300, -300, LIMIT_NS - 1000])
def test_times_that_were_moved(value: str | int, tmp_path: Path) -> None:
    trace = shifted(tmp_path, value)
    assert instants_at(trace) == [1000 - int(value)]
    assert codes(trace) == {}


@pytest.mark.parametrize("value", ["1" + "0" * 30, "true", "1.5", "soon", "[" * 100_000, "", LIMIT_NS + 1, -(2**63)])
def test_times_that_were_moved_nobody_knows_how_far(value: str | int, tmp_path: Path) -> None:
    trace = shifted(tmp_path, value)
    assert instants_at(trace) == [1000]
    assert codes(trace) == {"bad_shift": 1}


def test_times_that_were_moved_as_far_as_can_be(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    packets.event(2**62, "INSTANT", name="x")
    packets.add().trace_attributes.attribute.add(key="traceconv.time_shift_ns", long_value=-LIMIT_NS)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [LIMIT_NS]
    assert codes(trace) == {"time.out_of_range": 1}


def test_a_clock_far_ahead_keeps_the_order(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    snapshot(packets, (6, 2**62), (3, 0))
    timed(packets, 6, 2**62)
    timed(packets, 3, 2**62)
    timed(packets, 3, 2**63 - 1)
    timed(packets, 3, 0)
    trace = read_bytes(tmp_path, packets.bytes())
    assert trace.instants.ts.tolist() == [LIMIT_NS, LIMIT_NS, LIMIT_NS, LIMIT_NS]
    assert codes(trace) == {"time.out_of_range": 2}


def test_a_time_beyond_the_limit_does_not_come_back_by_another_clock(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    snapshot(packets, (4, 0), (3, 2**62))
    snapshot(packets, (3, 2**62), (6, 0))
    timed(packets, 4, 2**61)
    timed(packets, 4, 0)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [0, LIMIT_NS]
    assert codes(trace) == {"time.out_of_range": 1}


def test_a_clock_that_ticks_in_years(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    snapshot(packets, (6, 100)).clocks.add(clock_id=64, timestamp=0, unit_multiplier_ns=2**60)
    for ts in (0, 1, 100):
        timed(packets, 64, ts)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [100, 2**60 + 100, LIMIT_NS]
    assert codes(trace) == {"time.out_of_range": 1}


@pytest.mark.parametrize("field", ["timestamp_absolute_us", "timestamp_delta_us"])
def test_an_old_time_beyond_64_bits(field: str, tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    for value in (7, 2**62, -(2**63)):
        event = packets.add().track_event
        event.type, event.name, event.track_uuid = 3, "x", 5
        setattr(event, field, value)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [7000]
    assert codes(trace) == {"bad_time": 2}
