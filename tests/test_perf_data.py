"""perf.data and its JSON: what the goldens do not pin."""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.golden import ROOT
from tests.make_perf import (
    ADDR,
    CALLCHAIN,
    CONTEXT_USER,
    CPU,
    CPUDESC,
    FINISHED_ROUND,
    HOSTNAME,
    ID,
    IDENTIFIER,
    IP,
    MISC_EXEC,
    PERIOD,
    RAW,
    READ,
    STREAM_ID,
    TID,
    TIME,
    USER_MODE,
    Maker,
    oddities,
)
from traceconv.align.duplicates import warnings_of_duplicates
from traceconv.api import identify, read
from traceconv.errors import MalformedInput, NothingRead
from traceconv.families.common.elf import functions_of
from traceconv.families.perf import container
from traceconv.families.perf.container import read_tracepoints
from traceconv.families.perf.data import AddressSpace, Mapping
from traceconv.model.dump import dump
from traceconv.model.trace import NO_CPU, Trace

COMPRESSED, COMPRESSED2 = 81, 83
#: perf script --ns -G -F comm,pid,tid,time,period,event of the recordings in golden/perf-data (perf 6.1).
PRINTED = Path(__file__).parent / "perf_script"
#: python 18582/18582 1795244861.861908089:    2004008 cpu-clock:
PRINTED_SAMPLE = re.compile(r"\d+/(\d+) +(\d+)\.(\d{9}): +(\d+) +(\S+): *$", re.MULTILINE)
SWITCH_EVENT = "sched:sched_switch"


def trace_of(tmp_path: Path, data: bytes) -> Trace:
    path = tmp_path / "perf.data"
    path.write_bytes(data)
    return read(path, format="perf-data")


def samples(trace: Trace) -> Counter[tuple[int | None, str, int]]:
    """Thread, event and time of all samples."""
    table = trace.samples
    rows = zip(table.track.tolist(), table.name.tolist(), table.ts.tolist(), strict=True)
    return Counter((trace.tracks[track].tid, trace.strings[name], ts) for track, name, ts in rows)


def lost(trace: Trace) -> dict[str, int]:
    return {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}


def test_both_endiannesses_say_the_same(tmp_path: Path) -> None:
    little, big = (trace_of(tmp_path, oddities(order)) for order in "<>")
    assert dump(little) == dump(big)
    assert len(little.samples.ts) == 6


def test_the_magic_of_before_linux_3_4_is_read(tmp_path: Path) -> None:
    data = oddities("<")
    old = data.replace(b"PERFILE2", b"PERFFILE", 1)
    assert dump(trace_of(tmp_path, old)) == dump(trace_of(tmp_path, data))
    path = tmp_path / "old.data"
    path.write_bytes(old)
    assert identify(path).format == "perf-data"


def test_the_hint_of_a_file_cut_behind_its_magic_speaks_of_the_file(tmp_path: Path) -> None:
    for data, hint in ((b"PERFFILE".ljust(200, b"\0"), "is the file whole?"), (b"x" * 200, "without --from")):
        with pytest.raises(MalformedInput) as error:
            trace_of(tmp_path, data)
        assert hint in (error.value.hint or "")


def test_a_feature_that_perf_left_empty_is_no_loss(tmp_path: Path) -> None:
    maker = Maker("<", (IP | TID | TIME,))
    maker.features[CPUDESC] = b""
    maker.features[HOSTNAME] = maker.text("bigiron")
    maker.sample(1_000, 0x400000)
    trace = trace_of(tmp_path, maker.data())
    assert lost(trace) == {}
    assert trace.metadata["perf_header"]["hostname"] == "bigiron"


