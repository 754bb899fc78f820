"""Perfetto traces whose numbers, depths or sizes go beyond what can be: made by hand, no recording has them.

Nothing of it raises anything but our own errors, takes more than its share of time and memory, or is lost unsaid.
"""

from __future__ import annotations

import json
import time
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import GROWTH_S
from tests.kernels import using
from tests.make_perfetto import Packets, snapshot
from tests.test_perfetto_input import codes, instants_at, read_bytes, slices, timed, values
from traceconv import api, kernel
from traceconv.check import check_file
from traceconv.check.pftrace import SEQUENCES
from traceconv.errors import NothingRead
from traceconv.families.perfetto import packets as perfetto_packets
from traceconv.families.perfetto.tree import Tree, track_uuids
from traceconv.families.perfetto.writer import SamplePackets
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import NO_CPU, Trace
from traceconv.model.track_table import NO_TRACK


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


@pytest.mark.parametrize(("count", "said"), [(1, "1 call stack sample, which"), (2, "2 call stack samples, which")])
def test_json_says_how_many_samples_are_not_shown(count: int, said: str, tmp_path: Path) -> None:
    source = tmp_path / "w.json"
    events = [{"ph": "P", "name": "s", "pid": 1, "tid": 1, "ts": ts} for ts in range(count)]
    source.write_text(json.dumps({"traceEvents": events}))
    (note,) = api.convert(source, tmp_path / "out.json").trace.sources[-1].notes
    assert said in note


@pytest.mark.parametrize("cpu", [NO_CPU, 3])
def test_names_of_samples_take_no_memory_for_the_frames_of_others(cpu: int) -> None:
    def peak(names: int) -> int:
        out = Builder(SourceInfo("x", "perf-script"), REALTIME)
        thread = out.tracks.thread(out.tracks.process("p", pid=1), 1)
        for number in range(100_000):
            stack = out.frame(f"f{number}")
            if number % 100 == 0:
                out.sample(thread, number, stack, f"event {number // 100 % names}", cpu=cpu)
        trace = lay_out(out.finish())
        packets = SamplePackets(trace, Tree(trace))
        rows = np.arange(1000)
        tracemalloc.start()
        packets.packets(rows, [b""] * len(rows))
        packets.take_head()
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(500) < peak(1) + 5_000_000  # 10 kB for each name; the frames are 100,000


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
    packets.event(LIMIT_NS, "INSTANT", name="x")
    packets.add().trace_attributes.attribute.add(key="traceconv.time_shift_ns", long_value=-LIMIT_NS)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [LIMIT_NS]
    assert codes(trace) == {"time.out_of_range": 1}


