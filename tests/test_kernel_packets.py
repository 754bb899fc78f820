"""What the kernel reads from Perfetto traces is what the importer reads without it, column for column."""

from __future__ import annotations

import io
import tempfile
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tests import golden, make_perfetto
from tests.kernels import using, variants
from traceconv.errors import TraceconvError
from traceconv.families.common import wire_writer as wire
from traceconv.families.outputs import writer_named
from traceconv.families.perfetto import rows as perfetto_rows
from traceconv.families.perfetto.reader import Perfetto
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import TABLES, Trace

KERNELS = variants("packets")
RECORDINGS = [case.input.read_bytes() for case in golden.cases() if case.format == "perfetto"]
SMALL = [make_perfetto.sdk(), make_perfetto.odd(), make_perfetto.old_chrome(), make_perfetto.cut()]


def read(data: bytes, module: ModuleType | None) -> list[Any]:
    """All that became of a file, in a form that can be compared."""
    out = Builder(SourceInfo("a.pftrace", "perfetto"), Perfetto.clock)
    with tempfile.TemporaryDirectory() as folder, using("packets", module):
        path = Path(folder, "a.pftrace")
        path.write_bytes(data)
        try:
            Perfetto().read(Source(path), out)
        except TraceconvError as error:
            return [str(error).replace(folder, "")]
    return shown(out.finish())


def shown(trace: Trace) -> list[Any]:
    found: list[Any] = [trace.strings, trace.tracks, trace.clocks, trace.snapshots, trace.frames, trace.metadata]
    for name, table in TABLES.items():
        columns = {column.name: getattr(getattr(trace, name), column.name) for column in fields(table)}
        if "args_at" in columns:
            places = zip(columns.pop("args_at").tolist(), columns["args_len"].tolist(), strict=True)
            found.append([trace.args.get(*place) for place in places])
        found.append({key: (column.dtype, column.tobytes()) for key, column in columns.items()})
    source = trace.sources[0]
    return [*found, source.notes, asdict(source.balance), [d.message() for d in source.diagnostics]]


def same(data: bytes) -> None:
    general = read(data, None)
    for name, module in KERNELS.items():
        assert read(data, module) == general, name


@pytest.mark.parametrize("data", RECORDINGS + SMALL, ids=lambda data: f"{len(data)} bytes")
def test_recordings(data: bytes) -> None:
    same(data)


@pytest.mark.parametrize("name", ["pytorch-kineto", "viztracer", "chrome-trace", "onnxruntime"])
def test_own_output(name: str, tmp_path: Any) -> None:
    for case in golden.cases():
        if case.format == name and (case.folder / "expect.txt").exists():
            sink = io.BytesIO()
            trace = case.merged(case.traces(tmp_path))
            writer_named("perfetto").write(trace, sink)
            if len(sink.getvalue()) < 200_000:
                same(sink.getvalue())


def test_cut_at_every_byte() -> None:
    data = make_perfetto.sdk()
    for end in range(1, len(data), 3):
        same(data[:end])


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(SMALL), st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=4)
)
def test_damaged(data: bytes, changes: list[tuple[int, int]]) -> None:
    changed = bytearray(data)
    for at, byte in changes:
        changed[at % len(changed)] = byte
    same(bytes(changed))


_u64 = st.integers(0, 5) | st.integers(0, 2**64 - 1)
_i64 = st.integers(-3, 300) | st.integers(-(2**63), 2**63 - 1)
_iid = st.integers(0, 4)
_text = st.sampled_from(["", "a", 'q"', "é", "\\", "x\x7f", "plain text"])