def test_json_of_the_same_recording_has_the_same_samples() -> None:
    direct = read(ROOT / "perf-data" / "group_and_switches" / "input.data")
    json = read(ROOT / "perf-json" / "clock_pair" / "input.json")
    assert Counter((tid, ts) for tid, _, ts in samples(json).elements()) == Counter(
        (tid, ts) for tid, _, ts in samples(direct).elements()
    )
    assert sorted(zip(json.samples.ts, json.samples.cpu, strict=True)) == sorted(
        zip(direct.samples.ts, direct.samples.cpu, strict=True)
    )
    assert json.clocks == direct.clocks
    assert json.snapshots == direct.snapshots


def printed(recording: str) -> Counter[tuple[int, str, int, int]]:
    """Thread, event, time and period of all samples, as perf script printed them."""
    text = (PRINTED / f"{recording}.txt").read_text(encoding="utf-8")
    return Counter(
        (int(tid), event, int(seconds + decimals), int(period))
        for tid, seconds, decimals, period, event in PRINTED_SAMPLE.findall(text)
    )


@pytest.mark.parametrize("recording", [path.stem for path in sorted(PRINTED.glob("*.txt"))])
def test_samples_are_those_that_perf_script_prints(recording: str) -> None:
    """The same threads, events, times and periods; switches become states and are compared in number only."""
    trace = read(ROOT / "perf-data" / recording / "input.data")
    table = trace.samples
    rows = zip(table.track.tolist(), table.name.tolist(), table.ts.tolist(), table.weight.tolist(), strict=True)
    found = Counter((trace.tracks[track].tid, trace.strings[name], ts, weight) for track, name, ts, weight in rows)
    expected = printed(recording)
    switches = Counter({row: count for row, count in expected.items() if row[1] == SWITCH_EVENT})
    assert Counter({row: count for row, count in found.items() if row[1] != SWITCH_EVENT}) == expected - switches
    counts = trace.metadata["perf_samples"]
    assert counts.get(SWITCH_EVENT, {"samples": 0})["samples"] == switches.total()
    assert sum(entry["samples"] for entry in counts.values()) == expected.total() > 0


@pytest.mark.parametrize("recording", ["call_chains", "group_and_switches", "realtime_clock"])
@pytest.mark.parametrize("digits", [9, 6])
def test_a_recording_and_its_text_in_one_merge_are_said_to_be_one(recording: str, digits: int, tmp_path: Path) -> None:
    """perf script prints microseconds if nobody asks for more."""
    text = (PRINTED / f"{recording}.txt").read_text(encoding="utf-8")
    (tmp_path / "out.txt").write_text(re.sub(rf"(\d+\.\d{{{digits}}})\d*:", r"\1:", text))
    direct, of_text = read(ROOT / "perf-data" / recording / "input.data"), read(tmp_path / "out.txt")
    ((index, said),) = warnings_of_duplicates([direct, of_text], ["vm", ""], {})
    assert index == 1
    names = direct.samples.name.tolist()
    rows = zip(names, *columns(direct), strict=True)
    count = len({(name, direct.tracks[track].tid, ts) for name, track, ts in rows})
    same = "samples are samples of"
    assert str(said) == (
        f"{count} of its {len(of_text.samples.ts)} {same} input.data (same events, threads and times): "
        "they are drawn twice; leave one of the two out"
    )
    ((_, turned),) = warnings_of_duplicates([of_text, direct], ["", ""], {})
    assert str(turned).startswith(f"{count} of its {len(direct.samples.ts)} {same}")
    (tmp_path / "out.txt").write_text(re.sub(r"(\d:.*) ([-\w]+): *$", r"\1 other-\2:", text, flags=re.M))
    assert not [*warnings_of_duplicates([direct, read(tmp_path / "out.txt")], ["", ""], {})]  # other events of a group
    assert not [*warnings_of_duplicates([direct, of_text], ["vm", "node8"], {})]  # threads of another machine
    (tmp_path / "out.txt").write_text(re.sub(r"/\d+ ", "/77 ", text))
    assert not [*warnings_of_duplicates([direct, read(tmp_path / "out.txt")], ["", ""], {})]  # another thread
    later = replace(of_text.samples, ts=of_text.samples.ts + 5000)
    assert not [*warnings_of_duplicates([direct, of_text.with_tables(samples=later)], ["", ""], {})]  # other times


