"""The compiled kernel, its source uncompiled, and the writer without it give the same bytes, whatever the args are."""

from __future__ import annotations

import io
import json
import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from tests.golden import Case, cases
from tests.kernels import using, variants
from traceconv.families.perfetto import writer as perfetto_proto
from traceconv.families.perfetto.writer import Limits, PerfettoProto
from traceconv.model.args import Args
from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.layout import lay_out
from traceconv.model.numbers import LIMIT_NS
from traceconv.model.source_info import SourceInfo
from traceconv.model.trace import Level, Trace
from traceconv.writers import order as _order

T = 1_795_245_457_236_000_123
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
DEFAULT = Limits()
TIGHT = Limits(max_keys=3, max_texts_per_key=2, max_text_bytes=60, text_overhead=8)


#: The ways to encode: without kernel, with its source in the interpreter, and compiled, where it is.
KERNELS: list[ModuleType | None] = [None, *variants("encode").values()]


def written(trace: Trace, kernel: ModuleType | None, limits: Limits = DEFAULT, block: int = 1 << 14) -> bytes:
    sink = io.BytesIO()
    with pytest.MonkeyPatch.context() as patch, using("encode", kernel):
        patch.setattr(perfetto_proto, "_LIMITS", limits)
        patch.setattr(_order, "_BLOCK", block)
        PerfettoProto().write(trace, sink)
    return sink.getvalue()


def same_bytes(trace: Trace, limits: Limits = DEFAULT, block: int = 1 << 14) -> bytes:
    expected, *others = [written(trace, kernel, limits, block) for kernel in KERNELS]
    for other in others:
        assert other == expected
    return expected


def trace_of(all_args: list[bytes], *, only_slices: bool = False) -> Trace:
    """One event of each kind for each args, on tracks with and without texts; or slices and their flows only."""
    out = Builder(SourceInfo("a.json", "test"), REALTIME)
    process = out.tracks.process("p", pid=1)
    thread, other = out.tracks.thread(process, 1, "t"), out.tracks.add("other", process)
    values = out.tracks.counter("values", process)
    before = None
    for number, args in enumerate(all_args):
        at = T + 1000 * number
        slice_id = out.slice(thread, at, 900, "launch" if number % 3 else "", "cat" if number % 2 else "", args=args)
        if before is not None:
            out.flow(before, slice_id)
        before = slice_id
        if only_slices:
            continue
        out.instant(other, at + 500, f"instant {number % 2}", args=args)
        out.counter(values, at, number * 0.5 if number % 2 else -number)
        out.log(thread, at + 10, f"line {number}", Level.INFO, "a.cpp:7", args=args)
        out.slice(other, at + 600, 0, "nothing")
    return lay_out(out.finish())


# -- what args may look like ------------------------------------------------------------------------------------------

KEYS = st.sampled_from(["a", "b", "Input Dims", "", "ключ", 'quo"te', "a\\b", "\n", "External id", "c"])
TEXTS = st.one_of(st.sampled_from(["", "float", "x" * 200, "пример", "🎛", "\ud800", "a\\b", '"', "\x00"]), st.text())
NUMBERS = st.one_of(
    st.integers().map(str),
    st.integers(-(2**63) - 2, -(2**63) + 2).map(str),
    st.integers(2**63 - 2, 2**64 + 2).map(str),
    st.integers(0, 40).map(lambda zeros: "1" + "0" * zeros),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][-+]?[0-9]{1,4})?", fullmatch=True),
    st.sampled_from(["-0", "0", "-0.0", "1e400", "-1E+400", "1e-400", "0." + "0" * 30 + "1", "1" * 6000, "9" * 19]),
)
LITERALS = st.sampled_from(["true", "false", "null", "{}", "[]", "[ ]", "{\n}", "[[]]", '[{"a":{}}]'])
BLANKS = st.sampled_from(["", "", "", " ", "\n  ", "\t\r"])


