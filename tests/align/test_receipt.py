"""The receipt of an estimated alignment: in the table, in the metadata, in the track descriptions."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from tests.align.pairs import TRUTH, recordings
from traceconv.align import Alignment, ReceiptLine, align
from traceconv.cli._common import receipt_table
from traceconv.ir.trace import Trace
from traceconv.merging import merge_traces


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return recordings(2)


@pytest.fixture(scope="module")
def alignment(traces: list[Trace]) -> Alignment:
    return align(traces)


def printed(receipt: list[ReceiptLine]) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=200).print(receipt_table(receipt))
    return text.getvalue().splitlines()


def test_drift_and_matches_are_told_where_there_are_any(alignment: Alignment) -> None:
    first, second = alignment.receipt
    assert second.drift_ppm == pytest.approx(-TRUTH.drift * 1e6, abs=1.0)
    assert second.matches == alignment.pairs[0].estimate.matches > 1000
    assert second.residual_ns == round(alignment.pairs[0].estimate.residuals.median)
    assert set(second.as_json()) - set(first.as_json()) == {"drift_ppm", "matches", "residual_ns"}
    assert (first.drift_ppm, first.matches, first.residual_ns) == (0.0, 0, None)


def test_the_table_has_no_columns_that_say_nothing(alignment: Alignment) -> None:
    header, _, line = printed(alignment.receipt)
    assert header.split() == ["file", "clock", "placed", "by", "offset", "drift", "within", "matches", "verdict"]
    second = alignment.receipt[1]
    assert f"{second.drift_ppm:+.3f} ppm" in line
    assert f" {second.matches}, {second.residual_ns} ns apart " in line
    header, *_ = printed(alignment.receipt[:1])
    assert header.split() == ["file", "clock", "placed", "by", "offset", "within", "verdict"]


def test_the_tracks_and_the_metadata_tell_it(traces: list[Trace], alignment: Alignment) -> None:
    merged = merge_traces(traces, alignment)
    assert merged.metadata["alignment"] == [line.as_json() for line in alignment.receipt]
    words = [track.description for track in merged.tracks if track.description]
    second = alignment.receipt[1]
    assert words[0].endswith("placed by its own times, within ±1 µs.")
    assert f"; drift {second.drift_ppm:+.3f} ppm; {second.matches} matches, {second.residual_ns} ns apart" in words[1]
