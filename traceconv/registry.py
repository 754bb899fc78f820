"""Which importers exist, and which of them an input is for.

Each importer is asked about the head of the input and answers YES, MAYBE or NO with a reason. A single YES wins,
else a single MAYBE. There are no priorities and no dependence on the order of registration.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from traceconv.clocks import ClockDomain
from traceconv.errors import AmbiguousFormat, UnrecognizedFormat, UsageError
from traceconv.source import Head, Source

if TYPE_CHECKING:
    from traceconv.ir.builder import Builder


class Certainty(enum.IntEnum):
    """How sure an importer is that an input is its own."""

    NO = 0
    MAYBE = 1
    YES = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
    """The answer of an importer to the head of an input, with a short reason for people."""

    certainty: Certainty
    reason: str

    @classmethod
    def yes(cls, reason: str) -> Match:
        """It is this format and nothing else."""
        return cls(Certainty.YES, reason)

    @classmethod
    def maybe(cls, reason: str) -> Match:
        """It can be read as this format; a more specific one may claim it."""
        return cls(Certainty.MAYBE, reason)

    @classmethod
    def no(cls, reason: str) -> Match:
        """It is not this format."""
        return cls(Certainty.NO, reason)


class Importer(Protocol):
    """A format that comes in: a frozen dataclass whose fields are its options.

    Attributes:
        name: lowercase, unique, stable: "onednn-verbose".
        title: one line for `traceconv formats`.
        url: where the format is described.
        versions: what is understood, for the table of formats.
        clock: the domain of native timestamps.
        record: the command that produces such a file.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    url: ClassVar[str]
    versions: ClassVar[str]
    clock: ClassVar[ClockDomain]
    record: ClassVar[str]

    def sniff(self, head: Head) -> Match:
        """Whether the input is of this format: pure, sees a prefix only, never raises."""

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole input into the builder."""


_importers: dict[str, type[Importer]] = {}
_Class = TypeVar("_Class", bound=type)


def importer(cls: _Class) -> _Class:
    """Class decorator: register an importer. Raises ValueError when the name is taken."""
    name = cls.name  # type: ignore[attr-defined]
    if name in _importers:
        raise ValueError(f"importer {name} is registered twice")
    _importers[name] = cls
    return cls


def importers() -> dict[str, type[Importer]]:
    """All registered importers by name, in alphabetical order."""
    importlib.import_module("traceconv.importers")
    return dict(sorted(_importers.items()))


def importer_class(name: str) -> type[Importer]:
    """The importer of that name. Raises UsageError with the known names."""
    known = importers()
    if name not in known:
        raise UsageError(f"unknown format {name!r}", hint=f"known formats: {', '.join(known)}")
    return known[name]


def identify(source: Source) -> tuple[type[Importer], Match]:
    """The importer that an input is for.

    Raises:
        UnrecognizedFormat: nobody claims it.
        AmbiguousFormat: more than one does, equally surely.
    """
    head = source.head()
    answers = [(cls, cls().sniff(head)) for cls in importers().values()]
    for certainty in (Certainty.YES, Certainty.MAYBE):
        claims = [(cls, match) for cls, match in answers if match.certainty is certainty]
        if len(claims) == 1:
            return claims[0]
        if claims:
            names = "; ".join(f"{cls.name}: {match.reason}" for cls, match in claims)
            raise AmbiguousFormat(
                f"{source.display}: several formats fit ({names})", hint="choose one with --from NAME"
            )
    raise _unrecognized(source, head, answers)


def _unrecognized(source: Source, head: Head, answers: list[tuple[type[Importer], Match]]) -> UnrecognizedFormat:
    if not head.data:
        return UnrecognizedFormat(
            f"{source.display}: the file is empty",
            hint="was the profiler stopped in an orderly way? Several write their file only at the end",
        )
    if head.data[:1] == b"\x0a" and not head.data.isascii():
        return UnrecognizedFormat(
            f"{source.display}: looks like a Perfetto trace already",
            hint="`traceconv check` and `open` take such files",
        )
    reasons = "; ".join(f"{cls.name}: {match.reason}" for cls, match in answers)
    return UnrecognizedFormat(
        f"{source.display}: no known format ({reasons})",
        hint="`traceconv formats` lists what is understood; --from NAME forces one",
    )


def options_of(cls: type[Importer]) -> dict[str, Any]:
    """The options of an importer with their defaults."""
    assert dataclasses.is_dataclass(cls)
    return {field.name: field.default for field in dataclasses.fields(cls)}


def option_names(cls: type[Importer]) -> list[str]:
    """The names of the options of an importer."""
    return list(options_of(cls))


def configure(cls: type[Importer], options: dict[str, str]) -> Importer:
    """An importer with options given as text, such as {"pid": "42"}.

    Raises:
        UsageError: an unknown option or a value of the wrong type, with what is known.
    """
    known = options_of(cls)
    values: dict[str, Any] = {}
    for key, text in options.items():
        if key not in known:
            raise UsageError(f"{cls.name} has no option {key!r}", hint=f"its options: {', '.join(known) or 'none'}")
        values[key] = _option_value(cls.name, key, text, known[key])
    return cls(**values)


def _option_value(name: str, key: str, text: str, default: object) -> object:
    if isinstance(default, bool):
        if text.lower() not in ("true", "false"):
            raise UsageError(f"option {key} of {name} is true or false, not {text!r}")
        return text.lower() == "true"
    if isinstance(default, int) or default is None:
        try:
            return int(text)
        except ValueError:
            raise UsageError(f"option {key} of {name} is a whole number, not {text!r}") from None
    return text
