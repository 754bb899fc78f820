"""The Chrome trace importer against damage, odd chunk boundaries and large inputs."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traceconv.errors import MalformedInput, TraceconvError, UsageError
from traceconv.importers import _chrome_json
from traceconv.importers.chrome_trace import ChromeTrace
from traceconv.ir.builder import Builder
from traceconv.ir.trace import SourceInfo, Trace
from traceconv.registry import configure
from traceconv.source import Source

GOLDEN = Path(__file__).parents[2] / "golden" / "chrome-trace"
CASES = sorted(path.name for path in GOLDEN.iterdir())
SMALL = [case for case in CASES if (GOLDEN / case / "input.json").stat().st_size < 4000]
FULL_CHUNK = _chrome_json.CHUNK_BYTES


def read(path: Path, **options: str) -> Trace:
    out = Builder(SourceInfo(path.name, ChromeTrace.name), ChromeTrace.clock)
    configure(ChromeTrace, options).read(Source(path), out)
    return out.finish()


def read_text(tmp_path: Path, text: str | bytes) -> Trace:
    path = tmp_path / "trace.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path)


def rows(trace: Trace) -> list[Any]:
    """The slices, instants and counters with what they mean, in order of the file."""
    found: list[Any] = []
    for table in (trace.slices, trace.instants):
        for i, origin in enumerate(table.origin.tolist()):
            args = trace.args.get(int(table.args_at[i]), int(table.args_len[i]))
            name = trace.strings[table.name[i]].replace(", ", ",").replace(": ", ":")  # of names that are no text
            dur = int(trace.slices.dur[i]) if table is trace.slices else -1
            value = _chrome_json.decode_json(args) if args else None
            found.append((origin, int(table.ts[i]), dur, int(table.track[i]), name, value))
    for i, origin in enumerate(trace.counters.origin.tolist()):
        found.append((origin, int(trace.counters.ts[i]), int(trace.counters.track[i]), float(trace.counters.value[i])))
    return sorted(found, key=lambda row: (row[0], row[1:3], str(row)))


def summary(trace: Trace) -> Any:
    balance = trace.sources[0].balance
    counts = {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}
    tracks = [(track.kind, track.name, track.parent, track.pid, track.tid) for track in trace.tracks]
    return rows(trace), tracks, trace.metadata, balance.read, balance.written, dict(balance.skipped), counts


@pytest.mark.parametrize("case", CASES)
def test_chunk_boundaries_do_not_matter(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = GOLDEN / case / "input.json"
    whole = summary(read(path))
    for size in (64, 100, 257, 1000, 4096):
        monkeypatch.setattr(_chrome_json, "CHUNK_BYTES", size)
        assert summary(read(path)) == whole, size


@pytest.mark.parametrize("case", SMALL)
def test_cut_anywhere(case: str, tmp_path: Path) -> None:
    data = (GOLDEN / case / "input.json").read_bytes()
    for end in range(0, len(data), max(1, len(data) // 150)):
        try:
            assert read_text(tmp_path, data[:end]).sources[0].balance.even
        except TraceconvError:
            assert end < 8


PIECES = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b'{"ph":"X"', b"},{", b"1e999", b"\xff", b'{"traceEvents":[']


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    case=st.sampled_from(SMALL),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 20), st.sampled_from(PIECES) | st.binary(max_size=4))),
)
def test_damage_never_raises(case: str, edits: list[tuple[float, int, bytes]], tmp_path: Path) -> None:
    data = (GOLDEN / case / "input.json").read_bytes()
    for place, removed, inserted in edits:
        at = int(place * len(data))
        data = data[:at] + inserted + data[at + removed :]
    try:
        trace = read_text(tmp_path, data)
    except TraceconvError:
        return
    assert trace.sources[0].balance.even


def event(number: int, name: str = "op", args: str = '{"a":[{"b":1},{"c":2}]}') -> str:
    return f'{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":{number * 10}.125,"dur":2.5,"args":{args}}}'


DAMAGES = {
    "quotes": ",".join(event(i, 'a "b" c') for i in range(20_000)),
    "NaN": ",".join(event(i, args='{"x":NaN}') for i in range(20_000)),
    "mismatched": ",".join(event(i, args='{"x":[1}') for i in range(20_000)),
    "unclosed": ",".join(event(i)[:-1] for i in range(20_000)),
    "unclosed list": ",".join(event(i, args='{"x":[') for i in range(20_000)),
    "garbage": ",".join(event(i) + " garbage" for i in range(20_000)),
    "one per line": "\n".join(event(i) for i in range(20_000)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_many_damaged_events_take_linear_time(damage: str, tmp_path: Path) -> None:
    """About 100 us for each; a reader that looks at the rest of the file for each would take minutes."""
    text = DAMAGES[damage]
    start = time.process_time()
    trace = read_text(tmp_path, "[" + text + "]")
    took = time.process_time() - start
    balance = trace.sources[0].balance
    assert balance.even
    assert balance.read >= 20_000
    assert took < 15


def test_repaired_events_are_kept(tmp_path: Path) -> None:
    trace = read_text(tmp_path, "[" + ",".join([event(0), event(1, 'a "b" c'), event(2)]) + "]")
    assert [row[4] for row in rows(trace)] == ["op", 'a "b" c', "op"]


def test_an_event_without_its_end_costs_only_itself(tmp_path: Path) -> None:
    events = [event(i) if i % 10 else event(i)[:-1] for i in range(100)]
    trace = read_text(tmp_path, "[" + ",".join(events) + "]")
    assert len(trace.slices.ts) == 90


@pytest.mark.parametrize("extra", ["", '"n":NaN,'])
def test_args_of_five_megabytes(extra: str, tmp_path: Path) -> None:
    value = ["},{"] * 700_000
    big = event(1, args="{" + extra + '"x":' + json.dumps(value) + "}")
    trace = read_text(tmp_path, "[" + ",".join([event(0), big, event(2)]) + "]")
    found = rows(trace)
    assert len(found) == 3
    assert found[1][-1]["x"] == value


def test_top_level_number_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '{"traceEvents":[' + event(1) + '],"baseTimeNanoseconds":1700000000123456789}'
    for size in range(64, 170):
        monkeypatch.setattr(_chrome_json, "CHUNK_BYTES", size)
        assert read_text(tmp_path, text).snapshots[0].other_ts == 1700000000123456789


def test_broken_value_beside_the_events_costs_only_itself(tmp_path: Path) -> None:
    trace = read_text(tmp_path, '{"otherData":{"x":[1}},"traceEvents":[' + event(1) + "," + event(2) + "]}")
    assert len(trace.slices.ts) == 2
    assert trace.sources[0].balance.skipped.total() == 1


@pytest.mark.parametrize("ts", ["9999999999999999", "9999999999999999999", "-9999999999999999.125", "4611686018427388"])
def test_times_out_of_range_are_skipped(ts: str, tmp_path: Path) -> None:
    trace = read_text(tmp_path, '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":' + ts + ',"dur":1,"args":{}}]')
    assert trace.sources[0].balance.skipped["skipped (chrome.bad_time)"] == 1


def test_times_are_exact(tmp_path: Path) -> None:
    trace = read_text(tmp_path, '[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1795245461050697.253,"dur":0.001}]')
    assert (int(trace.slices.ts[0]), int(trace.slices.dur[0])) == (1795245461050697253, 1)


def test_samples_beside_the_events_are_exact(tmp_path: Path) -> None:
    trace = read_text(tmp_path, '{"traceEvents":[],"samples":[{"tid":1,"ts":1795245461050697.253,"name":"cycles"}]}')
    assert trace.samples.ts.tolist() == [1795245461050697253]


@pytest.mark.parametrize("text", ["", "   ", "hello", "42", '"text"', "null"])
def test_what_is_no_trace_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match=r"expected \{ or"):
        read_text(tmp_path, text)


def test_unknown_unit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("[]")
    with pytest.raises(UsageError, match="ts_unit"):
        read(path, ts_unit="minutes")
