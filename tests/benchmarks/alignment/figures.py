"""The figures that were measured last, in recorded.json; docs/alignment.md shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tests.benchmarks.alignment.recordings import SEQUENCES, TUNED, Attempt, least_bound
from tests.benchmarks.alignment.rows import Row
from tests.benchmarks.frame import ROOT
from tests.benchmarks.record import laid_out, marked, with_block

RECORD = Path(__file__).with_name("recorded.json")
DOCUMENT = ROOT / "docs" / "alignment.md"
HEAD = ("regime", "to reach", "reached", "")
_RECORDING_HEAD = ("recording", "error", "stated", "least bound", "cut: error", "stated")
#: Recordings whose truth is known to less than their errors.
_SHOWN = ("torch_convnet_again", "torch_transformer", "torch_steady", "mxnet_convnet", "torch_convnet", "torch_lstm")


@dataclass(frozen=True, slots=True)
class Figures:
    """All of it.

    Attributes:
        header: what it was measured with.
        rows: of the table of regimes.
        recordings: of the table of recordings, as texts.
    """

    header: Sequence[str]
    rows: Sequence[Row]
    recordings: Sequence[Sequence[str]]


def recording_rows(recorded: Sequence[Attempt]) -> list[list[str]]:
    """For each recording of a sequence: without metadata, and with a window cut besides."""
    found = {(one.recording, one.variant): one for one in recorded if one.recording in SEQUENCES}
    rows = []
    for name in _SHOWN:
        whole, cut = found[name, "metadata taken away"], found[name, "and a window cut"]
        label = f"`{name}` (tuned on)" if name in TUNED else f"`{name}`"
        rows.append([label, *_cells(whole), f"±{least_bound(name) / 1e3:.1f} µs", *_cells(cut)])
    return rows


def _cells(one: Attempt) -> tuple[str, str]:
    """The error and what is stated."""
    if one.error_ns is None or one.bound_ns is None:
        return "refused", ""
    return f"{one.error_ns / 1e3:.1f} µs", f"±{one.bound_ns / 1e3:.0f} µs"


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the table of regimes, for a terminal and for a document."""
    return laid_out([HEAD, *((row.regime, row.goal, row.reached, row.mark) for row in rows)])


def load() -> Figures:
    """What is recorded."""
    stored = json.loads(RECORD.read_text(encoding="utf-8"))
    return Figures(stored["header"], [Row(**row) for row in stored["rows"]], stored["recordings"])


def with_rows(figures: Figures, rows: Sequence[Row]) -> Figures:
    """The figures with some rows measured anew; a row of a new regime comes last."""
    new = {row.regime: row for row in rows}
    kept = [new.pop(row.regime, row) for row in figures.rows]
    return replace(figures, rows=[*kept, *new.values()])


def save(figures: Figures) -> None:
    """Record figures, and write the document anew."""
    RECORD.write_text(json.dumps(asdict(figures), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    DOCUMENT.write_text(document(), encoding="utf-8")


def document() -> str:
    """docs/alignment.md with what is recorded."""
    figures = load()
    above = ["", *(row.goal for row in figures.rows)]
    shown = [
        (row.regime, "" if row.goal == goal else row.goal, marked(row.reached, row.mark))
        for row, goal in zip(figures.rows, above, strict=False)
    ]
    text = with_block(
        DOCUMENT.read_text(encoding="utf-8"),
        "figures",
        [*laid_out([HEAD[:3], *shown]), "", *(f"    {line}" for line in figures.header)],
    )
    return with_block(text, "recordings", laid_out([_RECORDING_HEAD, *figures.recordings]))