def _annotation(draw: st.DrawFn, annotation: Any, depth: int, is_item: bool = False) -> None:
    if not is_item or draw(st.integers(0, 9)) == 0:
        if draw(st.booleans()):
            annotation.name_iid = draw(_iid)
        else:
            annotation.name = draw(_text)
    kind = draw(st.integers(0, 9 if depth < 3 else 6))
    if kind == 0:
        annotation.int_value = draw(_i64)
    elif kind == 1:
        annotation.uint_value = draw(_u64)
    elif kind == 2:
        annotation.double_value = draw(st.floats())
    elif kind == 3:
        annotation.string_value_iid = draw(_iid)
    elif kind == 4:
        annotation.string_value = draw(_text)
    elif kind == 5:
        annotation.bool_value = draw(st.booleans())
    elif kind == 6:
        annotation.pointer_value = draw(_u64)
    for _ in range(draw(st.integers(0, 2)) if kind in (7, 9) else 0):
        _annotation(draw, annotation.dict_entries.add(), depth + 1)
    for _ in range(draw(st.integers(0, 2)) if kind in (8, 9) else 0):
        _annotation(draw, annotation.array_values.add(), depth + 1, True)


def _event(draw: st.DrawFn, event: Any) -> None:
    event.type = draw(st.sampled_from([1, 1, 2, 2, 3, 4, 5, 0]))
    odd = draw(st.integers(0, 15))
    if draw(st.integers(0, 5)):
        event.track_uuid = draw(st.sampled_from([1, 2, 3, 2**64 - 1]))
    if draw(st.booleans()):
        event.name_iid = draw(_iid)
    if draw(st.integers(0, 3)) == 0:
        event.name = draw(_text)
    for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
        event.category_iids.append(draw(_iid))
    if draw(st.integers(0, 3)) == 0:
        event.categories.extend(draw(st.lists(_text, max_size=2)))
    if event.type == 4 or odd == 2:
        if draw(st.booleans()):
            event.counter_value = draw(_i64)
        elif draw(st.integers(0, 4)):
            event.double_counter_value = draw(st.floats())
    if event.type in (1, 3) or odd == 3:
        event.flow_ids.extend(draw(st.lists(_u64, max_size=2)))
        event.terminating_flow_ids.extend(draw(st.lists(_u64, max_size=1)))
    if odd == 4:
        event.log_message.body_iid = 1
    for _ in range(draw(st.integers(0, 3)) if event.type != 4 or odd == 5 else 0):
        _annotation(draw, event.debug_annotations.add(), 0)


@st.composite
def _traces(draw: st.DrawFn) -> bytes:
    trace = pb.Trace()
    for _ in range(draw(st.integers(1, 14))):
        packet = trace.packet.add()
        packet.trusted_packet_sequence_id = draw(st.sampled_from([1, 1, 1, 2]))
        flags = draw(st.sampled_from([0, 2, 2, 2, 2, 2, 1, 3]))
        if flags:
            packet.sequence_flags = flags
        if draw(st.integers(0, 15)):
            packet.timestamp = draw(st.integers(0, 10**6) | st.sampled_from([2**62, 2**63 - 1, 2**64 - 1]))
        kind = draw(st.integers(0, 11))
        if kind == 0:
            clock = packet.clock_snapshot.clocks.add()
            clock.clock_id, clock.timestamp, clock.is_incremental = (
                draw(st.sampled_from([6, 64])),
                5,
                draw(st.booleans()),
            )
            continue
        if kind == 1:
            descriptor = packet.track_descriptor
            descriptor.uuid, descriptor.name = draw(st.integers(1, 3)), draw(_text)
            if draw(st.booleans()):
                descriptor.counter.is_incremental = draw(st.booleans())
                descriptor.counter.unit_multiplier = draw(st.sampled_from([0, 1, 1000]))
            continue
        if kind == 2:
            packet.trace_packet_defaults.timestamp_clock_id = draw(st.sampled_from([0, 6, 64]))
            packet.trace_packet_defaults.track_event_defaults.track_uuid = draw(st.integers(0, 3))
        if kind == 3:
            packet.previous_packet_dropped = 1
        if kind in (4, 5):
            data = packet.interned_data
            tables = (data.event_names, data.event_categories, data.debug_annotation_names)
            for table in tables:
                for iid in draw(st.lists(_iid, max_size=4)):
                    entry = table.add()
                    entry.iid, entry.name = iid, draw(_text)
            for iid in draw(st.lists(_iid, max_size=4)):
                text = data.debug_annotation_string_values.add()
                text.iid, text.str = iid, draw(_text).encode()
            if kind == 4:
                continue
        _event(draw, packet.track_event)
    data: bytes = trace.SerializeToString()
    return data


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(_traces())
def test_generated(data: bytes) -> None:
    same(data)


