"""The interface of importers: what they state about their format, its signature, and their answer to a head."""

from __future__ import annotations

import enum
import re
from abc import ABC, abstractmethod
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeVar

from msgspec import Struct

from traceconv.io.source import Head, Source
from traceconv.model.clocks import ClockDomain
from traceconv.model.marks import NO_MARKS, FormatMarks

if TYPE_CHECKING:
    from traceconv.model.builder import Builder
    from traceconv.model.diagnostics import Code
    from traceconv.model.source_info import Form, Layer


#: The first byte of a protobuf whose first field is 1 and has a length, unless it is white space before JSON. Perfetto
#: decides so, too: a text is JSON if it begins with a brace, or a bracket and a brace, and a quote between white space.
FIELD_1 = rb"\A\n(?!\s*(?:\{\s*[\"}]|\[\s*[{\]]))"


class Certainty(enum.IntEnum):
    """The certainty of an importer that an input is of its format."""

    NO = 0
    FALLBACK = 1
    MAYBE = 2
    YES = 3


class Signature(NamedTuple):
    """What every input of a format contains in its head, so that others are excluded before its importer is loaded.

    The names of the tables of a database and the last bytes of JSON count as part of the head.

    Attributes:
        words: texts in lower case. An input contains one of those between ` | `, such as "nodes & func_name | op #":
            all that ` & ` connects.
        patterns: or it contains a match of one of these. A pattern that begins with a class of characters, or with a
            text, is found ten times as fast as alternatives at its beginning.
        most: the highest certainty of the importer. It is not asked if another one is more certain.
    """

    words: str = ""
    patterns: tuple[bytes, ...] = ()
    most: Certainty = Certainty.YES

    def fits(self, text: bytes) -> bool:
        """Return whether an input may be of this format, by the text of its head (see `searched`)."""
        has_words = any(all(word in text for word in words) for words in _choices(self.words))
        return has_words or any(re.search(pattern, text) for pattern in self.patterns)


@cache
def _choices(words: str) -> list[list[bytes]]:
    return [choice.encode().split(b" & ") for choice in words.split(" | ")] if words else []


class Match(Struct, frozen=True):
    """The answer of an importer to the head of an input, with a short reason for people."""

    certainty: Certainty
    reason: str

    @classmethod
    def yes(cls, reason: str) -> Match:
        """Return the answer that it is this format and no other."""
        return cls(Certainty.YES, reason)

    @classmethod
    def maybe(cls, reason: str) -> Match:
        """Return the answer that it can be read as this format, unless a more specific one claims it."""
        return cls(Certainty.MAYBE, reason)

    @classmethod
    def fallback(cls, reason: str) -> Match:
        """Return the answer that it can be read by its general form, if no other format claims it."""
        return cls(Certainty.FALLBACK, reason)

    @classmethod
    def no(cls, reason: str) -> Match:
        """Return the answer that it is not this format."""
        return cls(Certainty.NO, reason)


Value = TypeVar("Value", str, bool, int, None)


def option(default: Value, help: str) -> Value:
    """Return a field of an importer that users can set with `-O`.

    Args:
        default: the value without `-O`; None for a number that is not given.
        help: what it is, for `traceconv formats NAME`.
    """
    made: Value = field(default=default, metadata={"help": help})
    return made


class Importer(ABC):
    """An input format: a frozen dataclass whose fields are its options (texts, booleans or integers; see `option`).

    Attributes:
        name: lowercase, unique and stable, such as "onednn-verbose".
        title: one line for `traceconv formats`.
        url: where the format is described.
        versions: the supported versions, for the table of formats.
        signature: what all its inputs contain. Formats of traceconv itself declare it, and are loaded only for these.
        clock: the clock domain of its timestamps.
        layer: the layer of software that its slices are recorded in, if it is the same for all of them.
        record: the command, or commands one in a line, that record a file which can be merged with others.
        skips: the codes of data that is skipped by design. Their help states the reason.
        only_named: whether the format is so general that files of folders are read only if named.
        reads_arrivals: whether it uses the times that log collectors put before lines.
        line_up: how to align such a file with others: options of the recording and of the import. `FILE=` in it stands
            for the name of the file, which `traceconv clocks` fills in.
        with_perf: lines of commands and comments (#) that record it for `report --section layers`.
        becomes: pairs of a part of the input and what it becomes in the trace.
        lost: sentences about data that such files lack, or that are not read.
        unrecorded: why no file of its tool was recorded for this project, and what the importer rests on instead.
        marks: the meaning of its slices and flows, such as launches of device work.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    url: ClassVar[str]
    versions: ClassVar[str]
    signature: ClassVar[Signature] = Signature()
    clock: ClassVar[ClockDomain]
    layer: ClassVar[Layer | None] = None
    record: ClassVar[str]
    skips: ClassVar[tuple[Code, ...]] = ()
    only_named: ClassVar[bool] = False
    reads_arrivals: ClassVar[bool] = False
    line_up: ClassVar[str]
    with_perf: ClassVar[str] = ""
    becomes: ClassVar[tuple[tuple[str, str], ...]]
    lost: ClassVar[tuple[str, ...]] = ()
    unrecorded: ClassVar[str] = ""
    marks: ClassVar[FormatMarks] = NO_MARKS

    @abstractmethod
    def sniff(self, head: Head) -> Match:
        """Return whether the input is of this format, by its head (and tail) alone; without side effects.

        It must not raise. If it does, the answer counts as NO, with a warning, so that another importer can still read
        the input; in tests the warning is an error.
        """

    @abstractmethod
    def read(self, source: Source, out: Builder) -> None:
        """Read the whole input into the builder."""

    def form(self, head: Head) -> Form | None:
        """Return the form of a recording that tools convert, by the head of a file; None if there is only one.

        Of several forms of a recording in a folder, the best is read.
        """
        return None
