"""Lines that mean nothing where they stand, however many there are: passed over together, and counted.

Most of what a text may hold beside its records is only counted: empty lines, output of other programs. An importer
that does no more with a line says how it is counted, and which lines are like it. Those that follow are then found by
one regular expression in the whole text and counted without being handed to the importer, until there is one of which
it says nothing, since that one may have changed what lines mean.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise

from traceconv.families.common.ansi import plain_text
from traceconv.io.source import Line, Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code

#: Counts so many lines.
Count = Callable[[int], None]
#: Some lines with their ends, and their numbers.
_Block = tuple[Sequence[int], bytes]

#: Like `lines_but`: lines without anything but white space.
BLANK = rb"\s*\n"
#: Likewise, lines of a CSV without a cell, and such with a cell of white space.
EMPTY, SPACES = rb"\r?\n", rb"[ \t\f\v]+\r?\n"


def lines_but(*meaning: bytes, or_blank: bool = False) -> bytes:
    r"""Return the expression of lines that mean nothing: all that do not begin with one of some expressions.

    Args:
        meaning: the expressions.
        or_blank: whether blank lines are among them.

    Some lines are never like others, since they may look otherwise than they are: long ones, and those with a control
    character, such as an escape sequence, or white space beyond ASCII. An expression must fit all that the importer,
    which may see text and not bytes, takes for something; `SPACE` and `DIGIT` do so for white space and digits.
    """
    others = b"(?!" + SPACE + rb"*+\n|[^\n]{1001}|" + b"|".join(meaning) + b")" + _PLAIN + rb"\r?\n"
    return BLANK + b"|" + others if or_blank else others


_PLAIN = (
    rb"(?:[^\n\r\x1b-\x1f\xc2\xe1-\xe3]++|\xc2(?![\x85\xa0])|\xe1(?!\x9a\x80)|"
    rb"\xe2(?!\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3(?!\x80\x80))*+"
)
#: White space in a line that may be like others, and what may be a digit.
SPACE = rb"[ \t\r\f\v]"
DIGIT = rb"[\d\x80-\xff]"


def literal(text: str) -> bytes:
    """Return the expression of a text; for what could not be decoded it is one of anything."""
    return re.escape(text.encode()).replace(b"\xef\xbf\xbd", rb"[^\n]*?")


def holds(what: bytes, times: int = 1) -> bytes:
    """Return the expression of the start of lines in which something stands, so many times without overlap."""
    return rb"(?>[^\n]*?(?:%b)){%d}" % (what, times)


@lru_cache(maxsize=256)
def _runs(kinds: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Find runs of lines of a kind, the group of which has its number; without any, where there is no further one.

    A second group in it has a line, and equal ones behind it are found by comparing them.
    """
    return re.compile(b"".join(rb"((?:(%b)\%d*+)++)|" % (kind, 2 * at) for at, kind in enumerate(kinds, 1)))


