"""The interface of importers: what they state about their format, and their answer to the head of an input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from traceconv.families.index import Certainty
from traceconv.io.source import Head, Source
from traceconv.model.clocks import ClockDomain
from traceconv.model.marks import NO_MARKS, FormatMarks

if TYPE_CHECKING:
    from traceconv.model.builder import Builder
    from traceconv.model.diagnostics import Code
    from traceconv.model.source_info import Form, Layer


@dataclass(frozen=True, slots=True)
class Match:
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


class Importer(Protocol):
    """An input format: a frozen dataclass whose fields are its options (texts, booleans or integers; see `option`).

    Attributes:
        name: lowercase, unique and stable, such as "onednn-verbose".
        title: one line for `traceconv formats`.
        url: where the format is described.
        versions: the supported versions, for the table of formats.
        clock: the clock domain of its timestamps.
        record: the command, or commands one in a line, that record a file which can be merged with others.
        line_up: how to align such a file with others: options of the recording and of the import. `FILE=` in it stands
            for the name of the file, which `traceconv clocks` fills in.
        becomes: pairs of a part of the input and what it becomes in the trace.
        lost: sentences about data that such files lack, or that are not read.

    It may declare more: the attributes of `Extras`.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    url: ClassVar[str]
    versions: ClassVar[str]
    clock: ClassVar[ClockDomain]
    record: ClassVar[str]
    line_up: ClassVar[str]
    becomes: ClassVar[tuple[tuple[str, str], ...]]
    lost: ClassVar[tuple[str, ...]]

    def sniff(self, head: Head) -> Match:
        """Return whether the input is of this format, by its head (and tail) alone; without side effects.

        It must not raise. If it does, the answer counts as NO, with a warning, so that another importer can still read
        the input; in tests the warning is an error.
        """

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole input into the builder."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What an importer may declare, too, as attributes of these names; those that it lacks have these values.

    Attributes:
        skips: the codes of data that is skipped by design. Their help states the reason.
        with_perf: lines of commands and comments (#) that record it for `report --section layers`.
        layer: the layer of software that its slices are recorded in, if it is the same for all of them.
        marks: the meaning of its slices and flows, such as launches of device work.
        form: a method for recordings that tools convert: returns the `Form` of a file by its head. Of several forms of
            a recording in a folder, the best is read.
        only_named: whether the format is so general that files of folders are read only if named.
        reads_arrivals: whether it uses the times that log collectors put before lines.
        unrecorded: why no file of its tool was recorded for this project, and what the importer rests on instead.
    """

    skips: tuple[Code, ...] = ()
    with_perf: str = ""
    layer: Layer | None = None
    marks: FormatMarks = NO_MARKS
    form: Callable[[Head], Form] | None = None
    only_named: bool = False
    reads_arrivals: bool = False
    unrecorded: str = ""


EXTRAS = tuple(one.name for one in fields(Extras))


def extras(importer: Importer | type[Importer]) -> Extras:
    """Return what an importer declares besides what it must."""
    return Extras(**{name: getattr(importer, name) for name in EXTRAS if hasattr(importer, name)})