def test_samples_of_many_inputs_are_sorted_once_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    count, sort = 0, np.lexsort

    def counted(keys: Any) -> Any:
        nonlocal count
        count += 1
        return sort(keys)

    direct = read(ROOT / "perf-data" / "call_chains" / "input.data")
    moved = [direct.samples.ts + 10**12 * number for number in range(6)]
    traces = [direct.with_tables(samples=replace(direct.samples, ts=ts)) for ts in moved]
    monkeypatch.setattr(np, "lexsort", counted)
    assert not [*warnings_of_duplicates(traces, [""] * len(traces), {})]
    assert count == len(traces)
    assert len([*warnings_of_duplicates([*traces, traces[2]], [""] * 7, {})]) == 1


def columns(trace: Trace) -> tuple[list[int], list[int]]:
    return trace.samples.track.tolist(), trace.samples.ts.tolist()


@pytest.mark.parametrize(
    "sample_type",
    [
        IP | TID | TIME,
        IP | TID | TIME | ID | PERIOD,
        IP | TID | TIME | ADDR | ID | STREAM_ID | CPU | PERIOD | CALLCHAIN | RAW,
        IDENTIFIER | IP | TID | TIME | ADDR | STREAM_ID | CPU | PERIOD | CALLCHAIN,
    ],
)
def test_fields_are_found_for_each_sample_type(tmp_path: Path, sample_type: int) -> None:
    maker = Maker("<", (sample_type,), clockid=None)
    maker.comm(10, "app", pid=70, tid=71)
    maker.sample(20, 0x1234, pid=70, tid=71, period=77, chain=(CONTEXT_USER, 0x1234, 0x5678), raw=b"abcd", cpu=6)
    trace = trace_of(tmp_path, maker.data())
    assert samples(trace) == Counter({(71, "cpu-clock", 20): 1})
    assert trace.samples.weight.tolist() == [77 if sample_type & PERIOD else 1000]
    assert trace.samples.cpu.tolist() == [6 if sample_type & CPU else NO_CPU]
    names = [frame.name for frame in trace.frames]
    assert names == (["0x5678", "0x1234"] if sample_type & CALLCHAIN else ["0x1234"])
    assert [track.name for track in trace.tracks] == ["app", "app", "perf records"]


def test_two_events_are_told_apart_by_id(tmp_path: Path) -> None:
    kinds = (IP | TID | TIME | ID, IP | TID | TIME | ID | CPU | PERIOD)
    maker = Maker("<", kinds, ((1, 0), (1, 2)))
    maker.sample(20, 1, event=1, period=5)
    maker.sample(21, 1, event=0)
    assert samples(trace_of(tmp_path, maker.data())) == Counter({(7, "page-faults", 20): 1, (7, "cpu-clock", 21): 1})


@pytest.mark.parametrize("read_format", [0, 4, 3, 7, 0x14, 0x1F, 8 | 4, 8 | 4 | 3, 8 | 4 | 16])
def test_what_follows_a_reading_is_found_for_each_read_format(tmp_path: Path, read_format: int) -> None:
    kind = IP | TID | TIME | READ | CALLCHAIN | IDENTIFIER
    maker = Maker("<", (kind, kind), ((1, 0), (1, 2)), read_format=read_format)
    times = [1000] * ((read_format & 1) + (read_format >> 1 & 1))
    tail = [0] * (read_format >> 4 & 1)
    for ts, counts in ((20, (500, 3)), (30, (700, 3))):
        if read_format & 8:
            rows = [word for i, count in enumerate(counts) for word in (count, maker.id_of(i), *tail)]
            words = [2, *times, *rows]
        else:
            words = [counts[0], *times, *([maker.id_of(0)] if read_format & 4 else []), *tail]
        maker.sample(ts, 1, reading=struct.pack(f"<{len(words)}Q", *words), chain=(CONTEXT_USER, 0xABC))
    trace = trace_of(tmp_path, maker.data())
    assert {frame.name for frame in trace.frames} == {"0xabc"}
    if read_format & 8:  # each member that went on is a sample of its own
        assert trace.metadata["perf_samples"] == {
            "cpu-clock": {"samples": 2, "event_count": 700},
            "page-faults": {"samples": 1, "event_count": 3},
        }
    else:
        assert len(trace.samples.ts) == 2