@st.composite
def _json_text(draw: st.DrawFn, depth: int = 0) -> str:
    """A JSON value, spelled in all ways."""
    choice = draw(st.integers(0, 5 if depth < 3 else 2))
    blank = draw(BLANKS)
    if choice == 0:
        return draw(NUMBERS)
    if choice == 1:
        return json.dumps(draw(TEXTS), ensure_ascii=draw(st.booleans()))
    if choice == 2:
        return draw(LITERALS)
    inner = [draw(_json_text(depth + 1)) for _ in range(draw(st.integers(0, 4)))]
    if choice == 3:
        return f"[{blank}" + f",{blank}".join(inner) + "]"
    return "{" + f"{blank},".join(f"{json.dumps(draw(KEYS))}:{blank}{value}" for value in inner) + "}"


@st.composite
def _object_text(draw: st.DrawFn) -> bytes:
    members = [f"{json.dumps(draw(KEYS), ensure_ascii=draw(st.booleans()))}: {draw(_json_text())}" for _ in range(4)]
    blank = draw(BLANKS)
    return (blank + "{" + blank + f",{blank}".join(members[: draw(st.integers(0, 4))]) + blank + "}").encode(
        errors="surrogatepass"
    )


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    data = bytearray(draw(_object_text()))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(data) - 1))
        data[at : at + draw(st.integers(0, 2))] = draw(
            st.sampled_from([b"", b'"', b"\\", b"\xff", b"\x01", b"}", b"0"])
        )
        if not data:
            return b"{"
    return bytes(data)


@QUICK
@given(
    st.lists(_object_text(), min_size=1, max_size=5), st.sampled_from([DEFAULT, TIGHT]), st.sampled_from([3, 1 << 14])
)
def test_same_bytes(all_args: list[bytes], limits: Limits, block: int) -> None:
    same_bytes(trace_of(all_args * 2), limits, block)


@QUICK
@given(st.lists(_damaged(), min_size=1, max_size=4), st.sampled_from([DEFAULT, TIGHT]), st.booleans())
def test_same_bytes_of_damaged_args(all_args: list[bytes], limits: Limits, only_slices: bool) -> None:
    same_bytes(trace_of(all_args, only_slices=only_slices), limits)


#: Few, so that numbers taken back are soon given again; those with quotes begin like whole members of other args.
CONFUSING_KEYS = st.sampled_from(["x", "y", "args", r"x\":1,\"y", r"x\":1,\"args"])


@st.composite
def _confusing(draw: st.DrawFn) -> bytes:
    keys = draw(st.lists(CONFUSING_KEYS, min_size=1, max_size=3, unique=True))
    return ("{" + ",".join(f'"{key}":1' for key in keys) + draw(st.sampled_from(["}", " bad}"]))).encode()


@pytest.mark.slow
@settings(QUICK, max_examples=150)
@given(st.lists(_confusing(), min_size=3, max_size=8))
@example([b'{"n1":1,"n2":2 bad}', b'{"x\\":1,\\"y":2}', b'{"args":1,"x":1,"y":2}'])
def test_same_bytes_of_keys_with_quotes(all_args: list[bytes]) -> None:
    same_bytes(trace_of(all_args, only_slices=True))


RICH_ARGS = (
    b'{"External id": 12, "cbid": -211, "big": 18446744073709551615, "x": 1.25e-3, "long": 0.1234567890123456789,\n'
    b' "Input Dims": [[32, 64], [], {}, [1.5, true, null, "float"]], "in": {"a": {"b": 1}, "c": "\xd0\xba"}, "t": "t"}'
)


@pytest.mark.parametrize(
    "text",
    [
        r"\"\\\/\b\f\n\r\t",
        r"\u0041\u00e9\u20AC\u20ac\ud83c\udf9b",
        r"\u0000",
        r"\ud83c",
        r"\udf9b\ud83c",
        r"\ud83c\u0041",
        r"\u12",
        r"\x",
        "é\\n€",
        "\\",
    ],
)
def test_same_bytes_of_escapes(text: str) -> None:
    forms = (f'{{"a":"{text}"}}', f'{{"a":["{text}","b{text}"],"b":{{"c":"{text}"}}}}', f'{{"{text}":1}}')
    for limits in (DEFAULT, TIGHT):
        same_bytes(trace_of([form.encode() for form in forms] * 2), limits)


def test_same_bytes_of_more_keys_than_have_numbers() -> None:
    keys = [f"key {number}" for number in range(40)]
    objects = [keys[:12], keys[:25], [*keys[5:15], keys[5]], keys[20:], [keys[0], keys[30], keys[0]]]
    texts = ["{" + ",".join(f'"{key}":["text",{{"{key}":"{key}"}}]' for key in each) + "}" for each in objects]
    same_bytes(trace_of([text.encode() for text in texts] * 2), TIGHT)


