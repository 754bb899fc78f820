"""The compiled kernel, its source in the interpreter and the code without a kernel read a Chrome trace alike."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import traceconv
from tests.kernels import using, variants
from traceconv import kernel
from traceconv.errors import TraceconvError
from traceconv.families.chrome.event import RowScanner
from traceconv.families.chrome.flows import FlowSteps, _innermost
from traceconv.families.perfetto.writer import PerfettoProto
from traceconv.model.dump import dump

GOLDEN = Path(__file__).parent.parent / "golden"
CHROME = ("chrome-trace", "pytorch-kineto", "viztracer", "rocprof")
INPUTS = sorted(
    path
    for name in CHROME
    for path in GOLDEN.glob(f"{name}/*/*")
    if path.is_file() and path.read_bytes()[:1] in (b"{", b"[") and not path.name.startswith("expect")
)

needs_kernel = pytest.mark.skipif(
    not kernel.COMPILED, reason="the kernel is not compiled (no C compiler at build time)"
)


def outcome(path: Path, module: ModuleType | None) -> tuple[str, bytes, list[Any]]:
    """All that becomes of an input: the trace as text and as packets, the diagnostics; or the error."""
    with using("scan", module):
        try:
            trace = traceconv.read(path, format="pytorch-kineto" if "kineto" in str(path) else "chrome-trace")
        except TraceconvError as error:
            return str(error), b"", []
        packets = io.BytesIO()
        PerfettoProto().write(trace, packets)
        source = trace.sources[0]
        found = sorted(entry.message() for entry in source.diagnostics)  # batches differ, and so who reports first
        _, *lines = dump(trace).splitlines()
        return "\n".join(lines), packets.getvalue(), [source.balance, found]


SCANNERS = list(variants("scan").values())
NESTERS = list(variants("nesting").values())


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.parent.name}/{path.parent.name}")
def test_inputs(path: Path) -> None:
    expected = outcome(path, None)
    for scanner in SCANNERS:
        assert outcome(path, scanner) == expected


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.decimals(-5 * 10**15, 5 * 10**15, places=4).map(str),
    st.decimals(-(10**16), 10**16, places=3).map(str),
    st.decimals(-(10**6), 10**6, places=5).map(str),
    st.sampled_from(["0", "-0", "00", "1.", ".5", "1e3", "1E-7", "-", "1.0000005", "NaN", "true", "null", '"7"', "+1"]),
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            "op",
            "op",
            "ac2g",
            "kernel",
            "[memory]",
            "python_function",
            "",
            "ü",
            "a\\b",
            'a"',
            "\x07",
            "a\tb",
            "\x7f",
            "🎛",
        ]
    ),
    st.text(max_size=6),
).map(lambda text: json.dumps(text, ensure_ascii=len(text) % 2 == 0))
VALUES = st.recursive(
    st.one_of(NUMBERS, TEXTS, st.sampled_from(["true", "false", "null", '"\\ud800"', '"\\u00e9"', "tru"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{' , '.join(items)}]"),
        st.lists(st.tuples(TEXTS, inner), max_size=3).map(
            lambda members: "{" + ",\n".join(f"{key}: {value}" for key, value in members) + "}"
        ),
    ),
    max_leaves=6,
)
FIELDS = st.one_of(
    st.tuples(st.just("ph"), st.sampled_from([f'"{phase}"' for phase in [*"XisftBECMbenSFTpNDO()", "XX"]])),
    st.tuples(st.sampled_from(["name", "cat"]), TEXTS),
    st.tuples(st.sampled_from(["ts", "dur"]), NUMBERS),
    st.tuples(st.sampled_from(["pid", "tid", "id"]), st.one_of(st.sampled_from(["1", "7", '"7"', '"a"']), VALUES)),
    st.tuples(st.just("args"), VALUES),
    st.tuples(st.just("s"), st.sampled_from(['"t"', '"p"', '"g"', "1"])),
    st.tuples(st.just("bp"), st.sampled_from(['"e"', '""'])),
    st.tuples(st.text(max_size=3), VALUES),
)
PLAIN = st.fixed_dictionaries(
    {"name": TEXTS, "cat": TEXTS, "pid": st.sampled_from(["1", "0", '"x"']), "tid": st.sampled_from(["1", "2"])},
    optional={"args": VALUES, "bp": st.just('"e"'), "s": st.just('"t"')},
).map(lambda event: list(event.items()))
TIMED = st.one_of(
    st.tuples(st.integers(0, 50), st.integers(0, 30)).map(
        lambda time: [("ph", '"X"'), ("ts", str(time[0])), ("dur", str(time[1]))]
    ),
    st.tuples(st.sampled_from(["s", "t", "f"]), st.integers(0, 50), st.integers(1, 3)).map(
        lambda step: [("ph", f'"{step[0]}"'), ("ts", f"{step[1]}.25"), ("id", str(step[2]))]
    ),
    st.integers(0, 50).map(lambda ts: [("ph", '"i"'), ("ts", f"{ts}.0005")]),
    st.tuples(st.sampled_from("BE"), st.integers(0, 8)).map(
        lambda mark: [("ph", f'"{mark[0]}"'), ("ts", str(mark[1]))]
    ),
    st.tuples(
        st.sampled_from("benSFTp"), st.integers(0, 8), st.sampled_from(["1", '"1"', '"0x1"', "2", '""', '"a\\n"'])
    ).map(lambda mark: [("ph", f'"{mark[0]}"'), ("ts", str(mark[1])), ("id", mark[2])]),
)
COUNTED = st.one_of(
    st.integers(-100, 100).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-(10**4), 10**4, places=3).map(str),
    st.tuples(st.integers(0, 10**6), st.sampled_from("eE"), st.integers(-30, 30)).map(
        lambda parts: "".join(map(str, parts))
    ),
    NUMBERS,
)
SERIES = st.lists(st.tuples(st.sampled_from(["v", "w", "", "op", "a\\n", "value", "ü"]), COUNTED), max_size=3).map(
    lambda members: "{" + ", ".join(f'"{key}" :{value}' for key, value in members) + "}"
)
COUNTERS = st.tuples(st.integers(0, 50), PLAIN, SERIES).map(
    lambda parts: [("ph", '"C"'), ("ts", str(parts[0])), *parts[1][:4], ("args", parts[2])]
)
EVENTS = st.one_of(
    st.tuples(TIMED, PLAIN).map(lambda parts: parts[0] + parts[1]),
    COUNTERS,
    st.lists(FIELDS, max_size=8),
    st.tuples(st.sampled_from(["traceEvents"]), VALUES).map(lambda member: [member]),
).map(lambda fields: "{" + ", ".join(f"{json.dumps(key)}:{value}" for key, value in fields) + "}")


@pytest.mark.parametrize("name", ["chrome", "kineto"])
@example(
    events=[
        '{"ph":"B","ts":1,"name":"a","pid":1,"tid":1,"args":{}}',
        '{"ph":"E","ts":2,"name":"a","pid":1,"tid":1,"cat":"only here"}',
        '{"ph":"B","ts":2,"name":"a","pid":1,"tid":1,"args":{"k":1}}',
        '{"ph":"E","ts":2,"name":"a","pid":1,"tid":1,"args":{"more":1},"odd":1}',
        '{"ph":"E","ts":3,"pid":1,"tid":1}',
    ],
    cut=0,
    noise="",
)
@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(
    events=st.lists(EVENTS, max_size=12), cut=st.integers(0, 400), noise=st.sampled_from(["", "", "", "}", ',"', "\0"])
)
@example(events=['{"ph":"X","name":"a","ts":1,"dur":2,"pid":1,"tid":1,}'], cut=0, noise="")
@example(events=['{"ph":"X","name":"a","ts":01,"dur":2,"pid":1,"tid":1}'], cut=0, noise="")
@example(events=['{"ph":"X","ts":1,"ts":2,"dur":2,"name":"twice"}'], cut=0, noise="")
@example(events=['{"ph":"X","ts":1,"dur":2,"args":{"a":1}  ,"args":{"b":2}}'], cut=0, noise="")
@example(
    events=[
        r'{"ph":"i", "ts":7.0005, "name":"\u0007", "pid":"x", "cat":"", "tid":2}',
        '{"ph":"t", "ts":36.25, "id":3, "name":"op", "cat":"op", "pid":0, "tid":2}',
        '{"ph":"f", "ts":5.25, "id":1, "name":"", "cat":"", "pid":"x", "tid":1, "args":[]}',
    ],
    cut=0,
    noise="",
)
def test_events(name: str, tmp_path: Path, events: list[str], cut: int, noise: str) -> None:
    text = '{"schemaVersion": 1, "traceEvents": [\n' + ",\n".join(events) + "]}"
    data = text.encode("utf-8", "surrogatepass")
    if cut:
        at = min(cut, len(data))
        data = data[:at] + noise.encode() + (data[at:] if noise else b"")
    path = tmp_path / f"{name}.json"
    path.write_bytes(data)
    expected = outcome(path, None)
    for scanner in SCANNERS:
        assert outcome(path, scanner) == expected


def _event(name: str) -> str:
    return f'{{"ph":"X","name":"{name}","pid":1,"tid":1,"ts":{ord(name)},"dur":2}}'


@pytest.mark.parametrize("name", ["chrome", "kineto"])
@pytest.mark.parametrize("opening", ["", '{"traceEvents":[', "["], ids=["bare", "object", "array"])
@pytest.mark.parametrize("before", ["", ",", "\n", ",,"], ids=["", "comma", "newline", "commas"])
@pytest.mark.parametrize("after", [",", "\n"], ids=["comma", "newline"])
@pytest.mark.parametrize("inner", ['{"traceEvents":[%s]}', '{ "traceEvents" : [\n%s],"displayTimeUnit":"ms"}'])
@pytest.mark.parametrize("extra", ["", ',"odd":1'], ids=["plain", "odd"])
def test_document_among_events(
    name: str, opening: str, before: str, after: str, inner: str, extra: str, tmp_path: Path
) -> None:
    """A document that begins where an event is expected loses none of its events, whatever separates the two."""
    first, second, third, fourth = (_event(letter).replace("}", extra + "}") for letter in "abcd")
    text = opening + first + before + inner % f"{second},\n{third}" + after + fourth
    text += {"": "", "[": "]"}.get(opening, "]}")
    path = tmp_path / f"{name}.json"
    path.write_text(text)
    expected = outcome(path, None)
    assert expected[2][0].read == 4
    assert expected[2][0].written == 4
    assert any("more events follow" in message for message in expected[2][1])
    for scanner in SCANNERS:
        assert outcome(path, scanner) == expected


@pytest.mark.parametrize("scan", SCANNERS)
@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("op é 🎛\x7f", "op é 🎛\x7f"),
        (r"a\"b\\c\/d \u00e9 \u0041", 'a"b\\c/d é A'),
        (r"\ud83c\uDF9B \uD7ff\uE000 \u0020", "🎛 \ud7ff\ue000  "),
        (r"\n", None),
        (r"\u0009", None),
        (r"\u001f", None),
        (r"\x", ""),
        (r"\ud83c", ""),
        (r"\udf9b\ud83c", ""),
        (r"\ud83c\u0041", ""),
        (r"\ud83cab", ""),
        (r"\u00g0", ""),
    ],
)
def test_names(scan: ModuleType, written: str, name: str | None) -> None:
    """Names without control characters are plain; those with them are left to the caller (None); the rest fails."""
    scanner = RowScanner(scan, 3)
    rows = scanner.scan(b'{"ph":"X","ts":1,"dur":2,"pid":"p","name":"%b"}' % written.encode(), 0)
    if name is None:
        assert rows.phase.tolist() == [0]
    elif not name:
        assert len(rows) == 0
    else:
        assert rows.phase.tolist() == [ord("X")]
        assert scanner.name(int(rows.name[0])) == name == json.loads(f'"{written}"')


@needs_kernel
def test_plain_events_take_the_fast_way() -> None:
    event = b'{"ph": "X", "name": "op", "cat": "c", "pid": 1, "tid": "a", "ts": 12.5, "dur": 1, "args": {"k": [1, 2]}}'
    scanner = RowScanner(kernel.module("scan"), 3)
    rows = scanner.scan(b", " + event + b",\n" + event + b"]", 0)
    assert len(rows) == 2
    assert rows.end[-1] == len(event) * 2 + 4
    assert rows.phase.tolist() == [ord("X")] * 2
    assert rows.ts.tolist() == [12500] * 2
    assert rows.dur.tolist() == [1000] * 2
    assert rows.is_enclosing.tolist() == [False] * 2
    assert rows.args_of(1) == b'{"k":[1,2]}'
    assert scanner.stand(int(rows.stand[0])) == (b"1", b'"a"', "c", "")


@needs_kernel
@pytest.mark.parametrize(
    ("text", "exponent", "ns"),
    [
        ("1661203462611039", 3, 1661203462611039000),  # microseconds since 1970, as PyTorch wrote them
        ("1712195495532815.3595", 3, 1712195495532815360),
        ("4611686018427387", 3, 4611686018427387000),
        ("4611686018427387.0004", 3, 4611686018427387000),
        ("4611686018427387.0005", 3, None),
        ("9999999999999999.9999", 3, None),
        ("10000000000000000", 3, None),
        ("1661203462611039123", 0, 1661203462611039123),
        ("9999999999999999999", 0, None),
        ("1661203462.6", 9, 1661203462600000000),
    ],
)
def test_times_as_long_as_an_int64_allows_take_the_fast_way(text: str, exponent: int, ns: int | None) -> None:
    event = b'{"ph":"i","s":"t","name":"op","pid":1,"tid":1,"ts":%b}]'
    for sign in (b"", b"-"):
        rows = RowScanner(kernel.module("scan"), exponent).scan(event % (sign + text.encode()), 0)
        assert (rows.phase[0], rows.ts[0]) == ((ord("i"), -ns if sign else ns) if ns is not None else (0, rows.ts[0]))


@needs_kernel
@given(text=COUNTED)
@example(text="-0.0")
@example(text="123456789012345e22")
@example(text="1e23")
@example(text="9007199254740993.0")
def test_values_of_counters_are_those_of_a_parser(text: str) -> None:
    event = f'{{"ph":"C","name":"c","pid":1,"ts":1,"args":{{"v":{text},"w":7}}}}'
    rows = RowScanner(kernel.module("scan"), 3).scan(event.encode(), 0)
    values = rows.scanner.values(rows, np.flatnonzero(rows.phase == ord("C")))
    if len(values.row):
        number = json.loads(text)
        found = values.value if values.is_integer[0] else values.value.view(np.float64)
        assert repr(found[0].item()) == repr(number)
        assert [values.key(rows, at) for at in (0, 1)] == ["v", "w"]
    else:
        assert not len(rows) or rows.phase[0] == 0
    digits = sum(letter.isdigit() for letter in text.lower().partition("e")[0])
    assert len(values.row) == 2 or digits > 15 or "e" in text.lower() or not is_number(text)


def is_number(text: str) -> bool:
    """Return whether a text is a number of JSON."""
    try:
        return isinstance(json.loads(text, parse_constant=str), int | float) and text not in ("true", "false")
    except ValueError:
        return False


@needs_kernel
def test_space_for_values_must_suffice() -> None:
    scan = kernel.module("scan")
    scanner = scan.Scanner(np.zeros((len(scan.FIELDS), 4), np.int64), 3)
    one, args = np.zeros(1, np.int64), b'{"a":1,"b":2}'
    found, left = np.zeros((len(scan.VALUES), 1), np.int64), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="no space"):
        scanner.values(args, one, one + len(args), one, one, found, left)
    with pytest.raises(ValueError, match="outside"):
        scanner.values(args, one + 1, one + len(args), one, one, found, left)
    with pytest.raises(ValueError, match="lengths"):
        scanner.values(args, one, one + len(args), one, one, found[1:], left)
    with pytest.raises(ValueError, match="lengths"):
        scanner.values(args, one, one + len(args), one, np.zeros(2, np.int64), found, left)


@needs_kernel
def test_space_for_args_must_suffice() -> None:
    scan = kernel.module("scan")
    scanner = scan.Scanner(np.zeros((len(scan.FIELDS), 4), np.int64), 3)
    with pytest.raises(ValueError, match="shorter than the data"):
        scanner.scan(b'{"args":{"a":1}}', 0, np.zeros(4, np.uint8))


def test_places_and_units_outside_are_refused() -> None:
    for scan in SCANNERS:
        fields = np.zeros((len(scan.FIELDS), 4), np.int64)
        with pytest.raises(ValueError, match="one row"):
            scan.Scanner(fields[1:], 3)
        for exponent in (-1, 10):
            with pytest.raises(ValueError, match="exponent"):
                scan.Scanner(fields, exponent)
        for start in (-1, 3):
            with pytest.raises(ValueError, match="outside"):
                scan.Scanner(fields, 3).scan(b"{}", start, np.zeros(9, np.uint8))


def test_columns_of_slices_and_points_must_fit() -> None:
    two, three = np.zeros(2, np.int64), np.zeros(3, np.int64)
    for nesting in NESTERS:
        for starts, ends, points, found in ((three, two, two, two), (two, three, two, two), (two, two, three, two)):
            with pytest.raises(ValueError, match="lengths"):
                nesting.innermost(starts, ends, points, found.copy())
        for first, stop in ((-1, 1), (2, 1), (0, 3)):
            with pytest.raises(ValueError, match="outside"):
                nesting.first_crossing(two.astype(np.int32), two, two, first, stop, 4)


@settings(deadline=None)
@given(
    slices=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 8)), max_size=12),
    points=st.lists(st.integers(-1, 20), max_size=8),
)
def test_slices_around_flow_steps(slices: list[tuple[int, int]], points: list[int]) -> None:
    rows = sorted((ts, -dur) for ts, dur in slices)
    starts = np.array([ts for ts, _ in rows], np.int64)
    ends = np.array([ts - minus for ts, minus in rows], np.int64)
    results = []
    for module in (None, *NESTERS):
        with using("nesting", module):
            results.append(_innermost(starts, ends, np.array(sorted(points), np.int64)).tolist())
    assert all(result == results[0] for result in results)


@given(
    st.lists(
        st.sampled_from(['"7"', "0", "07", '"00"', '""', "-1", "1.0", "9" * 18, "9" * 19, '"a"', '"\\""', "12345"])
    )
)
def test_ids_of_flows(texts: list[str]) -> None:
    """All ids of a part of a file at once get the numbers that each would get, also where there is none (length 0)."""
    data = " ".join(["x", *texts]).encode()
    lengths = np.array([0, *map(len, texts)], np.int64)
    starts = np.append(0, 2 + np.cumsum(np.append(0, lengths[1:-1] + 1))) if texts else np.zeros(1, np.int64)
    one, many = FlowSteps(), FlowSteps()
    expected = [one.id(text.encode().strip(b'"')) for text in ["", *texts]]
    assert many.ids(data, starts, lengths).tolist() == expected
    assert list(many.texts) == list(one.texts)