def test_a_period_that_no_column_can_hold_counts_as_one_event(tmp_path: Path) -> None:
    maker = Maker()
    maker.sample(10, 1, period=2**63)
    maker.sample(11, 1, period=5)
    trace = trace_of(tmp_path, maker.data())
    assert trace.samples.weight.tolist() == [1, 5]
    (problem,) = trace.sources[0].diagnostics
    assert problem.code.name == "perf-data.period_out_of_range"


def test_names_apply_from_their_time_on(tmp_path: Path) -> None:
    """Records of several CPUs: a name that stands later in the file holds for the samples after its time only."""
    maker = Maker()
    maker.comm(10, "before")
    maker.mmap2(11, 0x1000, 0x1000, 0, "/bin/before")
    maker.sample(50, 0x1010)
    maker.sample(30, 0x1010)
    maker.record(FINISHED_ROUND, b"")
    maker.comm(40, "after", misc=USER_MODE | MISC_EXEC)
    maker.mmap2(41, 0x1000, 0x1000, 0, "/bin/after")
    maker.record(FINISHED_ROUND, b"")
    trace = trace_of(tmp_path, maker.data())
    assert "sample 30 on 1 'cpu-clock' before+0x10" in dump(trace)
    assert "sample 50 on 1 'cpu-clock' after+0x10" in dump(trace)


def test_a_thread_without_times_is_counted(tmp_path: Path) -> None:
    maker = Maker("<", (IP | TID,))
    maker.sample(0, 1)
    with pytest.raises(NothingRead, match=r"1 x .*\(perf-data.no_time\)"):
        trace_of(tmp_path, maker.data())


def test_a_chain_longer_than_its_record_is_counted(tmp_path: Path) -> None:
    maker = Maker("<", (IP | TID | TIME | CALLCHAIN,))
    maker.sample(5, 1, chain=(1, 2))
    maker.records[0] = maker.records[0].replace(struct.pack("<Q", 2), struct.pack("<Q", 2**62))
    maker.sample(6, 1, chain=(1, 2))
    trace = trace_of(tmp_path, maker.data())
    assert lost(trace) == {"perf-data.broken_record": 1}
    assert trace.samples.ts.tolist() == [6]
    assert trace.sources[0].balance.even


# -- compressed records ---------------------------------------------------------------------------------------------


class Plain:
    """Stands for zstd: what it unpacks is as it was."""

    def decompress(self, data: bytes) -> bytes:
        return data


def packed(chunks: int) -> bytes:
    """A recording whose records are cut into compressed records anywhere."""
    maker = Maker()
    for ts in range(100, 200):
        maker.sample(ts, 0x1000 + ts)
    stream = b"".join(maker.records)
    maker.records = []
    size = -(-len(stream) // chunks)
    for start in range(0, len(stream), size):
        maker.record(COMPRESSED, stream[start : start + size])
    return maker.data()


@pytest.mark.parametrize("chunks", [1, 3, 17])
def test_compressed_records_are_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunks: int) -> None:
    monkeypatch.setattr(container, "_new_stream", Plain)
    trace = trace_of(tmp_path, packed(chunks))
    assert trace.samples.ts.tolist() == list(range(100, 200))
    assert trace.sources[0].balance.merged["compressed records unpacked"] == chunks
    assert trace.sources[0].balance.even