class IdleLines:
    """Hands the lines of a text to an importer, but for those that are known to mean nothing.

    Args:
        out: where lines are counted.

    Attributes:
        last: the number of the last line of all that were read, 0 before.
        others: how many lines were of others, such as the program's own output.
    """

    def __init__(self, out: Builder) -> None:
        self.last = self.others = 0
        self._out = out
        self._kinds: dict[bytes, Count] = {}
        self._is_idle = False
        self._data, self._begin, self._end = b"", 0, 0  # where the line at hand stands
        self._passed, self._carried = 0, b""  # where the lines before it begin that were passed over, and earlier ones
        self._earlier = self._later = b""  # what comes before and behind the data
        self._next = 0  # the number of the line behind the last one that was looked at or passed over
        self._number = self._pulled = 0  # of rows: the number of the last line, and how many they have

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def before(self) -> bytes:
        """The line before the one at hand, or the last one, with its end; empty where there is none."""
        begin = self._begin
        return self._data[self._data.rfind(b"\n", 0, begin - 1) + 1 : begin] if begin else self._earlier

    @property
    def passed(self) -> bytes:
        """The lines directly before the one at hand that were passed over."""
        return self._carried + self._data[self._passed : self._begin]

    @property
    def after(self) -> bytes:
        """The line behind the one at hand, likewise."""
        data, at = (self._data, self._end) if self._end < len(self._data) else (self._later, 0)
        return data[at : _end_of_line(data, at)]

    def read(self, source: Source, *, keep_ends: bool = False, again: bool = False) -> Iterator[Line]:
        """Yield the lines that may mean something, with their numbers.

        Args:
            source: the text.
            keep_ends: whether line ends stay in the lines.
            again: whether the text was read before, so that its lines are counted as read already.
        """
        self._kinds.clear()  # whoever read before may have stopped on the way, and have meant something else
        self._data = self._earlier = self._carried = b""
        for (numbers, data), (_, self._later) in _with_next(source.blocks()):
            self.last = numbers[-1]
            if not again:
                self._out.balance.read += len(numbers)
            self._earlier, self._data, at, index = self._last_line(), data, 0, 0
            while at < len(data):
                self._passed = at
                if self._kinds:
                    at, count = self._pass_over(data, at)
                    index += count
                    if at == len(data):
                        self._carried = data[self._passed :]
                        break
                end = data.find(b"\n", at) + 1 or len(data)
                self._begin, self._end, self._is_idle = at, end, False
                line = data[at:end]
                yield Line(numbers[index], line if keep_ends else line.rstrip(b"\r\n"))
                if self._kinds and not self._is_idle:
                    self._kinds.clear()
                self._carried = b""
                at, index = end, index + 1
            self._begin = self._end = len(data)
        self._later = b""

    def look_at(self, data: bytes, at: int, read: Callable[[int, bytes], None], number: int) -> tuple[int, int]:
        """Have an importer read the line at a place of some data, and pass over the ones that mean nothing behind it.

        Args:
            data: whole lines.
            at: where the line begins.
            read: reads it; it is told its number and the line with its end.
            number: that number.

        Returns:
            Where the next line begins that may mean something, and its number. `before` is the line before that.
        """
        if number != self._next:  # somebody else has read lines since
            self._kinds.clear()
        self._data, self._begin, self._end = data, at, _end_of_line(data, at)
        self._is_idle = False
        read(number, data[at : self._end])
        if not self._is_idle:
            self._kinds.clear()
        at, count = self._pass_over(data, self._end) if self._kinds else (self._end, 0)
        self._begin = self._end = at
        self._next = number + 1 + count
        return at, self._next

    def _pass_over(self, data: bytes, at: int) -> tuple[int, int]:
        """Return the place behind the lines from a place on that mean nothing, and how many these are.

        They are counted.
        """
        counts = [0] * len(self._kinds)
        for run in _runs(tuple(self._kinds)).finditer(data, at):
            if run.lastindex is None:
                break
            counts[run.lastindex // 2] += data.count(b"\n", at, run.end())
            at = run.end()
        for count, found in zip(self._kinds.values(), counts, strict=True):
            if found:
                count(found)
        return at, sum(counts)

    def _last_line(self) -> bytes:
        """Return the last line of the data."""
        return self._data[self._data.rfind(b"\n", 0, -1) + 1 :]

    # -- said by the importer -------------------------------------------------------------------------------------

    def idle(self, count: Count, like: bytes = b"") -> None:
        """Count the line at hand, which means nothing: it changes neither what other lines mean nor what they become.

        Args:
            count: counts so many lines like it, now one.
            like: the expression of whole lines with their ends of which the same would be said here.
        """
        count(1)
        self._know(count, like)

    def _know(self, count: Count, like: bytes) -> None:
        self._is_idle = True
        if like:
            self._kinds.setdefault(like, count)

    def other(self, like: bytes = b"") -> None:
        """Count the line at hand, which means nothing, among those of others."""
        self.idle(self._add_others, like)

    def tell_others(self, code: Code, skipped: str = "") -> None:
        """Count the lines of others, if there were any, as left out; `skipped` is their own name in the balance."""
        if self.others and skipped:
            self._problem(code, "", skipped, self.others)
        elif self.others:
            self._out.skip(code, count=self.others)

    def forget(self) -> None:
        """Forget the line at hand: it does mean something, whatever was said before."""
        self._kinds.clear()

    def merged(self, what: str, like: bytes = b"") -> None:
        """Count the line at hand, which means nothing, among those that frame others."""
        self.idle(partial(self._merge, what), like)

    def skip(self, code: Code, number: int, detail: str = "", like: bytes = b"") -> None:
        """Count the line at hand, which means nothing and is left out."""
        self._out.skip(code, number, detail)
        self.once_placed(code, partial(self._skip, code, number), like)

    def problem(self, code: Code, number: int, skipped: str, like: bytes = b"") -> None:
        """Count the line at hand, which means nothing and is left out, as a problem and, in other words, as skipped."""
        self._problem(code, number, skipped, 1)
        self.once_placed(code, partial(self._problem, code, number, skipped), like)

    def once_placed(self, code: Code, count: Count, like: bytes = b"") -> None:
        """Know the line at hand, which was counted, if the places of further problems of a kind are not kept."""
        if self._out.info.diagnostics.is_full(code):
            self._know(count, like)

    def _add_others(self, count: int) -> None:
        self.others += count

    def _merge(self, what: str, count: int) -> None:
        self._out.balance.merged[what] += count

    def _skip(self, code: Code, number: int, count: int) -> None:
        self._out.skip(code, number, count=count)

    def _problem(self, code: Code, number: int | str, skipped: str, count: int) -> None:
        self._out.balance.skipped[skipped] += count
        self._out.problem(code, number, count=count)


class IdleRows(IdleLines):
    """Likewise for the rows of a CSV, whose quoted cells may hold line ends. What is read counts rows, not lines."""

    def rows(self, source: Source, broken: Callable[[csv.Error], list[str]]) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of the rows that may mean something, and the number of their last line.

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
            if self._pulled != 1:  # the last line alone is not a row
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

    def skip(self, code: Code, number: int, detail: str = "", like: bytes = b"") -> None:
        """Count the row at hand, which means nothing and is left out."""
        self._out.balance.read += 1
        super().skip(code, number, detail, like)

    def _skip(self, code: Code, number: int, count: int) -> None:
        self._out.balance.read += count
        super()._skip(code, number, count)


def _end_of_line(data: bytes, at: int) -> int:
    return data.find(b"\n", at) + 1 or len(data)


def _with_next(blocks: Iterable[_Block]) -> Iterator[tuple[_Block, _Block]]:
    return pairwise(chain(blocks, [((), b"")]))
