"""The report of an alignment: it follows its schema, tells what happened, and the page shows it without help."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from msgspec.structs import replace

from tests.align.pairs import TRUTH, private, recordings, trace_of
from tests.benchmarks.alignment.simulate import BentTruth, S, Shape, inner, outer, run, slewed
from tests.golden import ROOT
from traceconv.align import Alignment, Policy, align
from traceconv.align import report as reports
from traceconv.align.causality import causality
from traceconv.align.estimate import Method
from traceconv.align.geometry import Chain
from traceconv.align.report import SCHEMA, Axis, document, page, refusal_document, rendered, time_axis
from traceconv.api import read
from traceconv.check.chrome_text import load_schema
from traceconv.errors import AlignmentError, AmbiguousAlignment, UnrelatedClocks, UsageError
from traceconv.model.clocks import REALTIME, ClockSnapshot, Verdict, Zero
from traceconv.model.trace import Trace

Json = dict[str, Any]
PERIODIC = Shape(iterations=60).periodic()


def reported(traces: list[Trace], policy: Policy | None = None) -> Json:
    """The report, whether the traces are put together or refused, as it is written and read again."""
    try:
        alignment = align(traces, policy=policy)
        report = document(traces, alignment, causality(traces, alignment))
    except AlignmentError as error:
        report = refusal_document(traces, error)
    return json.loads(rendered(report, "align.json"))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return recordings(3)


@pytest.fixture(scope="module")
def alignment(traces: list[Trace]) -> Alignment:
    return align(traces)


@pytest.fixture(scope="module")
def good(traces: list[Trace], alignment: Alignment) -> Json:
    report = document(traces, alignment, causality(traces, alignment))
    return json.loads(rendered(report, "align.json"))  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def ambiguous() -> Json:
    return reported(recordings(3, PERIODIC, part=(0.3, 0.6)))


@pytest.fixture(scope="module")
def unrelated() -> Json:
    return reported([recordings(3)[0], recordings(4)[1]])


@pytest.fixture(scope="module")
def few(traces: list[Trace]) -> Json:
    events = outer(run(np.random.default_rng(5), Shape(iterations=1)))
    return reported([trace_of(events.take(np.arange(5)), "few.json"), traces[1]])


@pytest.fixture(scope="module", params=["good", "ambiguous", "unrelated", "few"])
def report(request: pytest.FixtureRequest) -> Json:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


# -- the document ---------------------------------------------------------------------------------------------------


def test_it_follows_the_schema(report: Json) -> None:
    jsonschema.Draft202012Validator.check_schema(load_schema(SCHEMA))
    jsonschema.Draft202012Validator(load_schema(SCHEMA)).validate(report)


def test_the_schema_refuses_other_things(good: Json) -> None:
    validator = jsonschema.Draft202012Validator(load_schema(SCHEMA))
    assert not validator.is_valid({**good, "verdict": "fine"})
    assert not validator.is_valid({**good, "more": 1})
    assert not validator.is_valid({**good, "causality": [{**good["causality"][0], "checked": -1}]})


def test_it_tells_where_everything_went(good: Json, traces: list[Trace], alignment: Alignment) -> None:
    assert good["verdict"] == "ok"
    assert good["refusal"] is None
    for one, trace, maps in zip(good["inputs"], traces, alignment.maps, strict=True):
        (clock,) = one["clocks"]
        assert one["file"] == trace.sources[0].name
        for end, time in zip(("begin", "end"), trace.span() or (), strict=True):
            assert clock[f"{end}_ns"] == time
            assert clock["map"][end]["trace_time_ns"] == maps[0].at(time)
            assert 0 <= clock["map"][end]["bound_ns"] <= clock["map"]["bound_ns"]
    (second,) = good["inputs"][1]["clocks"]
    assert second["map"]["drift_ppm"] == pytest.approx(-TRUTH.drift * 1e6, abs=1.0)


def test_the_bounds_at_the_ends_hold(good: Json) -> None:
    """The truth is known: the framework counts from the start of the run."""
    (clock,) = good["inputs"][1]["clocks"]
    for end in (clock["map"]["begin"], clock["map"]["end"]):
        true = (end["time_ns"] - TRUTH.offset) / (1 + TRUTH.drift)
        assert abs(end["trace_time_ns"] - true) <= end["bound_ns"]


def test_the_evidence_of_a_pair(good: Json, alignment: Alignment) -> None:
    (pair,) = good["pairs"]
    (found,) = alignment.pairs
    estimate = found.estimate
    assert (pair["x"]["file"], pair["y"]["file"]) == ("framework.json", "library.log")
    assert (pair["verdict"], pair["matches"], pair["dropped"]) == ("ok", estimate.matches, estimate.dropped)
    away = pair["at_ns"] + TRUTH.offset + TRUTH.drift * pair["at_ns"] - (pair["at_ns"] + pair["offset_ns"])
    low, high = (min(corner["offset_ns"] for corner in pair["region"]), max(c["offset_ns"] for c in pair["region"]))
    assert low <= away <= high
    assert min(c["drift_ppm"] for c in pair["region"]) <= 37 <= max(c["drift_ppm"] for c in pair["region"])
    assert pair["residuals"]["median_ns"] == round(estimate.residuals.median)
    assert len(pair["residuals_over_time"]["time_ns"]) == len(pair["residuals_over_time"]["residual_ns"])
    assert [rival["offset_ns"] for rival in pair["rivals"]] == found.rival_offsets()


@pytest.mark.parametrize(("slices", "verdict"), [(5, "insufficient"), (20, "ok")])
def test_one_recording_that_is_given_twice(slices: int, verdict: str, tmp_path: Path) -> None:
    """Nothing but its equal events says where it is: the best line has no region."""
    events = [{"ph": "X", "name": f"n{n}", "pid": 1, "tid": 1, "ts": 10 * n, "dur": 5} for n in range(slices)]
    paths = [tmp_path / "a.json", tmp_path / "b.json"]
    for indent, path in enumerate(paths):
        path.write_text(json.dumps({"traceEvents": events}, indent=indent or None))
    report = reported([read(path) for path in paths])
    jsonschema.validate(report, load_schema(SCHEMA))
    assert report["verdict"] == verdict
    assert "b.json" in page(report)


def test_lines_whose_bounds_are_not_known() -> None:
    rng = np.random.default_rng(701)
    work, truth = run(rng, Shape(iterations=600)), BentTruth(300 * S, 10e-6, slewed(300e-6, 1.6 * S, 3.1 * S))
    traces = [trace_of(outer(work), "framework.json"), trace_of(inner(rng, work, truth)[0], "library.log")]
    found = align(traces)
    (pair,) = found.pairs
    lines = tuple(replace(line, region=None) for line in pair.estimate.chain.lines)
    assert len(lines) == 3
    unbounded = replace(pair, estimate=replace(pair.estimate, chain=Chain(lines)))
    report = document(traces, replace(found, pairs=[unbounded]), causality(traces, found))
    jsonschema.validate(report, load_schema(SCHEMA))
    assert [line["bound_ns"] for line in report["pairs"][0]["lines"]] == [None] * 3
    assert "library.log" in page(json.loads(rendered(report, "align.json")))


def test_a_picture_keeps_the_highest_peak(good: Json, alignment: Alignment) -> None:
    curve = good["pairs"][0]["landscape"]["all"]
    (pair,) = alignment.pairs
    assert pair.estimate.landscape is not None
    offsets, heights = pair.estimate.landscape
    assert len(curve["score"]) < len(heights)
    assert max(curve["score"]) == pytest.approx(float(heights.max()), abs=0.001)
    top = curve["offset_ns"][int(np.argmax(curve["score"]))]
    assert top == pytest.approx(float(offsets[np.argmax(heights)]) - pair.estimate.line.offset, abs=1)
    assert abs(top) < 200_000  # the best place


def test_long_recordings_are_thinned_and_keep_what_stands_out(traces: list[Trace], alignment: Alignment) -> None:
    (pair,) = alignment.pairs
    values = np.zeros(100_000)
    values[[5, 70_001]] = 900.0, -1200.0
    estimate = replace(pair.estimate, residual_times=np.arange(100_000.0), residual_values=values)
    alignment = replace(alignment, pairs=[replace(pair, estimate=estimate)])
    shown = document(traces, alignment, causality(traces, alignment))["pairs"][0]["residuals_over_time"]
    assert 1500 < len(shown["time_ns"]) <= 2000
    assert {900, -1200} <= set(shown["residual_ns"])
    assert shown["time_ns"] == sorted(shown["time_ns"])


@pytest.mark.parametrize("method", ["sequence of durations", "activity"])
def test_other_evidence_is_explained_in_its_own_words(method: str, traces: list[Trace], alignment: Alignment) -> None:
    """A landscape may have places that are impossible, and come in any order."""
    (pair,) = alignment.pairs
    heights = np.array([3.0, -np.inf, 9.0, 1.0, 2.0])
    landscape = np.array([2e6, 3e6, 0.0, -2e6, -1e6]) + pair.estimate.line.offset, heights
    estimate = replace(pair.estimate, method=method, landscape=landscape, rivals=(), margin=np.inf)
    alignment = replace(alignment, pairs=[replace(pair, estimate=estimate)])
    report = document(traces, alignment, causality(traces, alignment))
    report = json.loads(rendered(report, "align.json"))
    jsonschema.Draft202012Validator(load_schema(SCHEMA)).validate(report)
    assert report["pairs"][0]["landscape"]["all"]["score"] == [1.0, 2.0, 9.0, 3.0]
    assert report["pairs"][0]["margin"] is None
    text = page(report)
    assert "No other offset came close" in text
    assert "start together" not in text
    assert ("busy" in text) == (method == "activity")


def test_turned_inputs_give_the_same_pair(good: Json, traces: list[Trace]) -> None:
    turned = reported(traces[::-1])
    (pair,), (straight,) = turned["pairs"], good["pairs"]
    assert [one["file"] for one in turned["inputs"]] == ["library.log", "framework.json"]
    assert (pair["x"], pair["y"]) == (straight["x"], straight["y"])
    for clock in (one["clocks"][0] for one in turned["inputs"]):
        assert clock["map"]["end"]["bound_ns"] <= clock["map"]["bound_ns"]
    jsonschema.Draft202012Validator(load_schema(SCHEMA)).validate(turned)


def test_a_refusal_tells_what_was_tried(ambiguous: Json) -> None:
    assert ambiguous["verdict"] == "ambiguous"
    assert "other offsets" in ambiguous["refusal"]["message"]
    assert ambiguous["clock"] is None
    assert all(clock["map"] is None for one in ambiguous["inputs"] for clock in one["clocks"])
    (pair,) = ambiguous["pairs"]
    assert len(pair["rivals"]) >= 3


def test_the_verdict_of_a_refusal(unrelated: Json, few: Json) -> None:
    assert (unrelated["verdict"], few["verdict"]) == ("insufficient", "insufficient")
    assert few["pairs"][0]["region"] is None
    assert few["pairs"][0]["landscape"] is None


def test_the_errors_carry_what_was_tried() -> None:
    with pytest.raises(AmbiguousAlignment) as ambiguous:
        align(recordings(3, PERIODIC, part=(0.3, 0.6)))
    assert len(ambiguous.value.pairs) == 1
    with pytest.raises(UnrelatedClocks) as unrelated:
        align(recordings(3), policy=Policy(estimate=False))
    assert unrelated.value.pairs == ()


def test_files_that_their_events_contradict(traces: list[Trace], alignment: Alignment) -> None:
    """The library log says that it counts Unix time, as the framework does, but for 50 ms."""
    way = alignment.maps[1][0]
    wrong = ClockSnapshot(traces[1].clocks[0], way.at_ns, REALTIME, way.at(way.at_ns) + 50_000_000, 1000, "header")
    wall = traces[0].with_tables(clocks=[private("wall", Zero.UNIX_EPOCH)])
    report = reported([wall, traces[1].with_tables(snapshots=[wrong])])
    assert report["verdict"] == "inconsistent"
    assert [pair["verdict"] for pair in report["pairs"]] == ["ok"]
    text = page(report)
    assert text.count('<span class="pill inconsistent">') == 4  # on top, for both files, in the list of all verdicts
    assert "it was not used" in text


def test_the_best_place_was_used_if_the_user_wanted_it(ambiguous: Json) -> None:
    traces = recordings(3, PERIODIC, part=(0.3, 0.6))
    report = reported(traces, Policy(on_ambiguous="best"))
    assert report["verdict"] == "ambiguous"
    assert report["refusal"] is None
    (pair,) = report["pairs"]
    assert pair["used"]
    assert not ambiguous["pairs"][0]["used"]
    assert pair["rivals"] == ambiguous["pairs"][0]["rivals"]
    (placed,) = (clock["map"] for clock in report["inputs"][1]["clocks"])
    assert (placed["verdict"], placed["bound_ns"]) == ("ambiguous", None)
    assert pair["reason"] in placed["warnings"][0]
    text = page(report)
    assert "was not used" not in text
    assert "It was used because of <code>--on-ambiguous best</code>." in text
    assert "These recordings are aligned at the best of several offsets" in text


def test_files_side_by_side_are_not_called_aligned() -> None:
    report = reported(recordings(3, PERIODIC, part=(0.3, 0.6)), Policy(on_ambiguous="separate"))
    assert report["verdict"] == "separate"
    assert not report["pairs"][0]["used"]
    (placed,) = (clock["map"] for clock in report["inputs"][1]["clocks"])
    assert (placed["verdict"], placed["bound_ns"]) == ("separate", None)
    text = page(report)
    assert "These recordings are side by side, but not all of them are aligned" in text
    assert "it was not used" in text
    assert "<strong>But not aligned: do not compare its times with those of other files" in text


def test_one_recording_given_twice() -> None:
    path = ROOT / "pytorch-kineto" / "torch-convnet-process" / "input.json"
    report = reported([read(path), read(path)])
    jsonschema.validate(report, load_schema(SCHEMA))
    maps = [clock["map"] for one in report["inputs"] for clock in one["clocks"]]
    assert [one["begin"]["bound_ns"] for one in maps] == [one["bound_ns"] for one in maps]
    assert len(maps) == 2


def test_a_refusal_without_any_comparison() -> None:
    report = reported(recordings(3), Policy(estimate=False))
    assert report["verdict"] == "insufficient"
    assert report["pairs"] == []
    assert "not placed" in page(report)


# -- the page -------------------------------------------------------------------------------------------------------


class Elements(HTMLParser):
    """All tags with their attributes; raises if they are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_else(report: Json) -> None:
    text = page(report)
    tags = Elements(text).found
    assert not {tag for tag, _ in tags} & {"script", "link", "img", "iframe", "object"}
    assert not [attrs for _, attrs in tags if {"src", "href", "onload", "onclick"} & set(attrs)]
    assert "http" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text