@pytest.mark.parametrize("order", "<>")
def test_padding_of_compressed_records_is_no_data(tmp_path: Path, order: str) -> None:
    """Since perf 6.16, the length of the data stands before it, and zero bytes behind it."""
    zstandard = pytest.importorskip("zstandard")
    maker = Maker(order)
    for ts in range(100, 200):
        maker.sample(ts, 0x1000 + ts)
    plain, maker.records = maker.records, []
    stream, padded = zstandard.ZstdCompressor(level=1).compressobj(), 0
    for first in range(0, 100, 3):
        data = stream.compress(b"".join(plain[first : first + 3])) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        padded += bool(len(data) % 8)
        maker.record(COMPRESSED2, maker.pack("Q", len(data)) + data + bytes(-len(data) % 8))
    assert padded > 20
    trace = trace_of(tmp_path, maker.data())
    assert trace.samples.ts.tolist() == list(range(100, 200))
    assert trace.sources[0].balance.merged["compressed records unpacked"] == 34
    assert not lost(trace)


def test_a_length_beyond_a_compressed_record_is_said(tmp_path: Path) -> None:
    maker = Maker()
    maker.record(COMPRESSED2, maker.pack("Q", 1 << 40) + bytes(8))
    with pytest.raises(NothingRead, match=r"perf-data.bad_packed"):
        trace_of(tmp_path, maker.data())


