"""The Chrome trace importer against damage, odd chunk boundaries and large inputs."""

from __future__ import annotations

import io
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import traceconv
from tests import GROWTH_S, oracle
from tests.kernels import using
from tests.kernels import without as without_kernel
from traceconv import kernel
from traceconv.errors import MalformedInput, TraceconvError, UsageError
from traceconv.families.chrome import event as _chrome_event
from traceconv.families.chrome import json_reader as _chrome_json
from traceconv.families.chrome.document import ChromeTrace
from traceconv.families.chrome.event import Hopeless
from traceconv.families.registry import configure
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.numbers import decode_json
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Slices, Trace

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


@pytest.mark.parametrize("size", [64, 101, FULL_CHUNK])
def test_the_place_of_bytes_that_are_not_utf8(tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of each chunk that was read, also where the chunk begins inside of a character."""
    monkeypatch.setattr(_chrome_json, "CHUNK_BYTES", size)
    event = b'{"ph":"X","name":"%b","pid":1,"tid":1,"ts":0,"dur":1}'
    for name in (b"a\xff", b"a\xc3\xa9\xff\xff", b"\xe2\x82", "é".encode() * 60 + b"\x80"):
        text = b'{"traceEvents":[' + event % "ö".encode() + b"," + event % name + b"]}"
        trace = read_text(tmp_path, text)
        (found,) = [entry for entry in trace.sources[0].diagnostics if entry.code.name == "chrome.not_utf8"]
        with pytest.raises(UnicodeDecodeError) as error:
            text.decode()
        assert found.places[0] == f"trace.json:byte {error.value.start}"


@pytest.mark.parametrize(
    ("written", "base", "counted"),
    [
        ("1700000000123456789", 1700000000123456789, 0),
        ('"1700000000123456789"', 1700000000123456789, 0),
        ("1.7e18", None, 1),
        ("1700000000123456789.0", None, 1),
        ('"yesterday"', None, 1),
    ],
)
def test_a_base_time_is_a_whole_number(tmp_path: Path, written: str, base: int | None, counted: int) -> None:
    """A double has lost the last digits: what is left of them is not taken in silence."""
    text = '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1}],"baseTimeNanoseconds":%s}'
    trace = read_text(tmp_path, text % written)
    assert [snap.other_ts for snap in trace.snapshots] == ([base] if base is not None else [])
    found = {entry.code.name: entry.count for entry in trace.sources[0].diagnostics}
    assert found.get("chrome.bad_base_time", 0) == counted


def rows(trace: Trace) -> list[Any]:
    """The slices, instants and counters with what they mean, in order of the file."""
    found: list[Any] = []
    for table in (trace.slices, trace.instants):
        for i, origin in enumerate(table.origin.tolist()):
            args = trace.args.get(int(table.args_at[i]), int(table.args_len[i]))
            name = trace.strings[table.name[i]].replace(", ", ",").replace(": ", ":")  # of names that are not text
            dur = int(trace.slices.dur[i]) if isinstance(table, Slices) else -1
            value = decode_json(args) if args else None
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
    for end in range(0, len(data), max(1, len(data) // 40)):
        try:
            assert read_text(tmp_path, data[:end]).sources[0].balance.even
        except TraceconvError:
            assert end < 8


CHUNKS = [b'"', b"{", b"}", b"[", b"]", b",", b":", b"\\", b'{"ph":"X"', b"},{", b"1e999", b"\xff", b'{"traceEvents":[']


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    case=st.sampled_from(SMALL),
    edits=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 20), st.sampled_from(CHUNKS) | st.binary(max_size=4))),
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


DAMAGES: dict[str, Callable[[int], str]] = {
    "quotes": lambda i: event(i, 'a "b" c') + ",",
    "NaN": lambda i: event(i, args='{"x":NaN}') + ",",
    "mismatched": lambda i: event(i, args='{"x":[1}') + ",",
    "unclosed": lambda i: event(i)[:-1] + ",",
    "unclosed list": lambda i: event(i, args='{"x":[') + ",",
    "garbage": lambda i: event(i) + " garbage,",
    "one per line": lambda i: event(i) + "\n",
}


@pytest.mark.parametrize("damage", ["quotes", "unclosed"])
def test_many_damaged_events_take_linear_time(damage: str, tmp_path: Path) -> None:
    """About 100 us for each; a reader that looks at the rest of the file for each would take minutes."""
    text = "".join(map(DAMAGES[damage], range(20_000)))
    start = time.process_time()
    trace = read_text(tmp_path, "[" + text + "]")
    took = time.process_time() - start
    balance = trace.sources[0].balance
    assert balance.even
    assert balance.read >= 20_000
    assert took < GROWTH_S


def without(number: int, text: str) -> str:
    """An event that lacks a character, the first of its kind."""
    return event(number).replace(text, text[:-1], 1)


BROKEN: dict[str, Callable[[int], str]] = {
    "name without closing quote": lambda i: without(i, '"op"'),
    "last name without closing quote": lambda i: f'{{"ph":"X","pid":1,"tid":1,"ts":{i},"dur":1,"name":"op}}',
    "key without closing quote": lambda i: without(i, '"pid"'),
    "without final brace": lambda i: event(i)[:-1],
    "without final braces": lambda i: event(i)[:-2],
    "without final bracket": lambda i: event(i, args='{"x":[1'),
    "lists that begin lists": lambda i: '{"name":"op","args":{"x":[1,{"y":[',
}


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], tuple[int, Trace]]:
    """Reads a text, and counts the bytes that are decoded, repaired or copied for it: some of them several times."""
    count = 0

    def decoding(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
        def counted(text: bytes) -> Any:
            nonlocal count
            count += len(text)
            return decode(text)

        return counted

    repair, fill = _chrome_json.repair_value, _chrome_json.JsonBuffer.fill

    def repairing(data: bytes, pos: int, repairs: Counter[str]) -> tuple[bytes, int]:
        nonlocal count
        end = len(data)
        try:
            value, end = repair(data, pos, repairs)
        except Hopeless as error:
            end = error.at
            raise
        finally:
            count += end - pos
        return value, end

    def filling(buffer: _chrome_json.JsonBuffer, at_least: int = 0) -> bool:
        nonlocal count
        is_filled = fill(buffer, at_least)
        count += len(buffer.data) if is_filled else 0
        return is_filled

    for name in ("decode_events", "decode_members", "decode_member"):
        monkeypatch.setattr(_chrome_json, name, decoding(getattr(_chrome_json, name)))
    monkeypatch.setattr(_chrome_json, "repair_value", repairing)
    monkeypatch.setattr(_chrome_json.JsonBuffer, "fill", filling)

    def read(text: str) -> tuple[int, Trace]:
        nonlocal count
        count = 0
        trace = read_text(tmp_path, text)
        return count, trace

    return read


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [
        ('{"ranks": [0, 1,\n 2], "size" : 1.50e3, "name": "a \\u00e9\\n}"}', True),
        ('[[], {}, "", null, true, -0]', True),
        ('{"ph": "X", "args": {"a": 1}}', True),
        ('{"more": [{"ph": "X", "ts": 1}]}', False),
        ('{"size": NaN}', False),
        ('{"name": "a \\ud800"}', False),
        ('{"name": "a\tb"}', False),
        ('{"ranks": [0, 1,], "stray": "comma"}', False),
    ],
)
def test_a_valid_value_is_what_repair_returns(value: str, is_valid: bool) -> None:
    buffer = _chrome_json.JsonBuffer(
        io.BytesIO(f'{value}, "next": 1}}'.encode()), "trace.json", Builder(SourceInfo("a", "test"), ChromeTrace.clock)
    )
    buffer.fill()
    found = buffer.valid_value()
    assert (found is not None) is is_valid
    assert found is None or found == buffer.value_here(Counter())


@pytest.mark.parametrize("damage", DAMAGES)
def test_many_damaged_events_are_looked_at_once(damage: str, looked_at: Callable[[str], tuple[int, Trace]]) -> None:
    few, many = (looked_at("[" + "".join(map(DAMAGES[damage], range(count))) + "]") for count in (100, 400))
    assert 0 < many[0] < 8 * few[0]
    balance = many[1].sources[0].balance
    assert balance.even
    assert balance.read >= 400


@pytest.mark.parametrize("broken", BROKEN)
def test_many_broken_events_take_linear_time(broken: str, looked_at: Callable[[str], tuple[int, Trace]]) -> None:
    """Four times as many take 4 to 5 times as many bytes that are looked at; it would be 16 times."""
    few, many = (looked_at("[" + ",\n".join(BROKEN[broken](i) for i in range(count)) + "]") for count in (100, 400))
    assert 0 < many[0] < 8 * few[0]
    balance = many[1].sources[0].balance
    assert (balance.read, balance.even) == (400, True)


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_event_costs_only_itself(broken: str, tmp_path: Path) -> None:
    events = [BROKEN[broken](i) if i % 10 == 5 else event(i, f"whole {i}") for i in range(100)]
    trace = read_text(tmp_path, "[" + ",\n".join(events) + "]")
    balance = trace.sources[0].balance
    assert (balance.read, balance.even) == (100, True)
    assert {row[4] for row in rows(trace)} >= {f"whole {i}" for i in range(100) if i % 10 != 5}
    assert balance.skipped.total() <= 10


def test_a_long_repaired_event_after_a_broken_one_is_kept(tmp_path: Path) -> None:
    long = event(2, args='{"x":NaN,"y":"' + "y" * 200_000 + '"}')
    trace = read_text(tmp_path, "[" + ",".join([event(0)[:-1], long, event(3)]) + "]")
    assert len(trace.slices.ts) == 2


def test_a_name_without_closing_quote_is_kept(tmp_path: Path) -> None:
    trace = read_text(tmp_path, "[" + without(1, '"op"') + "," + event(2) + "]")
    assert rows(trace)[0][1:] == rows(read_text(tmp_path, "[" + event(1) + "]"))[0][1:]


DOCUMENTS: dict[str, Callable[[int], str]] = {
    "arrays": lambda n: "\n".join("[" + event(i) + "]" for i in range(n)),
    "objects": lambda n: "\n".join('{"traceEvents":[' + event(i) + "]}" for i in range(n)),
    "arrays with a defect": lambda n: "\n".join("[" + event(i, args='{"x":NaN}') + "]" for i in range(n)),
    "one per line": lambda n: "\n".join(event(i) for i in range(n)),
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_a_document_costs_the_same_whatever_follows(kind: str, looked_at: Callable[[str], tuple[int, Trace]]) -> None:
    """If each document looked at all that follows, it would be 500 times the size of the file."""
    text = DOCUMENTS[kind](500) + " " * 3_900_000
    looked, trace = looked_at(text)
    assert len(trace.slices.ts) == 500
    assert len(text) <= looked < 10 * len(text)


def test_a_sound_file_is_read_in_whole_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a sound event was read alone")

    monkeypatch.setattr(_chrome_json.ChromeReader, "_slow_batch", never)
    for count in (1, 10, 1000, 100_000):
        events = ",\n".join(event(i) for i in range(count))
        for text in (f"[{events}]", f"[{events}\n]\n", f'{{"traceEvents":[{events}],"displayTimeUnit":"ms"}}'):
            assert len(read_text(tmp_path, text).slices.ts) == count


DECODERS = [_chrome_event.decode_events, _chrome_event.decode_members, _chrome_event.decode_member]


@pytest.mark.parametrize("decode", DECODERS)
@pytest.mark.parametrize("more", ["]", "}", " ,", "\n{", "[", "x", "\0"])
def test_msgspec_says_where_a_value_ends(decode: Callable[[bytes], object], more: str) -> None:
    value = b'{"ph":"X"}' if decode is _chrome_event.decode_member else b'[{"ph":"X"}]'
    with pytest.raises(msgspec.DecodeError) as caught:
        decode(value + more.encode() + b" and so on")
    found = _chrome_json._TRAILING.search(str(caught.value))
    assert found is not None
    assert (value + more.encode())[: int(found[1]) - 1].rstrip() == value


@pytest.mark.parametrize("decode", DECODERS)
def test_msgspec_says_where_a_text_breaks(decode: Callable[[bytes], object]) -> None:
    opened = b"" if decode is _chrome_event.decode_member else b"["
    for text, at in ((b'{"ph":"X","ts":1 "dur":2}', 18), (b'{"ph":"X",]', 11), (b'{"ph":"X","ts":NaN}', 16)):
        with pytest.raises(msgspec.DecodeError) as caught:
            decode(opened + text + b" " * 100)
        found = _chrome_json._POSITION.search(str(caught.value))
        assert found is not None
        assert abs(int(found[1]) - len(opened) - at) <= 1
        assert not _chrome_json._fails_at_end(caught.value, len(text) + 100)
    whole = opened + b'{"ph":"X","ts":-1.5e1,"args":{"a":[true,"\\u00e4"]}}'
    for end in range(len(opened), len(whole)):
        with pytest.raises(msgspec.DecodeError) as caught:
            decode(whole[:end])
        assert _chrome_json._fails_at_end(caught.value, end), whole[:end]


def document(number: int, **top: object) -> str:
    return f'{{"traceEvents":[{event(number)}],' + json.dumps(top)[1:]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"baseTimeNanoseconds": 10**18}, {"baseTimeNanoseconds": 10**18 + 1}),
        (
            {"viztracer_metadata": {"version": "1", "baseTimeNanoseconds": 10**18}},
            {"viztracer_metadata": {"version": "1", "baseTimeNanoseconds": 10**18 + 1}},
        ),
    ],
)
def test_documents_with_different_base_times_are_refused(
    first: dict[str, object], second: dict[str, object], tmp_path: Path
) -> None:
    text = document(1, **first) + "\n" + document(2, **second)
    with pytest.raises(MalformedInput, match=r"trace\.json:byte \d+: two documents with different base") as caught:
        read_text(tmp_path, text)
    assert "split the file" in caught.value.hint


def test_of_values_of_several_documents_the_first_is_kept(tmp_path: Path) -> None:
    top = {"baseTimeNanoseconds": 10**18, "host": {"name": "a", "cores": 2}, "note": "one"}
    again = {"baseTimeNanoseconds": 10**18, "host": {"cores": 2, "name": "a"}, "note": "two", "more": 1}
    trace = read_text(tmp_path, document(1, **top) + document(2, **again))
    (entry,) = [entry for entry in trace.sources[0].diagnostics if entry.code is _chrome_json.REPEATED_VALUE]
    assert entry.count == 1
    assert entry.places[0].endswith(": note")
    assert (trace.metadata["note"], trace.metadata["more"]) == ("one", 1)


def test_repaired_events_are_kept(tmp_path: Path) -> None:
    trace = read_text(tmp_path, "[" + ",".join([event(0), event(1, 'a "b" c'), event(2)]) + "]")
    assert [row[4] for row in rows(trace)] == ["op", 'a "b" c', "op"]


@pytest.mark.parametrize(("kernel_there", "count"), [(True, 2), (True, 17_000), (False, 2), (False, 300)])
@pytest.mark.parametrize(
    ("odd", "missing", "stray"),
    [
        (",", 0, 0),
        (" \r\n,\n" + " " * 30, 0, 0),
        (",,", 0, 1),
        (" ,\n  ,,\n", 0, 2),
        ("," + " " * 30 + ",", 0, 1),
        ("", 1, 0),
        ("\n", 1, 0),
        (" " * 30, 1, 0),
    ],
)
def test_commas_between_events_are_one_or_counted(
    odd: str, missing: int, stray: int, count: int, kernel_there: bool, tmp_path: Path
) -> None:
    """Both ways of reading, within what is read at once and where that ends."""
    if kernel_there and kernel.module("scan") is None:
        pytest.skip("the kernel is not compiled")
    events = [event(i) for i in range(count)]
    at = count // 2
    middle = ",\n ".join(events[:at]) + odd + ",\n ".join(events[at:])
    for text in (f"[{middle}]", f'{{"traceEvents":[{middle},]}}'):
        with nullcontext() if kernel_there else using("scan", None):
            trace = read_text(tmp_path, text)
        assert trace.counts()["slices"] == count
        found = [problem for problem in trace.sources[0].diagnostics if problem.code is _chrome_json.REPAIRED]
        assert sum(problem.count for problem in found) == missing + stray
        said = [f"{missing} x missing comma"] if missing else [f"{stray} x stray comma"] if stray else []
        assert [problem.places[0] for problem in found] == said


def test_commas_at_every_end_of_a_chunk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_chrome_json, "CHUNK_BYTES", 64)
    for separator, expected in ((",", 0), (" , ", 0), ("", 99), (",\n,", 99)):
        trace = read_text(tmp_path, "[" + separator.join(event(i) for i in range(100)) + "]")
        found = [problem.count for problem in trace.sources[0].diagnostics if problem.code is _chrome_json.REPAIRED]
        assert (trace.counts()["slices"], sum(found)) == (100, expected)


def test_events_without_brackets_need_no_commas(tmp_path: Path) -> None:
    for separator in ("\n", ",\n"):
        trace = read_text(tmp_path, separator.join(event(i) for i in range(10)))
        assert not any(problem.code is _chrome_json.REPAIRED for problem in trace.sources[0].diagnostics)


def test_an_event_without_its_end_costs_only_itself(tmp_path: Path) -> None:
    events = [event(i) if i % 10 else event(i)[:-1] for i in range(100)]
    trace = read_text(tmp_path, "[" + ",".join(events) + "]")
    assert len(trace.slices.ts) == 90


@pytest.mark.parametrize("extra", ["", '"n":NaN,'])
def test_args_of_megabytes(extra: str, tmp_path: Path) -> None:
    value = ["},{"] * 350_000
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
    with pytest.raises(MalformedInput, match=r"no \{ or \[ at the start"):
        read_text(tmp_path, text)


def test_unknown_unit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text("[]")
    with pytest.raises(UsageError, match="ts_unit"):
        read(path, ts_unit="minutes")


@pytest.mark.parametrize(("options", "asks"), [({}, True), ({"ts_unit": "ms"}, False)])
def test_a_long_trace_asks_for_its_unit_unless_it_is_stated(
    options: dict[str, str], asks: bool, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_text('[{"ph":"X","name":"a","pid":1,"tid":1,"ts":0,"dur":1e12}]')
    assert bool(read(path, **options).sources[0].notes) == asks


def test_a_file_without_its_beginning_keeps_the_whole_events(tmp_path: Path) -> None:
    text = '"cat":"op"},' + ",".join(event(number) for number in range(1, 6)) + "]}"
    path = tmp_path / "tail.json"
    path.write_text(text)
    trace = read(path)
    assert len(trace.slices.ts) == 5
    assert trace.sources[0].balance.skipped.total() == 1


def test_a_file_without_any_event_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.json"
    path.write_text("no JSON at all\n")
    with pytest.raises(MalformedInput, match="not JSON"):
        read(path)


@pytest.mark.parametrize(("between", "count"), [('1,"x",null,[2]', 4), ("1", 1), ("7,,8", 2), ("[" * 5000, 1)])
def test_values_that_are_no_events_are_counted_one_by_one(between: str, count: int, tmp_path: Path) -> None:
    trace = read_text(tmp_path, f"[{event(1)},{between},{event(2)}]")
    assert len(trace.slices.ts) == 2
    assert trace.sources[0].balance.skipped.total() == count


def test_the_balance_is_the_same_without_the_kernel(tmp_path: Path) -> None:
    text = (
        '[{"ph":"s","name":"f","ts":1,"pid":1,"tid":1},'
        + f"{event(1)},7,"
        + '{"ph":"X","pid":1,"tid":1},'
        + f"{event(2)}]"
    )
    described = [read_text(tmp_path, text).sources[0].balance.describe()]
    with without_kernel():
        described.append(read_text(tmp_path, text).sources[0].balance.describe())
    assert described[0] == described[1]
    assert described[0].count("skipped") == 3


def test_a_flow_that_starts_before_the_only_slice_of_its_track(tmp_path: Path) -> None:
    step = '"name":"f","cat":"f","id":1,"pid":1,"tid":1'
    flow = f'{{"ph":"s",{step},"ts":0}},{{"ph":"f","bp":"e",{step},"ts":10.125}}'
    trace = read_text(tmp_path, f"[{event(1)},{flow}]")
    assert (len(trace.slices.ts), len(trace.flows.from_slice)) == (1, 0)


@pytest.mark.parametrize("with_kernel", [True, False])
@pytest.mark.parametrize("rare", [0, 1])
def test_a_flow_joins_the_later_one_of_equal_slices(rare: int, with_kernel: bool, tmp_path: Path) -> None:
    """The later one is drawn inside of the other; `rare` is the one that is no plain event."""
    pair = [f'{{"ph":"X","name":"{n}","pid":1,"tid":1,"ts":1,"dur":5}}' for n in range(2)]
    pair[rare] = pair[rare].replace('"dur"', '"extra":1,"dur"')
    step = '"cat":"c","name":"f","id":1,"pid":1'
    flow = [f'{{"ph":"s",{step},"tid":1,"ts":3}}', f'{{"ph":"f","bp":"e",{step},"tid":2,"ts":12}}']
    end = '{"ph":"X","name":"end","pid":1,"tid":2,"ts":11,"dur":5}'
    with nullcontext() if with_kernel else without_kernel():
        trace = read_text(tmp_path, f"[{','.join([*pair, end, *flow])}]")
    ends = trace.slices.name[[trace.flows.from_slice[0], trace.flows.to_slice[0]]].tolist()
    assert [trace.strings[name] for name in ends] == ["1", "end"]


@pytest.mark.parametrize("with_kernel", [True, False])
def test_ids_of_flows_are_told_apart_by_their_spelling(tmp_path: Path, with_kernel: bool) -> None:
    """A number and the same in quotes are one id; all else is compared as it is written, however long it is."""
    ids = ['"0x7"', "7", '"07"', '"-7"', '"seven"', "0", '"00"', '""', "9" * 18, "9" * 19, '"%s8"' % ("9" * 18)]
    slices = [f'{{"ph":"X","name":"{n}","pid":1,"tid":1,"ts":{10 * n},"dur":5}}' for n in range(2 * len(ids) + 1)]
    flows = []
    for n, id in enumerate(ids):
        other = f'"{id}"' if id == "7" else id
        for phase, at, text in (("s", n, id), ("f", 2 * len(ids) - n, other)):
            flows.append(
                f'{{"ph":"{phase}","bp":"e","cat":"c","name":"f","id":{text},"pid":1,"tid":1,"ts":{10 * at + 1}}}'
            )
    alone = '{"ph":"s","cat":"c","name":"f","id":"007","pid":1,"tid":1,"ts":1}'
    with nullcontext() if with_kernel else without_kernel():
        trace = read_text(tmp_path, "[" + ",".join([*slices, *flows[::-1], alone]) + "]")
    found = {(int(one), int(other)) for one, other in zip(trace.flows.from_slice, trace.flows.to_slice, strict=True)}
    assert found == {(n, 2 * len(ids) - n) for n in range(len(ids))}
    assert len(trace.flows.from_slice) == len(ids)
    (unpaired,) = [entry for entry in trace.sources[0].diagnostics if entry.code.name == "chrome.flow_unpaired"]
    assert "s of flow c 007" in unpaired.places[0]


def test_a_repair_that_came_to_nothing_is_not_counted(tmp_path: Path) -> None:
    """The first event has a bare word, and a bracket that closes another one: it is lost, and not repaired as well."""
    path = tmp_path / "trace.json"
    path.write_text(
        '[{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1,"args":{"x":NaN,"s":3 "y":[1}]},\n'
        '{"name":"b","ph":"X","ts":3,"dur":1,"pid":1,"tid":1}]'
    )
    trace = read(path)
    assert [trace.strings[name] for name in trace.slices.name.tolist()] == ["b"]
    assert [one.code.name for one in trace.sources[0].diagnostics] == ["chrome.garbled"]


@pytest.mark.parametrize("ending", ["pftrace", "json"])
def test_a_flow_back_in_time_is_said(tmp_path: Path, ending: str) -> None:
    """Perfetto draws a flow from the slice that began first, whatever the file says."""
    events: list[dict[str, Any]] = [
        {"name": "wait", "ph": "X", "pid": 1, "tid": 1, "ts": 10, "dur": 90},
        {"name": "kernel", "ph": "X", "pid": 2, "tid": 1, "ts": 30, "dur": 20},
        {"name": "done", "ph": "s", "id": 1, "cat": "d2h", "pid": 2, "tid": 1, "ts": 45},
        {"name": "done", "ph": "f", "bp": "e", "id": 1, "cat": "d2h", "pid": 1, "tid": 1, "ts": 60},
        {"name": "go", "ph": "s", "id": 2, "cat": "launch", "pid": 1, "tid": 1, "ts": 20},
        {"name": "go", "ph": "f", "id": 2, "cat": "launch", "pid": 2, "tid": 1, "ts": 30},
    ]
    path = tmp_path / "input.json"
    path.write_text(json.dumps(events))
    merged = traceconv.merge([path], tmp_path / f"out.{ending}")
    (said,) = (one for one in merged.trace.sources[0].diagnostics if one.code.name == "flow.backward")
    assert (said.count, said.places) == (1, ["'kernel' to 'wait'"])
    with oracle.open_trace(tmp_path / f"out.{ending}") as tp:
        drawn = oracle.rows(
            tp,
            "select a.name as earlier, b.name as later from flow join slice a on a.id = slice_out "
            "join slice b on b.id = slice_in",
        )
        assert [tuple(row.values()) for row in drawn] == [("wait", "kernel"), ("wait", "kernel")]
