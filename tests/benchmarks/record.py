"""The figures that were measured last, work by work, in recorded.json; docs/performance.md shows the table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.benchmarks.frame import ROOT

RECORD = Path(__file__).with_name("recorded.json")
NOT_MEASURED = "not measured"
_HEAD = ("work", "to reach", "reached", "")


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    Attributes:
        work: the title of the work.
        goal: what is to reach.
        reached: the figure, or why there is none.
        off: the figure as a multiple of the goal; None if it was not measured.
    """

    work: str
    goal: str
    reached: str
    off: float | None

    @property
    def verdict(self) -> str:
        """For the last column."""
        return NOT_MEASURED if self.off is None else "reached" if self.off <= 1 else "missed"


@dataclass(frozen=True, slots=True)
class Result:
    """What a work came to.

    Attributes:
        rows: its rows of the table.
        lines: the inputs, the costs of the contestants, remarks; nothing if it was not measured.
        header: the machine and the versions.
    """

    rows: Sequence[Row]
    lines: Sequence[str] = ()
    header: str = ""


def table(rows: Sequence[Row], *, with_verdict: bool = True) -> list[str]:
    """The lines of a table that reads well as text and as Markdown; goals are for the usual sizes."""
    verdicts = [row.verdict if with_verdict else "another size" for row in rows]
    cells = ((row.work, row.goal, row.reached, verdict) for row, verdict in zip(rows, verdicts, strict=True))
    return laid_out([_HEAD, *cells])


def laid_out(cells: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table whose first row is its head."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells = list(cells)
    cells.insert(1, tuple("-" * width for width in widths))
    return [
        "| " + " | ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]


def load() -> dict[str, Result]:
    """The recorded results by the name of the work."""
    stored = json.loads(RECORD.read_text(encoding="utf-8"))
    return {
        name: Result([Row(**row) for row in one["rows"]], tuple(one["lines"]), one["header"])
        for name, one in stored.items()
    }


def save(results: Mapping[str, Result], order: Sequence[str]) -> None:
    """Put results beside those that were recorded before, and write the documents anew once there are all works.

    Args:
        results: by the name of the work; those that were not measured change nothing that was.
        order: the names of all works; what has another name is dropped.
    """
    kept = load() if RECORD.exists() else {}
    kept |= {name: result for name, result in results.items() if result.lines or name not in kept}
    stored = {name: asdict(kept[name]) for name in order if name in kept}
    RECORD.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if stored.keys() >= set(order):
        for path, text in documents().items():
            path.write_text(text, encoding="utf-8")


def documents() -> dict[Path, str]:
    """Return the documents with the recorded figures between the comments `benchmark`; recorded.json has all costs."""
    results = load()
    headers = [line for result in results.values() if result.lines for line in result.header.splitlines()]
    rows = [row for result in results.values() for row in result.rows]
    lines = laid_out([_HEAD[:3], *((row.work, row.goal, marked(row.reached, row.verdict)) for row in rows)])
    lines += ["", *(f"    {line}" for line in dict.fromkeys(headers))]
    path = ROOT / "docs" / "performance.md"
    return {path: with_block(path.read_text(encoding="utf-8"), "benchmark", lines)}


def marked(reached: str, verdict: str) -> str:
    """Return a figure for a document, with its verdict unless that is "reached"."""
    return reached if verdict in ("reached", reached) else f"{reached}: *{verdict}*"


def with_block(text: str, name: str, lines: Sequence[str]) -> str:
    """A document with other lines between the two comments of a name."""
    before, mark, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- /{name} -->")
    if not (mark and end):
        raise ValueError(f"there is no block between <!-- {name} --> and <!-- /{name} -->")
    return f"{before}{mark}\n" + "\n".join(lines) + f"\n\n{end}{after}"