def test_cut_at_every_byte() -> None:
    """All cuts stand in one part, so that reading on behind the end would find the rest."""
    out = Builder(SourceInfo("a.json", "test"), REALTIME)
    track = out.tracks.add("t")
    for number in range(len(RICH_ARGS) + 1):
        out.slice(track, T + number, 1, "x", args=RICH_ARGS)
    trace = lay_out(out.finish())
    lengths = trace.slices.args_len.copy()
    lengths[:] = range(len(lengths))
    same_bytes(trace.with_tables(slices=replace(trace.slices, args_len=lengths)))


def test_args_beyond_the_parts() -> None:
    """References that lead nowhere, which no importer makes, are not followed."""
    trace = trace_of([RICH_ARGS] * 8)
    at, length = trace.slices.args_at.copy(), trace.slices.args_len.copy()
    length[1], length[2], at[3] = 1 << 30, len(trace.args), len(trace.args) - 5
    at[4], at[5] = 1 << 40, len(trace.args)
    same_bytes(trace.with_tables(slices=replace(trace.slices, args_at=at, args_len=length)))


@QUICK
@given(
    st.lists(st.one_of(_object_text(), _damaged()), min_size=1, max_size=4),
    st.lists(st.integers(0, 7), min_size=1, max_size=9),
    st.sampled_from([DEFAULT, TIGHT]),
    st.booleans(),
)
@example([b'{"a": "%b"}' % text for text in (b"p", b"q", b"r")] + [b'{"b": "r"}'], [0, 1, 2, 3], TIGHT, False)
def test_same_bytes_of_shared_args(all_args: list[bytes], order: list[int], limits: Limits, cut: bool) -> None:
    """Many events with the same args, at the same place; some may take the beginning of them."""
    out = Builder(SourceInfo("a.json", "test"), REALTIME)
    track = out.tracks.add("t")
    kept = [out.tables.keep_args(args) for args in all_args]
    for number, choice in enumerate(order * 8):
        out.slice(track, T + number, 1, "x", args=all_args[choice % len(kept)])
    trace = lay_out(out.finish())
    at, length = trace.slices.args_at.copy(), trace.slices.args_len.copy()
    for number, choice in enumerate(order * 8):
        at[number], length[number] = kept[choice % len(kept)]
        if cut and number % 3 == 0 and length[number]:
            length[number] -= 1
    shared = trace.with_tables(
        slices=replace(trace.slices, args_at=at, args_len=length), args=Args([b"".join(all_args)])
    )
    same_bytes(shared, limits)


@pytest.mark.parametrize("kernel", KERNELS)
def test_large_args_take_little_more_memory(kernel: ModuleType | None) -> None:
    """Made by hand: room for the most that args may become was eight times of them."""
    size = 6 << 20
    trace = trace_of([b'{"a": "%s"}' % (b"x" * size), b'{"b": 1}'], only_slices=True)
    tracemalloc.start()
    data = written(trace, kernel, TIGHT)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 6 * size
    assert data == written(trace, None, TIGHT)


@pytest.mark.parametrize("size", [(1 << 19) - 30, 1 << 19, 9 << 20])
def test_same_bytes_of_large_args(size: int) -> None:
    """Made by hand, around the size from which on they are left to the caller, and above what buffers are kept at."""
    large = [b'{"k": "%s%d"}' % (b"x" * size, n) for n in range(2)]
    same_bytes(trace_of([*large, b'{"k": 1, "l": "text"}', b'{"l": "text", "k": "\\n"}']), DEFAULT, block=3)


def test_args_in_many_parts() -> None:
    trace = trace_of([b'{"k": %d, "dims": [[%d, 3], []]}' % (n, n % 3) for n in range(40)])
    whole = trace.args.get(0, len(trace.args))
    cuts = sorted({0, len(whole), *trace.slices.args_at.tolist(), *trace.logs.args_at[::3].tolist()})
    parts = [whole[first:end] for first, end in pairwise(cuts)]
    assert len(parts) > 5
    assert same_bytes(trace.with_tables(args=Args(parts))) == same_bytes(trace)


