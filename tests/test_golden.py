"""Every golden case as it is read, and the outputs of those that tests.shapes chose: these hold all shapes of a trace.

See tests/golden.py for what a case is.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests import decode, oracle, picture
from tests.golden import PINS_JSON, Case, cases, without_version, written
from tests.shapes import chosen, every_shape, shapes, shapes_of_json
from traceconv.answers.selection import OUTSIDE
from traceconv.api import read
from traceconv.check import check_file
from traceconv.errors import NothingRead, TraceconvError
from traceconv.families.registry import importer_class
from traceconv.io.shown import Counted
from traceconv.model.diagnostics import ProblemKind, Severity
from traceconv.model.dump import dump, dump_problem
from traceconv.model.layout import EMPTY_TRACKS
from traceconv.model.trace import Trace

CASES = list(cases())
CHOSEN = chosen()
SHAPES = set[str]().union(*CHOSEN.values())
every_case = pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
REFUSED = "error: "
EVENT = '[{"ph": "X", "name": "a", "ts": 1, "dur": 2}]'


def compare(path: Path, text: str, update: bool) -> None:
    if update:
        path.write_text(text, encoding="utf-8")
    assert path.exists(), f"{path} is missing: read the diff of `pytest {__file__} --update-golden`"
    assert text == path.read_text(encoding="utf-8"), f"{path} differs"


def diagnosis(traces: list[Trace]) -> str:
    lines = []
    for source in (source for trace in traces for source in trace.sources):
        lines += [f"{source.name} ({source.format}): {source.balance.describe()}"]
        lines += [f"note: {note}" for note in source.notes]
        lines += [dump_problem(entry) for entry in source.diagnostics]
    return "".join(f"{line}\n" for line in lines)


def check_that_much_is_said(case: Case, nothing: bool) -> None:
    """A case of which nothing is written passes, and is recorded, only if it is about that."""
    said = case.about.get("expect_empty", False)
    assert nothing or not said, f"{case.name}: something is written, and case.toml says expect_empty"
    assert said or not nothing, f"{case.name}: nothing is written; expect_empty = true if that is the point"


@every_case
def test_expectations(case: Case, tmp_path: Path, update_golden: bool) -> None:
    try:
        traces = case.traces(tmp_path)
        merged = case.merged(traces)
    except TraceconvError as error:
        check_that_much_is_said(case, isinstance(error, NothingRead))
        text = f"{REFUSED}{error.message}\nhint: {error.hint}\n"
        for folder in (case.folder, tmp_path, case.folder.parent.parent):
            text = text.replace(f"{folder}/", "")
        compare(case.folder / "expect.diag", text, update_golden)
        assert not (case.folder / "expect.txt").exists()
        return
    check_that_much_is_said(case, not any(merged.counts().values()))
    for balance in (source.balance for trace in (*traces, merged) for source in trace.sources):
        for what in (balance.unit, *balance.kept, *balance.merged, *balance.skipped):
            assert isinstance(what, Counted) or what.startswith("skipped ("), f"{what!r} has no word for one"
    for source in merged.sources:
        reasons = {EMPTY_TRACKS, OUTSIDE, *importer_class(source.format).skips}
        skipped = {entry.code for entry in source.diagnostics if entry.code.kind is ProblemKind.SKIPPED}
        assert skipped <= reasons, "not in what `formats` says of that format"
    compare(case.folder / "expect.diag", diagnosis([merged]), update_golden)
    compare(case.folder / "expect.txt", "\n".join(dump(trace) for trace in traces), update_golden)
    if "expect.json" in case.expectations:
        compare(case.folder / "expect.json", without_version(written(merged, "chrome-json").decode()), update_golden)
    held = shapes(merged)
    assert held <= SHAPES, "no chosen case has these: `python -m tests.shapes` chooses again"
    assert held >= CHOSEN.get(case.name, set()), "chosen for these: `python -m tests.shapes` chooses again"


def test_each_shape_of_the_json_output_is_pinned() -> None:
    texts = (case.folder / "expect.json" for case in CASES if case.format in PINS_JSON)
    pinned = {shape for path in texts if path.exists() for shape in shapes_of_json(path.read_bytes())}
    assert {shape for shape in SHAPES if shape.startswith("json ")} <= pinned


def read_case(case: Case, tmp_path: Path) -> Trace:
    return case.merged(case.traces(tmp_path))


@every_shape
def test_same_bytes_twice(case: Case, tmp_path: Path) -> None:
    first, second = read_case(case, tmp_path), read_case(case, tmp_path)
    for output in ("perfetto", "chrome-json"):
        assert written(first, output) == written(first, output)
        assert written(first, output) == written(second, output)


@every_shape
def test_protobuf_holds_the_trace(case: Case, tmp_path: Path) -> None:
    trace = read_case(case, tmp_path)
    data = written(trace, "perfetto")
    assert decode.decode_pftrace(data) == decode.events_of(trace)
    assert decode.unknown_fields(data) == []


@every_shape
def test_own_json_comes_back(case: Case, tmp_path: Path) -> None:
    trace = read_case(case, tmp_path)
    output = tmp_path / "out.json"
    output.write_bytes(written(trace, "chrome-json"))
    back = read(output, format="chrome-trace")
    counts = trace.counts()
    counts["instants"] += counts.pop("log entries")  # the format knows no log entries
    assert back.counts() == counts | {"log entries": 0}
    assert back.sources[0].diagnostics.lost == 0
    assert timed_names(back) == timed_names(trace)


def timed_names(trace: Trace) -> Counter[tuple[Any, ...]]:
    """Slices without their absolute place: start after the first event, length, name, category."""
    span = trace.span()
    first = span[0] if span else 0
    table = trace.slices
    return Counter(
        (ts - first, dur, trace.strings[name], trace.strings[category])
        for ts, dur, name, category in zip(
            table.ts.tolist(), table.dur.tolist(), table.name.tolist(), table.category.tolist(), strict=True
        )
    )


@every_shape
def test_outputs_pass_the_check(case: Case, tmp_path: Path) -> None:
    trace = read_case(case, tmp_path)
    for output in ("perfetto", "chrome-json"):
        path = tmp_path / output
        path.write_bytes(written(trace, output))
        allowed = {"check-pftrace.no_name", "check-json.no_events"}  # as in the input
        report = check_file(path)
        assert [p for p in report.problems if p.severity > Severity.INFO and p.code not in allowed] == [], output


@every_shape
@pytest.mark.parametrize("output", ["perfetto", "chrome-json"])
def test_perfetto_shows_the_trace(case: Case, output: str, tmp_path: Path, trace_processor: Any) -> None:
    trace = read_case(case, tmp_path)
    path = tmp_path / "out"
    path.write_bytes(written(trace, output))
    if not any(trace.counts().values()):
        pytest.skip("a trace without events, which the trace processor does not recognise")
    is_json = output == "chrome-json"
    with trace_processor(path) as processor:
        assert oracle.import_problems(processor) == []
        found = picture.seen(processor, trace, json=is_json)
    picture.assert_equal(found, picture.json_picture(trace) if is_json else picture.perfetto_picture(trace))


@pytest.mark.parametrize("update", [True, False])
def test_a_case_of_which_nothing_is_written_is_not_recorded(tmp_path: Path, update: bool) -> None:
    folder = tmp_path / "chrome-trace" / "unread"
    folder.mkdir(parents=True)
    for about, texts in (('description = "x"', ("[]", '[{"ph": "X"}]')), ("expect_empty = true", (EVENT,))):
        (folder / "case.toml").write_text(about)
        for text in texts:
            (folder / "input.json").write_text(text)
            with pytest.raises(AssertionError, match="is written"):
                test_expectations(Case(folder), tmp_path, update)
    assert not (folder / "expect.diag").exists()


def test_no_file_is_left_over() -> None:
    for case in CASES:
        files = {path.name for path in case.folder.iterdir()} - {"beside"}
        inputs = {name for name in files if name.startswith("input.")}
        assert len(inputs) == (case.format != "merge"), case.name
        refused = (case.folder / "expect.diag").read_text(encoding="utf-8").startswith(REFUSED)
        wanted = {"case.toml"} | ({"expect.diag"} if refused else case.expectations)
        assert files - inputs == wanted, case.name
        assert case.about["description"], case.name
