"""The lines of a text and the rows of a CSV with their numbers, and the number of lines that an importer does not read.

An importer states what it reads. All other lines are output of other programs: it counts them with `others`, at the
price of its own tests of a line, which therefore begin with a cheap one.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator

from traceconv.families.common.ansi import plain_text
from traceconv.io.shown import Counted
from traceconv.io.source import Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code


class TextLines:
    """The lines of a text.

    Args:
        out: the builder, which counts lines.

    Attributes:
        others: the number of lines of other programs.
    """

    def __init__(self, out: Builder) -> None:
        self.others = 0
        self._out = out

    def read(self, source: Source, *, keep_ends: bool = False, again: bool = False) -> Iterator[tuple[int, bytes]]:
        """Yield the lines with their numbers, without their ends unless they are to be kept.

        They are counted as read, unless they were read before and are read `again`.
        """
        for numbers, lines in source.batches():
            self._out.balance.read += 0 if again else len(lines)
            yield from zip(numbers, lines if keep_ends else [line.rstrip(b"\r\n") for line in lines], strict=True)

    def tell_others(self, code: Code, skipped: Counted | None = None) -> None:
        """Count the lines of other programs, if any, as a problem; `skipped` is their name in the balance."""
        if self.others and skipped:
            self._out.balance.skipped[skipped] += self.others
            self._out.problem(code, count=self.others)
        elif self.others:
            self._out.skip(code, count=self.others)


def csv_rows(source: Source, broken: Callable[[csv.Error], list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of the rows of a CSV, and the number of the last line of each; cells may contain line ends.

    Args:
        source: the text.
        broken: returns the cells of a row that cannot be parsed.
    """
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for numbers, lines in source.batches():
            for number, line in zip(numbers, lines, strict=True):  # noqa: B007
                text = plain_text(line.decode("utf-8", "replace"))
                if "\r" in text[:-2]:
                    yield from io.StringIO(text, newline="")
                else:
                    yield text

    reader = csv.reader(texts())
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = broken(error)
        yield number, cells