def test_a_damage_that_unpacks_to_a_record_without_end_is_said(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    maker = Maker()
    for ts in range(100, 104):
        maker.sample(ts, 0x1000 + ts)
    records, maker.records = maker.records, []
    broken = records[1][:6] + b"\xff\xff" + records[1][8:]
    stream = zstandard.ZstdCompressor().compressobj()
    for record in (records[0], broken, *records[2:]):
        data = stream.compress(record) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        maker.record(COMPRESSED, data)
    trace = trace_of(tmp_path, maker.data())
    assert trace.samples.ts.tolist() == [100]
    assert lost(trace)["perf-data.damaged"] == 1
    assert trace.sources[0].balance.even


@pytest.mark.parametrize(
    "lines",
    [
        [b"[ perf record: Woken up 1 times to write data ]\n", b"[ perf record: Captured and wrote 0.1 MB - ]\n"],
        [b"Terminated\n"],
        [b"Killed\n"],
        ["Speicherzugriffsfehler (für gdb)\r\n".encode(), b"\n", b"[1]+\tDone"],
    ],
)
def test_text_behind_a_stream_is_no_damage(lines: list[bytes], tmp_path: Path) -> None:
    stream = (ROOT / "perf-data" / "pipe" / "input.data").read_bytes()
    alone, trace = trace_of(tmp_path, stream), trace_of(tmp_path, stream + b"".join(lines))
    assert samples(trace) == samples(alone)
    assert lost(trace) == {**lost(alone), "perf-data.message": len(lines)}
    assert trace.sources[0].balance.even


def test_what_is_no_text_behind_a_stream_is_damage(tmp_path: Path) -> None:
    stream = (ROOT / "perf-data" / "pipe" / "input.data").read_bytes()
    for behind in (stream[:9], b"Killed\0\n", b"\xff\xfe\n"):
        assert lost(trace_of(tmp_path, stream + behind))["perf-data.damaged"] == 1


def test_compressed_records_are_counted_where_nothing_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> None:
        raise container.NoZstd

    monkeypatch.setattr(container, "_new_stream", nothing)
    with pytest.raises(NothingRead, match=r"3 x .* zstandard .*\(perf-data.packed\)"):
        trace_of(tmp_path, packed(3))
    with_clocks = (ROOT / "perf-data" / "compressed2" / "input.data").read_bytes()
    with pytest.raises(NothingRead, match=r"6 x .* zstandard .*\(perf-data.packed\)"):
        trace_of(tmp_path, with_clocks)


def test_records_that_cannot_be_unpacked_are_no_empty_recording(tmp_path: Path) -> None:
    """The clocks in the header are no data read."""
    stream = (ROOT / "perf-data" / "compressed2" / "input.data").read_bytes()
    with pytest.raises(NothingRead, match=r"6 x .*\(perf-data.bad_packed\)"):
        trace_of(tmp_path, stream.replace(b"\x28\xb5\x2f\xfd", bytes(4), 1))


def test_compressed_records_hold_what_the_recording_held(tmp_path: Path) -> None:
    pytest.importorskip("zstandard")
    plain, packed_ = ((ROOT / "perf-data" / case / "input.data") for case in ("group_and_switches", "compressed2"))
    assert samples(trace_of(tmp_path, packed_.read_bytes())) == samples(trace_of(tmp_path, plain.read_bytes()))


def test_compressed_records_of_perf(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    maker = Maker()
    for ts in range(100, 200):
        maker.sample(ts, 0x1000 + ts)
    stream = zstandard.ZstdCompressor().compressobj()
    records, maker.records = maker.records, []
    for start in (0, 50):  # as perf does: one stream, flushed at the end of each record
        body = stream.compress(b"".join(records[start : start + 50])) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        maker.record(COMPRESSED, body)
    assert trace_of(tmp_path, maker.data()).samples.ts.tolist() == list(range(100, 200))


def test_a_broken_stream_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def decompress(self, data: bytes) -> bytes:
            raise RuntimeError("no zstd frame")

    monkeypatch.setattr(container, "_new_stream", Broken)
    with pytest.raises(NothingRead, match=r"3 x .*\(perf-data.bad_packed\)"):
        trace_of(tmp_path, packed(3))


# -- chunks ---------------------------------------------------------------------------------------------------------


def test_mappings_cover_each_other() -> None:
    space = AddressSpace()
    space.map(Mapping(100, 200, 0, "a"))
    space.map(Mapping(200, 300, 0, "b"))
    space.map(Mapping(150, 250, 7, "c"))
    assert space.mappings == [Mapping(100, 150, 0, "a"), Mapping(150, 250, 7, "c"), Mapping(250, 300, 50, "b")]
    space.map(Mapping(120, 130, 0, "d"))
    assert [(one.start, one.end, one.name) for one in space.mappings[:3]] == [
        (100, 120, "a"),
        (120, 130, "d"),
        (130, 150, "a"),
    ]
    found = {address: one.name if (one := space.find(address)) else None for address in (99, 100, 125, 149, 299, 300)}
    assert found == {99: None, 100: "a", 125: "d", 149: "a", 299: "b", 300: None}


def test_fields_of_tracepoints() -> None:
    text = """name: probe
ID: 12
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:__rel_loc char[] path;\toffset:8;\tsize:4;\tsigned:0;
\tfield:s8 small;\toffset:12;\tsize:1;\tsigned:1;
\tfield:u16 middle;\toffset:14;\tsize:2;\tsigned:0;
\tfield:const char * where;\toffset:16;\tsize:8;\tsigned:0;
\tfield:unsigned long args[2];\toffset:24;\tsize:16;\tsigned:0;

print fmt: "nothing"
"""
    maker = Maker()
    maker.tracing_data(("probes", text))
    (probe,) = read_tracepoints(maker.features[1]).values()
    raw = struct.pack("<Q", 0) + struct.pack("<I", 4 << 16 | 28) + b"\xff\0\x01\x02" + struct.pack("<Q", 2**63)
    raw += bytes(range(16)) + b"abc\0"
    assert probe.full_name == "probes:probe"
    assert probe.values(raw, "<") == {
        "path": "abc",
        "small": -1,
        "middle": 0x0201,
        "where": 2**63,
        "args": bytes(range(16)).hex(),
    }


# -- symbols of files on this machine ---------------------------------------------------------------------------------


def elf(bits: int, order: str, build_id: bytes, functions: dict[str, tuple[int, int]]) -> bytes:
    """A small ELF file: bytes 0x1000 to 0x2000 are mapped to 0x401000; functions are name: (address, size)."""
    names, symbols = b"\0", b""
    for name, (start, size) in functions.items():
        fields = (len(names), 2, 0, 1, start, size) if bits == 64 else (len(names), start, size, 2, 0, 1)
        symbols += struct.pack(order + ("IBBHQQ" if bits == 64 else "IIIBBH"), *fields)
        names += name.encode() + b"\0"
    note = struct.pack(f"{order}III", 4, len(build_id), 3) + b"GNU\0" + build_id
    wide = bits == 64
    header_size, segment_size, section_size = (64, 56, 64) if wide else (52, 32, 40)
    note_at = header_size + 2 * segment_size
    symbols_at = note_at + len(note)
    names_at = symbols_at + len(symbols)
    sections_at = names_at + len(names)
    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + b"\0" * 9
    word = "Q" if wide else "I"
    numbers = (0, header_size, sections_at, 0, header_size, segment_size, 2, section_size, 3, 0)
    data = ident + struct.pack(f"{order}HHI3{word}I6H", 3, 62, 1, *numbers)
    for kind, at, address, size in ((1, 0x1000, 0x401000, 0x1000), (4, note_at, 0, len(note))):
        middle = (at, address, 0, size, size)
        data += (
            struct.pack(f"{order}IIQQQQQQ", kind, 5, *middle, 4)
            if wide
            else struct.pack(f"{order}8I", kind, *middle, 5, 4)
        )
    data += note + symbols + names
    for kind, at, size, link in ((0, 0, 0, 0), (2, symbols_at, len(symbols), 2), (3, names_at, len(names), 0)):
        data += struct.pack(f"{order}II4{word}II2{word}", 0, kind, 0, 0, at, size, link, 0, 0, 0)
    return data


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("order", ["<", ">"])
def test_functions_are_named_by_the_file_of_the_same_build(tmp_path: Path, bits: int, order: str) -> None:
    library, other = tmp_path / "libx.so", tmp_path / "liby.so"
    functions = {"_ZN2at5earlyEi": (0x401010, 0x10), "late": (0x401030, 0x20), "no_size": (0x401060, 0)}
    library.write_bytes(elf(bits, order, b"B" * 20, functions))
    other.write_bytes(elf(bits, order, b"other build id......", functions))
    maker = Maker(order)
    ids = b""
    for path in (library, other):
        body = maker.pack("i", 7) + b"B" * 20 + bytes([20, 0, 0, 0]) + f"{path}\0".encode()
        ids += maker.pack("IHH", 67, 0, 8 + len(body)) + body
    maker.features[2] = ids
    maker.mmap2(1, 0x7F001000, 0x1000, 0x1000, str(library))
    maker.mmap2(2, 0x7F005000, 0x1000, 0x1000, str(other))
    for number, at in enumerate((0x7F001018, 0x7F001028, 0x7F00104F, 0x7F001060, 0x7F005018)):
        maker.sample(10 + number, at)
    path = tmp_path / "perf.data"
    path.write_bytes(maker.data())
    trace = read(path, format="perf-data", options={"symbols": "true"})
    names = [trace.frames[stack].name for stack in trace.samples.stack.tolist()]
    assert [trace.frames[stack].named for stack in trace.samples.stack.tolist()] == [True, False, True, False, False]
    assert names == ["at::early", "libx.so+0x1028", "late", "libx.so+0x1060", "liby.so+0x1018"]
    assert "1 files of this machine; 1 are absent or of another build" in trace.sources[0].notes[0]
    plain = read(path, format="perf-data")
    assert plain.frames[plain.samples.stack.tolist()[0]].name == "libx.so+0x1018"


@pytest.mark.parametrize("size", [0, 3, 20, 60, 130, 200])
def test_a_cut_elf_file_names_nothing(tmp_path: Path, size: int) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(elf(64, "<", b"B" * 20, {"early": (0x401010, 0x10)})[:size])
    assert functions_of(path, b"B" * 20) is None