def test_a_clock_far_ahead_keeps_the_order(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    snapshot(packets, (6, LIMIT_NS), (3, 0))
    timed(packets, 6, LIMIT_NS)
    timed(packets, 3, LIMIT_NS)
    timed(packets, 3, 2**63 - 1)
    timed(packets, 3, 0)
    trace = read_bytes(tmp_path, packets.bytes())
    assert trace.instants.ts.tolist() == [LIMIT_NS, LIMIT_NS, LIMIT_NS, LIMIT_NS]
    assert codes(trace) == {"time.out_of_range": 2}


def test_a_time_beyond_the_limit_does_not_come_back_by_another_clock(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    snapshot(packets, (4, 0), (3, LIMIT_NS))
    snapshot(packets, (3, LIMIT_NS), (6, 0))
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


# -- depths and sizes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("children_first", [True, False])
def test_tracks_far_inside_of_each_other(children_first: bool, tmp_path: Path) -> None:
    depth = 3000
    packets = Packets()
    for number in range(depth, 0, -1) if children_first else range(1, depth + 1):
        packets.descriptor(number, f"t{number}", parent_uuid=number - 1)
    packets.slice(10, 5, "op", depth)
    trace = read_bytes(tmp_path, packets.bytes())
    assert [track.name for track in trace.tracks] == [f"t{number}" for number in range(1, depth + 1)]
    assert [int(track.parent) for track in trace.tracks] == list(range(-1, depth - 1))
    api.convert(tmp_path / "other.pftrace", tmp_path / "again.pftrace")
    back = [name for track in api.read(tmp_path / "again.pftrace").tracks for name in track.name.split(" · ")]
    assert back == [track.name for track in trace.tracks]  # groups of one track are named in its own name


def test_tracks_in_a_circle(tmp_path: Path) -> None:
    packets = Packets()
    for number, parent in ((1, 2), (2, 3), (3, 1)):
        packets.descriptor(number, f"t{number}", parent_uuid=parent)
    packets.slice(10, 5, "op", 1)
    trace = read_bytes(tmp_path, packets.bytes())
    assert [(track.name, int(track.parent)) for track in trace.tracks] == [("t3", -1), ("t2", 0), ("t1", 1)]
    assert codes(trace) == {"no_parent": 1}


def test_uuids_of_deep_tracks_take_what_shallow_ones_take() -> None:
    def peak(depth: int) -> int:
        out, track = Builder(SourceInfo("a", "test"), REALTIME), NO_TRACK
        for number in range(depth):
            track = out.tracks.add(f"t{number}", track)
        trace = out.finish()
        tracemalloc.start()
        assert len(set(track_uuids(trace))) == depth
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(4000) < 5 * peak(1000)


def compressed(times: int) -> bytes:
    packets = Packets()
    packets.descriptor(5, "work")
    packets.slice(10, 5, "op")
    data = packets.bytes()
    for _ in range(times):
        outer = Packets()
        outer.add(compressed_packets=zlib.compress(data))
        data = outer.bytes()
    return data


@pytest.mark.parametrize("module", [kernel.module("packets"), None], ids=["kernel", "python"])
def test_packets_compressed_over_and_over(module: Any, tmp_path: Path) -> None:
    with using("packets", module):
        trace = read_bytes(tmp_path, compressed(4))
        assert codes(trace) == {}
        assert len(trace.slices.ts) == 1
        for times in (5, 600):
            with pytest.raises(NothingRead, match="bad_compression"):
                read_bytes(tmp_path, compressed(times))


def test_a_small_file_that_stands_for_a_huge_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfetto_packets, "MAX_UNPACKED", 10 << 20)
    packets, inner = Packets(), Packets()
    packets.descriptor(5, "work")
    inner.slice(10, 5, "op")
    # What follows is a packet of 64 MiB, of a data source that is not read.
    huge = b"\x0a\x84\x80\x80\x20\xf2\x02\x80\x80\x80\x20" + bytes(64 << 20)
    packets.add(compressed_packets=zlib.compress(inner.bytes() + huge))
    packets.slice(20, 5, "behind")
    tracemalloc.start()
    trace = read_bytes(tmp_path, packets.bytes())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert slices(trace) == [(10, 5, "op"), (20, 5, "behind")]
    assert codes(trace) == {"bad_compression": 1}
    assert peak < 50 << 20


@pytest.mark.parametrize("cut", [1, 10])
def test_a_compressed_packet_that_is_cut(cut: int, tmp_path: Path) -> None:
    outer, inner = Packets(), Packets()
    inner.descriptor(5, "work")
    inner.slice(10, 5, "op")
    outer.add(compressed_packets=zlib.compress(inner.bytes())[:-cut])
    trace = read_bytes(tmp_path, outer.bytes())
    assert codes(trace)["bad_compression"] == 1
    assert "truncated" not in codes(trace)


def test_many_clocks_in_one_snapshot(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    count = 3000
    snapshot(packets, (6, 10**6), *((200 + n, n) for n in range(count)))
    for n in range(0, count, 10):
        timed(packets, 200 + n, n + 1)
    tracemalloc.start()
    trace = read_bytes(tmp_path, packets.bytes())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert instants_at(trace) == [10**6 + 1] * (count // 10)
    assert codes(trace) == {}
    assert peak < 20 << 20


def test_very_many_clocks_take_linear_time(tmp_path: Path) -> None:
    """Seconds; each was looked up among all before, which took minutes, and `check` joined it to a copy of all."""
    count = 20_000
    packets = Packets()
    packets.descriptor(5, "work")
    for n in range(count):
        snapshot(packets, (6, 10**6 + n), (64, n), sequence=n + 2)
        timed(packets, 64, n + 1, sequence=n + 2)
    path = tmp_path / "a.pftrace"
    path.write_bytes(packets.bytes())
    begin = time.process_time()
    assert instants_at(api.read(path)) == [10**6 + n + 1 for n in range(count)]
    report = check_file(path)
    assert time.process_time() - begin < GROWTH_S
    assert report.counts[SEQUENCES] == count + 1
    assert not report.problems


def test_the_shortest_way_over_clocks(tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    for clocks in (((200, 0), (201, 10)), ((201, 0), (202, 100)), ((200, 0), (203, 5)), ((203, 0), (6, 1000))):
        snapshot(packets, *clocks)
    snapshot(packets, (202, 0), (6, 7777))
    snapshot(packets, (300, 0), (301, 0))
    for clock in (200, 201, 202, 203, 300):
        timed(packets, clock, 0)
    trace = read_bytes(tmp_path, packets.bytes())
    assert instants_at(trace) == [1000, 1005, 7777, 7877]
    assert codes(trace) == {"unknown_clock": 1}


@pytest.mark.parametrize("field", ["flow_ids", "extra_counter_values", "categories"])
def test_an_event_with_very_many_values(field: str, tmp_path: Path) -> None:
    """A second or two; tuples that grew one by one took 50 s for a third of it, which is 450 s for all."""
    count = 300_000
    packets = Packets()
    packets.descriptor(5, "work")
    packets.slice(10, 5, "op", **{field: ["c"] * count if field == "categories" else list(range(1, count + 1))})
    data = packets.bytes()
    start = time.process_time()
    read_bytes(tmp_path, data)
    assert time.process_time() - start < GROWTH_S


# -- losses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("multiplier", [1, 2])
@pytest.mark.parametrize("module", [kernel.module("packets"), None], ids=["kernel", "python"])
def test_a_value_that_is_no_number_is_not_counted_as_written(module: Any, multiplier: int, tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(7, "memory").counter.unit_multiplier = multiplier
    for ts, value in enumerate((float("nan"), 1.5, float("inf"))):
        packets.event(ts, "COUNTER", 7, double_counter_value=value)
    with using("packets", module):
        trace = read_bytes(tmp_path, packets.bytes())
    assert values(trace) == [(1, 1.5 * multiplier)]
    assert codes(trace) == {"counter.not_a_number": 2}
    assert trace.sources[0].balance.written == 1
    assert trace.sources[0].balance.skipped == {"skipped (counter.not_a_number)": 2}


@pytest.mark.parametrize("module", [kernel.module("packets"), None], ids=["kernel", "python"])
def test_flow_ids_of_an_end_are_counted(module: Any, tmp_path: Path) -> None:
    packets = Packets()
    packets.descriptor(5, "work")
    packets.event(10, "SLICE_BEGIN", name="op")
    packets.event(15, "SLICE_END", flow_ids=[7], terminating_flow_ids=[8])
    packets.slice(20, 5, "op", flow_ids=[7])
    with using("packets", module):
        trace = read_bytes(tmp_path, packets.bytes())
    assert slices(trace) == [(10, 5, "op"), (20, 5, "op")]
    assert codes(trace) == {"flow_of_end": 2, "half_flow": 1}