def test_the_verdict_is_there_in_words(report: Json) -> None:
    text = page(report)
    assert f'<span class="pill {report["verdict"]}">' in text.partition("</h1>")[0]
    assert ("were not put together" in text) == (report["refusal"] is not None)
    assert ("Why, and what to do" in text) == (report["refusal"] is not None)


def pictures(text: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def test_the_page_names_inputs_without_events_and_what_was_compared(good: Json) -> None:
    assert "Compared: the same events in both." in page(good)
    about = {"format": "chrome-trace", "host": "node7", "rank": 3, "world_size": 8}
    text = page(good | {"inputs": [*good["inputs"], {"file": "empty.json", **about, "clocks": []}]})
    assert "<small>chrome-trace, rank 3 of 8, node7</small>" in text
    assert "<strong>empty.json</strong>" in text
    assert text.count("nothing to place: it holds no events") == 1


def test_the_pictures_show_what_the_report_says(good: Json) -> None:
    timeline, residuals, everything, near, region = pictures(page(good))
    assert len(list(timeline.iter("rect"))) == 2
    (dots,) = [path for path in residuals.iter("path") if path.get("class") == "dots"]
    outside = re.search(r"(\d+) dots lie outside", page(good))
    assert outside is not None
    count = dots.get("d", "").count("M")
    assert count + int(outside[1]) == len(good["pairs"][0]["residuals_over_time"]["time_ns"])
    rings = [circle for circle in everything.iter("circle") if circle.get("class") == "rival"]
    assert len(rings) == len(good["pairs"][0]["rivals"])
    assert [circle.get("class") for circle in near.iter("circle")].count("best") == 1
    (area,) = [path for path in region.iter("path") if path.get("class") == "region"]
    assert area.get("d", "").count("L") + 1 == len(good["pairs"][0]["region"])


def test_everything_is_drawn_inside_of_the_pictures(report: Json) -> None:
    for picture in pictures(page(report)):
        _, _, width, height = map(float, picture.get("viewBox", "").split())
        for path in picture.iter("path"):
            places = re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path.get("d", ""))
            assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in places)
        for shape in [*picture.iter("circle"), *picture.iter("text")]:
            x, y = (shape.get("cx", shape.get("x")), shape.get("cy", shape.get("y")))
            assert 0 <= float(x or -1) <= width
            assert 0 <= float(y or -1) <= height


