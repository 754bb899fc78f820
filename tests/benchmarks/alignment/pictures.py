"""Draws the pictures of docs/alignment.md: `python -m tests.benchmarks.alignment.pictures`.

They are figures of the page that `traceconv align --report` writes, of two recordings of one run without metadata.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.benchmarks.alignment.recordings import load, truth, without_metadata
from traceconv.align import Policy, align
from traceconv.align.causality import causality
from traceconv.align.report import document, page

_DOCS = Path(__file__).parents[3] / "docs"
_RECORDING = "torch_convnet"
_FIGURES = {
    "alignment-landscape.svg": "around the best offset",
    "alignment-region.svg": "Which offsets and drifts are possible",
}


def main() -> None:
    """Write the figures as files of their own."""
    traces = [without_metadata(load(file)) for file in truth()[_RECORDING].values()]
    alignment = align(traces, policy=Policy(on_ambiguous="best"))
    shown = page(document(traces, alignment, causality(traces, alignment)))
    (style,) = re.findall(r"<style>.*?</style>", shown, re.DOTALL)
    for name, title in _FIGURES.items():
        figure = next(svg for svg in re.findall(r"<svg .*?</svg>", shown, re.DOTALL) if title in svg)
        begin, end = figure.split(">", 1)
        (_DOCS / name).write_text(f'{begin} xmlns="http://www.w3.org/2000/svg">{style}{end}\n', encoding="utf-8")
        print(f"docs/{name}: {len(figure)} bytes")


if __name__ == "__main__":
    main()
