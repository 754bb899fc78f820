"""The table of how well clocks are related: its shape, and that nothing in it is accepted in a wrong place."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.alignment import figures, rows, trials
from tests.benchmarks.alignment.__main__ import header, main, measured, print_recordings
from tests.benchmarks.alignment.record_activity import CASES
from tests.benchmarks.alignment.recordings import Attempt, attempts, short_attempts, truth
from tests.benchmarks.alignment.rows import all_rows
from traceconv.align.geometry import Chain, Line

#: The regime of each row, in the order of the table.
REGIMES = {
    "exact": "exact metadata or anchors",
    "file-names": "file name plus perf header only",
    "sequences": "timestamped sequences, simulated",
    "sequences-recorded": "timestamped sequences, recorded",
    "durations": "durations only",
    "samples-recorded-narrowed": "perf samples against ONNX Runtime slices, narrowed by metadata, recorded",
    "samples-recorded": "perf samples against ONNX Runtime slices, activity alone, recorded",
    "samples-narrowed": "samples at 1 kHz, narrowed by metadata, simulated",
    "samples": "samples at 1 kHz, activity alone, idle gaps, simulated",
    "labels": "the same with labels only, simulated",
    "bins-recorded": "perf stat every 10 ms, idle gaps in view, recorded",
    "bins": "perf stat every 10 ms, idle gaps in view, simulated",
    "wrong": "wrong alignment among accepted, simulated sequences",
    "bends": "a clock slewed or set ahead while both record, simulated",
    "beside-a-step": "within 20 ms of where a clock was set ahead, simulated",
    "short-recorded": "five to ten iterations, no metadata, recorded",
    "short": "five to ten iterations, named events with timestamps, simulated",
    "short-samples": "five to ten iterations, slices and samples, simulated",
    "periodic": "exactly periodic input",
    "equal-layers": "24 equal layers an iteration, no jitter, calls missing",
    "constant-latency": "work a constant 10 to 200 µs after its calls",
    "queue": "calls that run ahead of a queue",
    "unrelated": "unrelated runs",
    "replayed": "two runs of one replayed schedule, timestamped sequences",
    "unrelated-samples": "unrelated runs, samples and slices",
    "two-jobs": "ranks of two jobs of one script, simulated",
    "set-clocks": "the clock of a host set in mid-run, simulated",
    "set-back-clocks": "the clock of a host set and set back, simulated",
    "set-back-busy": "a host's clock set and set back, ends scattered, simulated",
    "set-beside-an-end": "a host's clock set beside the first or last collectives, simulated",
    "small-set-clocks": "a host's clock set by 0.2 to 1.5 of its bound, ends scattered, simulated",
    "steep": "hosts that drift by 110 to 600 ppm, simulated",
    "skewed": "devices up to 500 µs ahead of their hosts or behind, simulated",
    "ahead": "devices 1 and 3 ms ahead of their hosts that drift, simulated",
    "offsets": "options that move hosts, simulated",
    "small-step": "the clock of a log set ahead by 3 to 300 µs, simulated",
    "late-step": "the stated clock of a log set by 1 to 50 ms in its last tenth, simulated",
    "late-step-unstated": "the same without stated clocks, simulated",
    "late-step-samples": "the clock of samples set by 3 to 50 ms near their end, simulated",
    "two-processes": "a log of two processes, simulated",
    "steep-log": "the clock of a log 60 to 190 ppm too fast or slow, simulated",
    "wrong-option": "an --offset that is 50 µs to 30 s off, simulated",
    "coverage": "95 % bounds",
    "activity-coverage": "95 % bounds, activity",
    "speed-5": "10^5 events",
    "long": "80 s trace with 50 ppm",
    "recordings": "recordings, with and without metadata",
}
#: What need not hold with a few pairs: the figures of those say little about the others.
OF_MANY_PAIRS = {
    "exact",
    "sequences",
    "sequences-recorded",
    "durations",
    "samples-narrowed",
    "samples",
    "labels",
    "bins",
    "bends",
    "beside-a-step",
    "short",
    "short-samples",
    "constant-latency",
    "queue",
    "coverage",
    "speed-5",
    "long",
}
#: Rows that the quick table leaves out. tests/align/test_containment.py tries some of the wrong clocks.
TOO_LONG = {"10^6 events", "logs of a library whose stated clock is 0.5 to 20 ms wrong, recorded"}


def _once(factory: pytest.TempPathFactory, compute: Callable[[], list[Attempt]]) -> list[Attempt]:
    """Return what a function returns, which one worker calls while the others wait for it."""
    shared = factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    kept = shared / compute.__name__
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(compute()))
    found: list[Attempt] = pickle.loads(kept.read_bytes())
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Attempt]:
    return _once(tmp_path_factory, attempts)


@pytest.fixture(scope="module")
def recorded_short(tmp_path_factory: pytest.TempPathFactory) -> list[Attempt]:
    return _once(tmp_path_factory, short_attempts)


def test_the_rows_of_the_quick_table() -> None:
    assert tuple(all_rows(3, True, [], [])) == tuple(REGIMES)
    assert {row.regime for row in figures.load().rows} == {*REGIMES.values(), *TOO_LONG}


@pytest.mark.parametrize("name", REGIMES)
def test_a_row(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    long_trial = trials.long_trial
    monkeypatch.setattr(trials, "long_trial", lambda seed, iterations: long_trial(seed, min(iterations, 100)))
    monkeypatch.setattr(rows, "short_attempts", lambda: request.getfixturevalue("recorded_short"))
    recorded = request.getfixturevalue("recorded") if name in rows.RECORDED else []
    (row,) = measured(3, True, recorded, [name])
    assert row.regime == REGIMES[name]
    assert (row.reached == rows.NOT_MEASURED) is (row.good is None)
    assert row.good or name in OF_MANY_PAIRS
    assert row.goal == next(one.goal for one in figures.load().rows if one.regime == row.regime)


def test_the_lines_of_the_table(recorded: list[Attempt], capsys: pytest.CaptureFixture[str]) -> None:
    found = figures.load().rows
    lines = figures.table(found)
    assert len(lines) == 2 + len(found)
    assert len({len(line) for line in lines}) == 1
    print_recordings(recorded)
    assert len(capsys.readouterr().out.splitlines()) == 2 + len(recorded)


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
    assert "| a regime | a goal | a figure: *missed* |" in " ".join(text.split())
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


def test_half_of_the_short_recordings_are_placed(recorded_short: list[Attempt]) -> None:
    assert len(recorded_short) == 20
    assert not [one for one in recorded_short if one.wrong]
    placed = [one for one in recorded_short if one.verdict == "ok"]
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
