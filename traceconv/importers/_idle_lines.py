"""Lines that mean nothing where they stand, however many there are: looked at once, then counted by their bytes.

Most of what a text may hold beside its records is only counted: empty lines, output of other programs. An importer
that does no more with a line says how it is counted. The same line is then counted without asking again, until there
is one of which the importer says nothing, since that one may have changed what lines mean.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, pairwise

from traceconv.diagnostics import Code
from traceconv.importers._ansi import plain_text
from traceconv.ir.builder import Builder
from traceconv.source import BATCH_BYTES, Line, Source

_MOST_LINES = 1 << 16
#: Longer ones are worth being looked at each time.
_LONGEST = 256
_FEW_BYTES = 256
#: Some lines with their ends, and their numbers.
_Batch = tuple[Sequence[int], list[bytes]]


class IdleLines:
    """Hands the lines of a text to an importer, but for those that are known to mean nothing.

    Args:
        out: where lines are counted.

    Attributes:
        before: the line before the one at hand, or the last one, with its end; empty where there is none.
        after: the line behind the one at hand, likewise.
        last: the number of the last line of all that were read, 0 before.
    """

    def __init__(self, out: Builder) -> None:
        self.before = self.after = b""
        self.last = 0
        self._out = out
        self._count: Callable[[int], None] | None = None
        self._known: dict[bytes, Callable[[int], None]] = {}
        self._seen: Counter[bytes] = Counter()
        self._number = self._pulled = 0  # of rows: the number of the last line, and how many they have

    # -- reading --------------------------------------------------------------------------------------------------

    def read(self, source: Source, *, keep_ends: bool = False, again: bool = False) -> Iterator[Line]:
        """The lines that may mean something, with their numbers.

        Args:
            source: the text.
            keep_ends: whether line ends stay in the lines.
            again: whether the text was read before, so that its lines are counted as read already.
        """
        known, seen, last = self._known, self._seen, b""
        known.clear()  # whoever read before may have stopped on the way, and have meant something else
        seen.clear()
        for (numbers, lines), (_, following) in _with_next(source.batches()):
            self.last = numbers[-1]
            if not again:
                self._out.balance.read += len(lines)
            if known and known.keys() >= set(lines):
                seen.update(lines)
                last = lines[-1]
                continue
            for at, line in enumerate(lines):
                if line in known:
                    seen[line] += 1
                    continue
                self.before = lines[at - 1] if at else last
                self.after = lines[at + 1] if at + 1 < len(lines) else following[0] if following else b""
                if seen:
                    self.finish()
                self._count = None
                yield Line(numbers[at], line if keep_ends else line.rstrip(b"\r\n"))
                if self._count is not None or known:
                    self._know(line)
            last = lines[-1]
        self.before, self.after = last, b""
        self.finish()

    def look_at(self, data: bytes, at: int, read: Callable[[int, bytes], None], number: int) -> tuple[int, int]:
        """Have an importer read the line at a place of some data, and pass over the known ones behind it.

        Args:
            data: whole lines.
            at: where the line begins.
            read: reads it; it is told its number and the line with its end.
            number: that number.

        Returns:
            Where the next line begins that may mean something, and its number. `before` is the line before that.
        """
        line = data[at : data.find(b"\n", at) + 1 or len(data)]
        at += len(line)
        if self._seen:
            self.finish()
        self._count = None
        read(number, line)
        self.before = line
        if self._count is not None or self._known:
            self._know(line)
        if self._count is None or data[at : data.find(b"\n", at) + 1] not in self._known:
            return at, number + 1
        at, count = self._pass_over(data, at)
        return at, number + 1 + count

    def _pass_over(self, data: bytes, at: int) -> tuple[int, int]:
        """The place behind the known lines of some data that begin at a place, and how many these are."""
        known, stream, size, count = self._known, io.BytesIO(data), _FEW_BYTES, 0
        stream.seek(at)
        while lines := stream.readlines(size):
            if not known.keys() >= set(lines):
                lines = lines[: next(place for place, line in enumerate(lines) if line not in known)]
                size = 0
            self._seen.update(lines)
            at += sum(map(len, lines))
            count += len(lines)
            self.before = lines[-1] if lines else self.before
            if not size:
                break
            size = min(2 * size, BATCH_BYTES)
        return at, count

    def finish(self) -> None:
        """Count what was passed over and is not counted yet; `read` does so at its end."""
        for line, count in self._seen.items():
            self._known[line](count)
        self._seen.clear()

    def _know(self, line: bytes) -> None:
        """A line was looked at: know it if it means nothing, else nothing any more."""
        if self._count is None or len(self._known) >= _MOST_LINES:
            self._known.clear()
        if self._count is not None and len(line) <= _LONGEST:
            self._known[line] = self._count

    # -- said by the importer -------------------------------------------------------------------------------------

    def idle(self, count: Callable[[int], None]) -> None:
        """Count the line at hand, which means nothing: it changes neither what other lines mean nor what they become.

        Args:
            count: counts so many lines like it, now one.
        """
        count(1)
        self._count = count

    def forget(self) -> None:
        """The line at hand does mean something, whatever was said before."""
        self._count = None

    def merged(self, what: str) -> None:
        """Count the line at hand, which means nothing, among those that frame others."""
        self.idle(partial(self._merge, what))

    def skip(self, code: Code, number: int, detail: str = "") -> None:
        """Count the line at hand, which means nothing and is left out."""
        self._out.skip(code, number, detail)
        self.once_placed(code, partial(self._skip, code, number))

    def problem(self, code: Code, number: int, skipped: str) -> None:
        """Count the line at hand, which means nothing and is left out, as a problem and, in other words, as skipped."""
        self._problem(code, number, skipped, 1)
        self.once_placed(code, partial(self._problem, code, number, skipped))

    def once_placed(self, code: Code, count: Callable[[int], None]) -> None:
        """Know the line at hand, which was counted, if the places of further problems of a kind are not kept."""
        if self._out.info.diagnostics.is_full(code):
            self._count = count

    def _merge(self, what: str, count: int) -> None:
        self._out.balance.merged[what] += count

    def _skip(self, code: Code, number: int, count: int) -> None:
        self._out.skip(code, number, count=count)

    def _problem(self, code: Code, number: int, skipped: str, count: int) -> None:
        self._out.balance.skipped[skipped] += count
        self._out.problem(code, number, count=count)


class IdleRows(IdleLines):
    """Likewise for the rows of a CSV, whose quoted cells may hold line ends. What is read counts rows, not lines."""

    def rows(self, source: Source, broken: Callable[[csv.Error], list[str]]) -> Iterator[tuple[int, list[str]]]:
        """The cells of the rows that may mean something, and the number of their last line.

        Args:
            source: the text.
            broken: what to take for the cells of a row that cannot be read.
        """
        reader = csv.reader(self._texts(source))
        while True:
            self._pulled = 0
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                cells = broken(error)
            yield self._number, cells
            if self._pulled != 1:  # the last line alone is no row
                self.forget()

    def _texts(self, source: Source) -> Iterator[str]:
        for number, line in self.read(source, keep_ends=True, again=True):
            self._number = number
            text = plain_text(line.decode("utf-8", "replace"))
            if "\r" not in text[:-2]:
                self._pulled += 1
                yield text
                continue
            for part in io.StringIO(text, newline=""):
                self._pulled += 1
                yield part
                self.forget()

    def skip(self, code: Code, number: int, detail: str = "") -> None:
        """Count the row at hand, which means nothing and is left out."""
        self._out.balance.read += 1
        super().skip(code, number, detail)

    def _skip(self, code: Code, number: int, count: int) -> None:
        self._out.balance.read += count
        super()._skip(code, number, count)


def _with_next(batches: Iterable[_Batch]) -> Iterator[tuple[_Batch, _Batch]]:
    return pairwise(chain(batches, [((), [])]))