def test_texts_in_packets() -> None:
    """Names and categories that are not interned: empty, not UTF-8, twice, too long, and more than are remembered."""
    packets = make_perfetto.Packets()
    for number, name in enumerate(["", "a", "a", "n" * 70_000, *(f"{n:60000}" for n in range(700)), "a", "é"]):
        packets.slice(number, 5, name, categories=["c"] if number % 2 else [])
        packets.event(number, "INSTANT", name=name, categories=["c", "d"])
    twice = b"\x48\x01\x58\x05" + b"\xba\x01\x01x" * 2  # type, track, name
    bad = b"\x48\x01\x58\x05" + b"\xba\x01\x02\xff\xfe"
    events = b"".join(wire.blob(1, b"\x40\x07\x50\x01\x5a" + bytes([len(one)]) + one) for one in (twice, bad, bad))
    same(packets.bytes() + events)


def test_full_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns for two events and few args: what does not fit goes to the importer, or waits for the next round."""
    monkeypatch.setattr(perfetto_rows, "_ROWS", 2)
    for room in (1, 7, 40):
        monkeypatch.setattr(perfetto_rows, "_ARGS_ROOM", room)
        for data in (*SMALL, *(data for data in RECORDINGS if len(data) < 20_000)):
            same(data)


def test_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perfetto_rows, "_MAX_IDS", 3)
    for data in SMALL:
        same(data)


@pytest.mark.parametrize("module", KERNELS.values(), ids=list(KERNELS))
def test_numbers(module: ModuleType) -> None:
    """Each track and name keeps the number that was told for it, and is asked for once, however many there are."""
    rng = np.random.default_rng(1)
    uuids = [1, 2**32, 2**64 - 1, *rng.integers(1, 2**64, 2000, np.uint64).tolist()] * 2
    iids = [1 + uuid % 1500 for uuid in uuids]
    trace = pb.Trace()
    for ts, (uuid, iid) in enumerate(zip(uuids, iids, strict=True)):
        packet = trace.packet.add(timestamp=ts, trusted_packet_sequence_id=7)
        packet.track_event.type, packet.track_event.track_uuid, packet.track_event.name_iid = 1, uuid, iid
    reader = module.Packets(len(uuids), 16, repr)
    reader.set_sequence(7, reader.add_slot(6, True))
    told: dict[int, dict[int, int]] = {module.TRACK: {}, module.NAME: {}}
    data, at = trace.SerializeToString(), 0
    while (ended := reader.run(data, at)) == module.NEED:
        known = told[reader.need]
        assert reader.key not in known
        known[reader.key] = 3 * len(known)
        reader.answer(known[reader.key])
        at = reader.at
    assert (ended, reader.count) == (module.MORE, len(uuids))
    assert reader.fields[1].tolist() == [told[module.TRACK][uuid] for uuid in uuids]
    assert reader.fields[4].tolist() == [told[module.NAME][iid] for iid in iids]
    assert reader.ids() == len(set(iids)) + len(set(uuids))


@pytest.mark.parametrize("module", KERNELS.values(), ids=list(KERNELS))
def test_places_outside_are_refused(module: ModuleType) -> None:
    reader = module.Packets(4, 16, repr)
    for at in (-1, 3):
        with pytest.raises(IndexError, match="place"):
            reader.run(b"\x0a\x00", at)
