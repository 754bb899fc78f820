"""Skip and count runs of lines without meaning for an importer, in one step.

Most lines of a text that are not records are only counted: empty lines, output of other programs. An importer that only
counts a line calls a method with the way to count it, and a pattern of lines that are to be counted in the same way. A
regular expression then finds such lines in the text that follows, and they are counted without being passed to the
importer. A line that the importer does read ends this, since it may have changed the meaning of other lines.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, pairwise

from traceconv.families.common.ansi import plain_text
from traceconv.io.shown import Counted
from traceconv.io.source import Line, Source
from traceconv.model.builder import Builder
from traceconv.model.diagnostics import Code

#: A function that counts a number of lines.
Count = Callable[[int], None]
#: Lines with their ends, and their numbers.
_Block = tuple[Sequence[int], bytes]

#: The pattern of lines of white space only.
BLANK = rb"\s*\n"
#: The patterns of lines of a CSV without a cell, and with a cell of white space.
EMPTY, SPACES = rb"\r?\n", rb"[ \t\f\v]+\r?\n"


def lines_but(*meaning: bytes, or_blank: bool = False) -> bytes:
    r"""Return the pattern of lines without meaning: those that do not start with one of the given patterns.

    Args:
        meaning: the patterns of lines with meaning.
        or_blank: whether blank lines are among them.

    The pattern never matches lines that may be read differently than they look: long ones, and those with control
    characters, such as escape sequences, or non-ASCII white space. The given patterns must match all lines that the
    importer gives a meaning, which may see text instead of bytes; `SPACE` and `DIGIT` ensure that for white space and
    digits.
    """
    others = b"(?!" + SPACE + rb"*+\n|[^\n]{1001}|" + b"|".join(meaning) + b")" + _PLAIN + rb"\r?\n"
    return BLANK + b"|" + others if or_blank else others


_PLAIN = (
    rb"(?:[^\n\r\x1b-\x1f\xc2\xe1-\xe3]++|\xc2(?![\x85\xa0])|\xe1(?!\x9a\x80)|"
    rb"\xe2(?!\x80[\x80-\x8a\xa8\xa9\xaf]|\x81\x9f)|\xe3(?!\x80\x80))*+"
)
#: White space in a line that may be skipped, and characters that may be digits.
SPACE = rb"[ \t\r\f\v]"
DIGIT = rb"[\d\x80-\xff]"


_NOT_ASCII = re.compile(rb"[\x80-\xff]+")
#: In text it stands for bytes that are not UTF-8.
_UNDECODABLE = "\ufffd".encode()


def literal(text: str) -> bytes:
    """Return the pattern of a text; characters beside undecodable bytes may be any outside of ASCII.

    What such a run matches ends at the next character of ASCII, so that few bytes are tried again.
    """
    return _NOT_ASCII.sub(lambda run: rb"[\x80-\xff]+" if _UNDECODABLE in run[0] else run[0], re.escape(text.encode()))


def holds(part: bytes, times: int = 1) -> bytes:
    """Return the pattern of the start of lines that contain `part` at least `times` times without overlap."""
    return rb"(?>[^\n]*?(?:%b)){%d}" % (part, times)


@lru_cache(maxsize=256)
def _runs(kinds: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Return a pattern that finds runs of lines of each kind; the group number is the kind.

    A second group in it holds a line, so that equal lines behind it are found by comparison.
    """
    return re.compile(b"".join(rb"((?:(%b)\%d*+)++)|" % (kind, 2 * at) for at, kind in enumerate(kinds, 1)))