def test_words_in_a_chart_do_not_overlap(report: Json) -> None:
    for picture in pictures(page(report)):
        boxes = []
        for text in picture.iter("text"):
            words, css = text.text or "", text.get("class", "")
            size = 6.2 * len(words)
            x, y = float(text.get("x", 0)), float(text.get("y", 0))
            left = x if "start" in css else x - size if "end" in css else x - size / 2
            boxes.append((left, left + size, y - 9, y + 2, words))
        for number, one in enumerate(boxes):
            for other in boxes[:number]:
                apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
                assert apart, (one, other)


def test_names_are_text_and_nothing_else(few: Json) -> None:
    name = "<script>alert(1)</script>&\"'.json"
    text = page(json.loads(json.dumps(few).replace("few.json", json.dumps(name)[1:-1])))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;" in text
    Elements(text)


def hostile(value: Any, key: str = "") -> Any:
    """A report whose texts are markup, but for those that are words of traceconv."""
    if isinstance(value, dict):
        return {name: hostile(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [hostile(inner, key) for inner in value]
    known = key in ("verdict", "traceconv") or value in list(Method)
    return value if known or not isinstance(value, str) else f"<script>{key}</script>{{{{ 7 * 7 }}}}&\"'"


def test_no_text_of_a_report_is_markup(report: Json) -> None:
    text = page(hostile(report))
    Elements(text)
    assert "<script" not in text
    assert "49&amp;" not in text
    for key in ("file", "format", "description", "reason"):
        assert f"&lt;script&gt;{key}&lt;/script&gt;{{{{ 7 * 7 }}}}&amp;&#34;&#39;" in text
    templates = list(Path(reports.__file__).parent.glob("*.j2"))
    assert len(templates) == 2
    assert not [path for path in templates if "safe" in path.read_text(encoding="utf-8")]


def test_a_move_of_decades_is_told_as_a_time_of_day() -> None:
    """Kineto states its zero in ns since 1970, which the log of oneDNN counts from."""
    zero = 1790857026 * 10**9
    files = ("pytorch-kineto/torch-convnet-process/input.json", "onednn-verbose/torch-convnet-process/input.log")
    report = reported([read(ROOT / one) for one in files])
    zeros = [one["clocks"][0]["zero_at"] for one in report["inputs"]]
    assert zeros == ["2026-10-01 12:17:06 UTC", None]
    assert "its zero is 2026-10-01 12:17:06 UTC" in page(report)
    assert reports._shift(-zero) == "−20727 d 12 h"
    assert reports._shift(1_500_000) == "+1.5 ms"


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize("method", Method)
def test_there_are_words_for_each_verdict_and_method(verdict: Verdict, method: Method, good: Json) -> None:
    text = page({**good, "verdict": verdict, "pairs": [{**good["pairs"][0], "method": method, "verdict": verdict}]})
    assert f'<span class="pill {verdict}">' in text.partition("</h1>")[0]
    assert f"Compared: {method.compared}." in text
    assert "was used because of" in text or not verdict.unusable


@pytest.mark.parametrize("verdict", ["ambiguous", "insufficient", "unverified"])
def test_a_check_that_found_nothing_is_no_verdict(verdict: str, good: Json) -> None:
    """Both files were placed without the comparison, so the page must not contradict its own headline."""
    pair = {**good["pairs"][0], "used": False, "verdict": verdict, "rivals": []}
    text = page({**good, "pairs": [pair]})
    above = text.partition("<h2>What the verdicts mean")[0]
    assert "no result" in above
    assert f"pill {verdict}" not in above
    assert "came close" not in above
    assert "<figure>" not in above.partition("no result")[2].partition("</section>")[0]


def test_a_comparison_of_files_that_are_apart_is_a_verdict(good: Json) -> None:
    inputs = json.loads(json.dumps(good["inputs"]))
    inputs[1]["clocks"][0]["map"]["verdict"] = "separate"
    pair = {**good["pairs"][0], "used": False, "verdict": "ambiguous"}
    text = page({**good, "verdict": "separate", "inputs": inputs, "pairs": [pair]})
    assert "pill ambiguous" in text.partition("<h2>What the verdicts mean")[0]
    assert "no result" not in text


@pytest.mark.parametrize("verdict", ["ok", "ambiguous"])
def test_nothing_came_close_only_where_an_offset_was_found(verdict: str, good: Json) -> None:
    pair = {**good["pairs"][0], "verdict": verdict, "rivals": []}
    assert ("came close" in page({**good, "pairs": [pair]})) is (verdict == "ok")


def test_the_same_report_gives_the_same_page(traces: list[Trace], alignment: Alignment, good: Json) -> None:
    found = document(traces, alignment, causality(traces, alignment))
    assert rendered(good, "a.html") == rendered(reported(traces), "b.HTML") == rendered(found, "c.htm")


def test_the_ending_of_the_name_decides(good: Json) -> None:
    assert rendered(good, "align.json")[:1] == b"{"
    assert rendered(good, "align.html")[:15] == b"<!doctype html>"
    with pytest.raises(UsageError, match=r"align\.txt: the name ends in neither"):
        rendered(good, "align.txt")


# -- axes -----------------------------------------------------------------------------------------------------------


def test_ticks_are_round_numbers_in_the_unit_of_the_axis() -> None:
    axis = time_axis(-3_100_000.0, 5_200_000.0, 5)
    assert axis.unit == "ms"
    assert axis.marks() == [(-2e6, "−2"), (0.0, "0"), (2e6, "2"), (4e6, "4")]
    assert [label for _, label in Axis(0.0, 0.31, ticks=3).marks()] == ["0.0", "0.2"]


def test_an_axis_without_length_gets_one() -> None:
    axis = time_axis(7.0, 7.0)
    assert (axis.low, axis.high) == (6.0, 8.0)