def test_the_longest_span_fits() -> None:
    """Perfetto drops events before 0, so that the last one is moved to twice the limit."""
    out = Builder(SourceInfo("a.json", "test"), REALTIME)
    thread = out.tracks.thread(out.tracks.process("p", pid=1), 1, "t")
    out.slice(thread, -(2**62), 2**62, "first", args=b'{"k": 1}')
    out.slice(thread, LIMIT_NS - 1, 1, "last")
    out.instant(thread, 2**62, "instant")
    out.counter(out.tracks.counter("c"), 2**62, 1)
    out.log(thread, 2**62, "line")
    out.sample(thread, 2**62, out.frame("f"))
    trace = lay_out(out.finish())
    assert trace.span() == (-LIMIT_NS, LIMIT_NS)
    decoded = pb.Trace()
    decoded.ParseFromString(same_bytes(trace))
    times = [packet.timestamp for packet in decoded.packet if packet.HasField("track_event")]
    assert (times[0], times[-1]) == (0, 2 * LIMIT_NS)
    assert max(packet.timestamp for packet in decoded.packet) < 2**63


def _one_per_format() -> Iterator[Case]:
    seen = set()
    for case in cases():
        if case.format not in {"merge", *seen} and (case.folder / "expect.txt").exists():
            seen.add(case.format)
            yield case


@pytest.mark.parametrize("case", [*_one_per_format()], ids=lambda case: case.name)
def test_same_bytes_of_recordings(case: Case, tmp_path: Path) -> None:
    (trace,) = case.traces(tmp_path)
    same_bytes(trace)


# -- what comes out, judged by other decoders -------------------------------------------------------------------------


def annotations(data: bytes) -> list[dict[str, Any]]:
    """The args of all begins, without nested objects."""
    decoded = pb.Trace()
    decoded.ParseFromString(data)
    names: dict[int, str] = {}
    texts: dict[int, str] = {}
    found = []
    for packet in decoded.packet:
        names.update({name.iid: name.name for name in packet.interned_data.debug_annotation_names})
        texts.update({s.iid: s.str.decode() for s in packet.interned_data.debug_annotation_string_values})
        if packet.track_event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
            members = packet.track_event.debug_annotations
            found.append({names[a.name_iid]: _value(a, texts) for a in members})
    return found


def _value(annotation: Any, texts: dict[int, str]) -> Any:
    if annotation.array_values:
        return [_value(item, texts) for item in annotation.array_values]
    kind = str(annotation.WhichOneof("value"))
    return texts[annotation.string_value_iid] if kind == "string_value_iid" else getattr(annotation, kind)


@settings(max_examples=150, deadline=None)
@given(st.one_of(NUMBERS, st.floats(allow_nan=False, allow_infinity=False).map(repr)))
@example("123456789012345678.9")
@example("9007199254740993.0")
@example("8.5e-23")
@example("1e23")
def test_numbers_are_exact(number: str) -> None:
    out = Builder(SourceInfo("a.json", "test"), REALTIME)
    out.slice(out.tracks.add("t"), T, 1, "x", args=b'{"k": %s}' % number.encode())
    trace = out.finish()
    is_integer = number.lstrip("-").isdigit()
    for kernel in KERNELS:
        ((value,),) = [found.values() for found in annotations(written(trace, kernel))]
        if is_integer and len(number) <= 20 and -(2**63) <= int(number) < 2**63:
            assert value == int(number)
        elif is_integer or not math.isfinite(float(number)):
            assert value == number
        else:
            assert (value, math.copysign(1, value)) == (float(number), math.copysign(1, float(number)))


def test_many_values_stay_apart() -> None:
    """Tables grow, and their limits are met."""
    count = 9000
    all_args = [b'{"id": "v%d", "dims": [%d, "w%d"], "k%d": 1}' % (n, n, n % 5000, n % 700) for n in range(count)]
    out = Builder(SourceInfo("a.json", "test"), REALTIME)
    track = out.tracks.add("t")
    for number, args in enumerate(all_args):
        out.slice(track, T + number, 1, "x", args=args)
    trace = lay_out(out.finish())
    expected, *others = [written(trace, kernel) for kernel in KERNELS]
    assert all(other == expected for other in others)
    assert annotations(expected) == [json.loads(args) for args in all_args]
