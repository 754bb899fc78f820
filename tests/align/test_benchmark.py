"""The table of how well clocks are related: its shape, and that nothing in it is accepted in a wrong place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.alignment import figures, rows, trials
from tests.benchmarks.alignment.__main__ import header, main, measured, print_recordings
from tests.benchmarks.alignment.record_activity import CASES
from tests.benchmarks.alignment.recordings import Attempt, attempts, short_attempts, truth
from traceconv.align.geometry import Chain, Line

REGIMES = (
    "exact metadata or anchors",
    "file name plus perf header only",
    "timestamped sequences, simulated",
    "timestamped sequences, recorded",
    "durations only",
    "perf samples against ONNX Runtime slices, narrowed by metadata, recorded",
    "perf samples against ONNX Runtime slices, activity alone, recorded",
    "samples at 1 kHz, narrowed by metadata, simulated",
    "samples at 1 kHz, activity alone, idle gaps, simulated",
    "the same with labels only, simulated",
    "perf stat every 10 ms, idle gaps in view, recorded",
    "perf stat every 10 ms, idle gaps in view, simulated",
    "wrong alignment among accepted, simulated sequences",
    "a clock slewed or set ahead while both record, simulated",
    "within 20 ms of where a clock was set ahead, simulated",
    "five to ten iterations, no metadata, recorded",
    "five to ten iterations, named events with timestamps, simulated",
    "five to ten iterations, slices and samples, simulated",
    "exactly periodic input",
    "24 equal layers an iteration, no jitter, calls missing",
    "work a constant 10 to 200 µs after its calls",
    "calls that run ahead of a queue",
    "unrelated runs",
    "two runs of one replayed schedule, timestamped sequences",
    "unrelated runs, samples and slices",
    "ranks of two jobs of one script, simulated",
    "the clock of a host set in mid-run, simulated",
    "hosts that drift by 110 to 600 ppm, simulated",
    "devices up to 500 µs ahead of their hosts or behind, simulated",
    "devices 1 and 3 ms ahead of their hosts that drift, simulated",
    "options that move hosts, simulated",
    "the clock of a log set ahead by 3 to 300 µs, simulated",
    "the stated clock of a log set by 1 to 50 ms in its last tenth, simulated",
    "the same without stated clocks, simulated",
    "a log of two processes, simulated",
    "the clock of a log 60 to 190 ppm too fast or slow, simulated",
    "an --offset that is 50 µs to 30 s off, simulated",
    "95 % bounds",
    "95 % bounds, activity",
    "10^5 events",
    "80 s trace with 50 ppm",
    "recordings, with and without metadata",
)
#: What must hold with any number of pairs; figures of a few pairs say little about the others.
ALWAYS = {
    "file name plus perf header only",
    "perf samples against ONNX Runtime slices, narrowed by metadata, recorded",
    "perf samples against ONNX Runtime slices, activity alone, recorded",
    "perf stat every 10 ms, idle gaps in view, recorded",
    "wrong alignment among accepted, simulated sequences",
    "five to ten iterations, no metadata, recorded",
    "exactly periodic input",
    "24 equal layers an iteration, no jitter, calls missing",
    "unrelated runs",
    "two runs of one replayed schedule, timestamped sequences",
    "unrelated runs, samples and slices",
    "ranks of two jobs of one script, simulated",
    "the clock of a host set in mid-run, simulated",
    "hosts that drift by 110 to 600 ppm, simulated",
    "devices up to 500 µs ahead of their hosts or behind, simulated",
    "devices 1 and 3 ms ahead of their hosts that drift, simulated",
    "options that move hosts, simulated",
    "the clock of a log set ahead by 3 to 300 µs, simulated",
    "the stated clock of a log set by 1 to 50 ms in its last tenth, simulated",
    "the same without stated clocks, simulated",
    "a log of two processes, simulated",
    "the clock of a log 60 to 190 ppm too fast or slow, simulated",
    "an --offset that is 50 µs to 30 s off, simulated",
    "95 % bounds, activity",
    "recordings, with and without metadata",
}


#: Rows that the quick table leaves out. tests/align/test_containment.py tries some of the wrong clocks.
TOO_LONG = ("10^6 events", "logs of a library whose stated clock is 0.5 to 20 ms wrong, recorded")


@pytest.fixture(scope="module")
def recorded() -> list[Attempt]:
    return attempts()


def test_the_quick_table(
    recorded: list[Attempt], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    long_trial = trials.long_trial
    monkeypatch.setattr(trials, "long_trial", lambda seed, iterations: long_trial(seed, min(iterations, 100)))
    found = measured(3, True, recorded)
    assert tuple(row.regime for row in found) == REGIMES
    assert {row.regime for row in found if row.good} >= ALWAYS
    for row in found:
        assert (row.reached == rows.NOT_MEASURED) is (row.good is None)
        assert row.goal
    recorded_goals = {row.regime: row.goal for row in figures.load().rows}
    for regime in TOO_LONG:
        del recorded_goals[regime]
    assert recorded_goals == {row.regime: row.goal for row in found}
    print(*figures.table(found), sep="\n")
    print_recordings(recorded)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 + len(REGIMES) + 2 + len(recorded)
    assert len({len(line) for line in lines[: 2 + len(REGIMES)]}) == 1


def test_the_document_shows_what_is_recorded() -> None:
    stale = "docs/alignment.md is stale: python -m tests.benchmarks.alignment --record"
    assert figures.DOCUMENT.read_text(encoding="utf-8") == figures.document(), stale


def test_figures_are_recorded(recorded: list[Attempt], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = tmp_path / "alignment.md"
    document.write_text(figures.DOCUMENT.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(figures, "RECORD", tmp_path / "recorded.json")
    monkeypatch.setattr(figures, "DOCUMENT", document)
    shown = figures.recording_rows(recorded)
    made = figures.Figures(header(7), [rows.Row("a regime", "a goal", "a figure", False)], shown)
    figures.save(made)
    assert figures.load() == made
    text = document.read_text(encoding="utf-8")
    assert "| a regime | a goal | a figure | missed |" in " ".join(text.split())
    assert "7 simulated pairs (seeds 1000 to 1006)" in text
    assert [row[0].strip("`").split("`")[0] for row in shown] == list(figures._SHOWN)
    assert all(cell.endswith(" µs") for row in shown for cell in row[1:])
    assert all(row[3] in text for row in shown)


def test_the_quick_figures_are_not_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--quick", "--record"])
    assert "not for --quick" in capsys.readouterr().err


def test_no_recording_is_put_into_a_wrong_place(recorded: list[Attempt]) -> None:
    assert len(recorded) == 54
    assert not [one for one in recorded if one.wrong]
    assert all(one.error_ns is not None for one in recorded if one.variant == "as recorded" and "own" in one.said)


def test_recordings_of_seconds_are_placed_by_their_samples_alone(recorded: list[Attempt]) -> None:
    long = [one for one in recorded if one.recording in CASES and one.names[1].startswith("perf.script")]
    assert len(long) == 18
    for one in long:
        assert one.related, (one.recording, one.variant, one.said)
        assert one.error_ns is not None
        assert one.error_ns <= 20_000
        assert one.bound_ns is not None
        assert one.bound_ns <= 60_000


def test_recordings_without_metadata_are_placed(recorded: list[Attempt]) -> None:
    """All of the longer ones, of which only two were there when the estimators were made."""
    real = [one for one in recorded if one.recording.startswith("torch_") and one.names[1].endswith(".gz")]
    assert len(real) == 15
    assert all(one.verdict == "ok" and one.bound_ns is not None for one in real)
    assert all((one.error_ns or 0) <= (one.bound_ns or 0) + one.uncertainty_ns for one in real)


def test_half_of_the_short_recordings_are_placed() -> None:
    found = short_attempts()
    assert len(found) == 20
    assert not [one for one in found if one.wrong]
    placed = [one for one in found if one.verdict == "ok"]
    assert len(placed) >= 10
    assert all((one.error_ns or 0) <= (one.bound_ns or 0) for one in placed)


def test_an_error_is_not_judged_finer_than_the_truth_is_known() -> None:
    def off(error_ns: int, uncertainty_ns: int) -> Attempt:
        return Attempt("r", ("a", "b"), "exact metadata", error_ns, 5000, uncertainty_ns, "ok", "")

    assert rows.exact_metadata([off(900, 100), off(2700, 2200)]).good
    assert not rows.exact_metadata([off(1100, 100)]).good
    assert not rows.exact_metadata([off(0, 2200)]).good


def test_nothing_placed_is_not_called_reached() -> None:
    refused = Attempt("ort_stat_pauses", ("a", "perf.stat.csv"), "as recorded", None, None, 0, "refused", "")
    placed = replace(refused, error_ns=1000, bound_ns=5000, verdict="ok", related=True)
    marks = [
        rows.bins_recorded(found).mark for found in ([refused], [refused, placed], [replace(placed, error_ns=10**6)])
    ]
    assert marks == ["refused", "reached", "missed"]


def test_a_wrong_place_would_be_seen(recorded: list[Attempt]) -> None:
    def off(error_ns: int, verdict: str) -> Attempt:
        return Attempt("r", ("a", "b"), "as recorded", error_ns, 5000, 2000, verdict, "")

    assert off(8000, "ok").wrong
    assert not off(6000, "ok").wrong
    assert not off(8000, "assumed").wrong
    assert replace(off(8000, "assumed"), related=True).wrong
    assert rows.recordings([off(8000, "ok")]).good is False


def test_an_error_is_measured_against_the_truth() -> None:
    a, b, right = trials.sequence_pair(trials.FIRST_SEED)
    offset = right.offset - b.zero_ns
    estimate = trials.Estimate("", trials.Verdict.OK, "", Chain((Line(offset + 300.0, right.drift, 0.0),)))
    found = trials.judged(estimate, right, a.zero_ns, b.zero_ns, (0.0, 1e9))
    assert found.errors == pytest.approx(300.0, abs=1.0)
    assert not found.wrong
    astray = trials.Estimate("", trials.Verdict.OK, "", Chain((Line(offset + 8e6, right.drift, 0.0),)))
    assert trials.judged(astray, right, a.zero_ns, b.zero_ns, (0.0, 1e9)).wrong


def test_the_truth_of_each_recording_has_a_source() -> None:
    files = [file for recording in truth().values() for file in recording.values()]
    assert len(files) == 77
    assert all(0 <= file.uncertainty_ns < 20_000 for file in files if file.name != "perf.stat.csv.gz")
    assert [file.uncertainty_ns for file in files if file.name == "perf.stat.csv.gz"] == [30_000]