class IdleLines:
    """Yields the lines of a text to an importer, without those that are known to have no meaning.

    Args:
        out: the builder, which counts lines.

    Attributes:
        last: the number of the last line read, 0 before the first.
        others: the number of lines of other programs.
    """

    def __init__(self, out: Builder) -> None:
        self.last = self.others = 0
        self._out = out
        self._kinds: dict[bytes, Count] = {}
        self._is_idle = False
        self._data, self._begin, self._end = b"", 0, 0  # the position of the current line
        self._passed, self._carried = 0, b""  # the start of the skipped lines before it, and of earlier ones
        self._earlier = self._later = b""  # the text before and after the data
        self._next = 0  # the number of the line after the last one that was read or skipped
        self._number = self._pulled = 0  # for rows: the number of the last line, and the number of lines

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def before(self) -> bytes:
        """The line before the current one, or the last one, with its end; b"" without one."""
        begin = self._begin
        return self._data[self._data.rfind(b"\n", 0, begin - 1) + 1 : begin] if begin else self._earlier

    @property
    def passed(self) -> bytes:
        """The skipped lines directly before the current one."""
        return self._carried + self._data[self._passed : self._begin]

    @property
    def after(self) -> bytes:
        """The line after the current one, with its end; b"" without one."""
        data, at = (self._data, self._end) if self._end < len(self._data) else (self._later, 0)
        return data[at : _end_of_line(data, at)]

    def read(self, source: Source, *, keep_ends: bool = False, again: bool = False) -> Iterator[Line]:
        """Yield the lines that may have a meaning, with their numbers.

        Args:
            source: the text.
            keep_ends: whether line ends stay in the lines.
            again: whether the text is read once more, so that its lines are already counted as read.
        """
        self._kinds.clear()  # an earlier reader may have stopped midway, and have given lines another meaning
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
        """Read the line at a position with a function of the importer, and skip the lines without meaning behind it.

        Args:
            data: whole lines.
            at: the start of the line.
            read: gets the number of the line, and the line with its end.
            number: the number of the line.

        Returns:
            The start of the next line that may have a meaning, and its number. `before` is the line before that one.
        """
        if number != self._next:  # lines were read elsewhere since
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
        """Skip and count the lines without meaning from a position on.

        Return the position behind them, and their number.
        """
        counts = [0] * len(self._kinds)
        for run in _runs(tuple(self._kinds)).finditer(data, at):
            if run.lastindex is None:
                break
            counts[run.lastindex // 2] += data.count(b"\n", at, run.end())
            at = run.end()
        for count, passed in zip(self._kinds.values(), counts, strict=True):
            if passed:
                count(passed)
        return at, sum(counts)

    def _last_line(self) -> bytes:
        """Return the last line of the data."""
        return self._data[self._data.rfind(b"\n", 0, -1) + 1 :]

    # -- said by the importer -------------------------------------------------------------------------------------

    def idle(self, count: Count, like: bytes = b"") -> None:
        """Count the current line, which has no meaning: it does not change the meaning of other lines.

        Args:
            count: counts lines; called with 1 now, and later with the number of lines like it.
            like: the pattern of whole lines with their ends that are to be counted in the same way.
        """
        count(1)
        self._know(count, like)

    def _know(self, count: Count, like: bytes) -> None:
        self._is_idle = True
        if like:
            self._kinds.setdefault(like, count)

    def other(self, like: bytes = b"") -> None:
        """Count the current line, which has no meaning, as one of other programs."""
        self.idle(self._add_others, like)

    def tell_others(self, code: Code, skipped: Counted | None = None) -> None:
        """Count the lines of other programs, if any, as a problem; `skipped` is their name in the balance."""
        if self.others and skipped:
            self._problem(code, "", skipped, self.others)
        elif self.others:
            self._out.skip(code, count=self.others)

    def forget(self) -> None:
        """Take back that the current line has no meaning."""
        self._kinds.clear()

    def merged(self, kind: Counted, like: bytes = b"") -> None:
        """Count the current line, which has no meaning, as merged: a heading or the like."""
        self.idle(partial(self._merge, kind), like)

    def skip(self, code: Code, number: int, detail: str = "", like: bytes = b"") -> None:
        """Count the current line, which has no meaning, as skipped."""
        self._out.skip(code, number, detail)
        self.once_placed(code, partial(self._skip, code, number), like)

    def problem(self, code: Code, number: int, skipped: Counted, like: bytes = b"") -> None:
        """Count the current line as a problem, and as skipped under another name."""
        self._problem(code, number, skipped, 1)
        self.once_placed(code, partial(self._problem, code, number, skipped), like)

    def once_placed(self, code: Code, count: Count, like: bytes = b"") -> None:
        """Skip lines like the current one, which was counted, once no more places of the problem are kept."""
        if self._out.info.diagnostics.is_full(code):
            self._know(count, like)

    def _add_others(self, count: int) -> None:
        self.others += count

    def _merge(self, kind: Counted, count: int) -> None:
        self._out.balance.merged[kind] += count

    def _skip(self, code: Code, number: int, count: int) -> None:
        self._out.skip(code, number, count=count)

    def _problem(self, code: Code, number: int | str, skipped: Counted, count: int) -> None:
        self._out.balance.skipped[skipped] += count
        self._out.problem(code, number, count=count)


class IdleRows(IdleLines):
    """The same for the rows of a CSV, whose quoted cells may contain line ends. Rows are counted as read, not lines."""

    def rows(self, source: Source, broken: Callable[[csv.Error], list[str]]) -> Iterator[tuple[int, list[str]]]:
        """Yield the cells of the rows that may have a meaning, and the number of their last line.

        Args:
            source: the text.
            broken: returns the cells of a row that cannot be parsed.
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
            if self._pulled != 1:  # the last line of a row is not a row by itself
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
        """Count the current row, which has no meaning, as skipped."""
        self._out.balance.read += 1
        super().skip(code, number, detail, like)

    def _skip(self, code: Code, number: int, count: int) -> None:
        self._out.balance.read += count
        super()._skip(code, number, count)


def _end_of_line(data: bytes, at: int) -> int:
    return data.find(b"\n", at) + 1 or len(data)


def _with_next(blocks: Iterable[_Block]) -> Iterator[tuple[_Block, _Block]]:
    return pairwise(chain(blocks, [((), b"")]))
