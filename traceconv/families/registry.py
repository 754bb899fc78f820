"""Find the importers, and the one that reads an input.

Each importer looks at the head of the input and answers YES, MAYBE, FALLBACK or NO with a reason. A single YES wins,
else a single MAYBE, else a single FALLBACK, unless the input is a known one that none reads. There are no other
priorities. Importers whose signature is missing
are not loaded. The last bytes of an input are searched for it only if no importer is sure by the first ones, since
an archive is unpacked to its end for them.
"""

from __future__ import annotations

import importlib
import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import groupby
from typing import Any

from traceconv.errors import AmbiguousFormat, InputError, UnrecognizedFormat, UsageError
from traceconv.families.identification import ALIASES, closed, may_end_with_metadata, searched
from traceconv.families.importer import Certainty, Importer, Match
from traceconv.families.index import FORMATS
from traceconv.families.plugins import plugins
from traceconv.io import sqlite
from traceconv.io.source import Head, Source
from traceconv.model.numbers import whole_of


class SniffWarning(UserWarning):
    """An importer raised an error in `sniff`: a bug of the importer, not of the input."""


#: The value of an option in a call: a text as on the command line, or the value that it stands for.
OptionValue = str | int | bool | os.PathLike[str]


def names() -> list[str]:
    """Return the names of all formats that can be read, in alphabetical order."""
    return sorted([*FORMATS, *plugins()])


def importers() -> dict[str, type[Importer]]:
    """Return all importers by name, in alphabetical order."""
    return {name: importer_class(name) for name in names()}


def importer_class(name: str) -> type[Importer]:
    """Return the importer with a name. Raises UsageError with the known names."""
    if name in FORMATS:
        module, _, attribute = FORMATS[name][0].partition(":")
        cls: type[Importer] = getattr(importlib.import_module(f"traceconv.families.{module}"), attribute)
        return cls
    if name in plugins():
        return plugins()[name]
    import difflib

    similar = [known for known in names() if name.lower() in known]
    families = {known.partition("-")[0] for known in names()}
    similar = similar or difflib.get_close_matches(name.lower(), sorted({*names(), *ALIASES, *families}))
    hint = f"did you mean {', '.join(similar)}?" if similar else f"known formats: {', '.join(names())}"
    raise UsageError(f"unknown format {name!r}", hint=hint)


def formats_called(name: str) -> tuple[str, ...]:
    """Return the formats of a name, an alias such as "kineto" or a family such as "perf"; the usual one comes first.

    Raises:
        UsageError: the name is unknown; the hint lists similar ones.
    """
    if name in names():
        return (name,)
    lower = name.lower()
    formats = ALIASES.get(lower) or tuple(known for known in names() if known == lower or known.startswith(f"{lower}-"))
    return formats or (importer_class(name).name,)  # raises UsageError


def identify(source: Source, among: Sequence[str] = ()) -> tuple[type[Importer], Match]:
    """Return the importer that reads an input, and its answer. `among`: the possible formats, by default all.

    Raises:
        UnrecognizedFormat: no importer claims it.
        AmbiguousFormat: several claim it with equal certainty.
    """
    answers: dict[str, tuple[type[Importer], Match]] = {}
    _ask(source, among, answers, to_end=False)
    surest = _surest(answers)
    if surest < Certainty.YES and may_end_with_metadata(source.head()):
        _ask(source, among, answers, to_end=True)
        surest = _surest(answers)
    if surest is Certainty.NO and among:
        raise UnrecognizedFormat(
            f"is not of the formats {', '.join(among)}",
            hint="without --from, the format is detected",
            at=source.display,
        )
    known = None
    if not among and surest <= Certainty.FALLBACK:
        known = closed(source.head(), may_be_log=surest is Certainty.FALLBACK)
    if known is not None:
        raise UnrecognizedFormat(f"cannot read {known.what}", at=source.display, hint=known.hint)
    if surest is Certainty.NO:
        raise _unrecognized(source)
    claims = [(cls, match) for _, (cls, match) in sorted(answers.items()) if match.certainty is surest]
    if len(claims) > 1:
        reasons = "; ".join(f"{cls.name}: {match.reason}" for cls, match in claims)
        raise AmbiguousFormat(f"several formats fit ({reasons})", hint="choose one with --from NAME", at=source.display)
    return claims[0]


def _ask(
    source: Source, among: Sequence[str], answers: dict[str, tuple[type[Importer], Match]], *, to_end: bool
) -> None:
    """Add the answers of the importers that can be surer than those so far. `to_end`: see `searched`."""
    for most, group in groupby(_candidates(source.head(), to_end=to_end), key=lambda candidate: candidate[1]):
        if _surest(answers) < most:
            for name, _ in group:
                if name not in answers and (not among or name in among):
                    cls = importer_class(name)
                    answers[name] = cls, answer_of(cls, source)


def _surest(answers: Mapping[str, tuple[type[Importer], Match]]) -> Certainty:
    return max((match.certainty for _, match in answers.values()), default=Certainty.NO)


def _candidates(head: Head, *, to_end: bool) -> list[tuple[str, Certainty]]:
    """Return the candidate formats of an input with their highest certainty, the most certain first."""
    text = searched(head, to_end=to_end)
    fitting = [(name, signature.most) for name, (_, signature) in FORMATS.items() if signature.fits(text)]
    fitting += [(name, Certainty.YES) for name in plugins()]
    return sorted(fitting, key=lambda candidate: (-candidate[1], candidate[0]))


def answers(source: Source) -> dict[str, Match]:
    """Return the answer of every importer about an input, by name, without use of the index.

    Warns:
        SniffWarning: an importer failed; its answer is NO.
    """
    return {name: answer_of(cls, source) for name, cls in importers().items()}


def answer_of(cls: type[Importer], source: Source) -> Match:
    """Return the answer of an importer about an input.

    Warns:
        SniffWarning: the importer raised an error; the answer is NO.
    """
    head = source.head()  # an archive that is damaged is no fault of the importer
    try:
        return cls().sniff(head)
    except Exception as error:
        what = f"{type(error).__name__}: {str(error)[:80]!r}"
        warnings.warn(
            f"{source.display}: {cls.name} could not look at it ({what}); please report this", SniffWarning, 3
        )
        return Match.no(f"could not look at it ({what})")


def _unrecognized(source: Source) -> UnrecognizedFormat:
    head = source.head()
    if not head.data:
        return UnrecognizedFormat(
            "the file is empty",
            at=source.display,
            hint="was the profiler stopped in an orderly way? Several write their file only at the end",
        )
    if head.data.startswith(sqlite.MAGIC):
        try:
            with sqlite.open_database(source.database()):
                pass
        except InputError as error:  # the tables identify the format, but cannot be read
            return UnrecognizedFormat(error.reason, hint=error.hint, at=source.display)
    shown = head.text[:40].splitlines()[0].decode("utf-8", "replace") if head.text else ""
    return UnrecognizedFormat(
        f"no known format; it begins with {shown!r}",
        at=source.display,
        hint=f"`traceconv identify {shlex.quote(source.display)} --all` says why each format does not fit, "
        "`traceconv formats` lists them, --from NAME forces one",
    )


def options_of(cls: type[Importer]) -> dict[str, Any]:
    return {field.name: field.default for field in fields(cls)}  # type: ignore[arg-type]


def option_help(cls: type[Importer], name: str) -> str:
    """Return the help of an option of an importer, "" if it states none."""
    (text,) = [field.metadata.get("help", "") for field in fields(cls) if field.name == name]  # type: ignore[arg-type]
    return str(text)


def option_names(cls: type[Importer]) -> list[str]:
    return list(options_of(cls))


def option_texts(options: Mapping[str, OptionValue] | None) -> dict[str, str]:
    """Return options as text, such as {"pid": 42, "counters": False} as {"pid": "42", "counters": "false"}.

    Raises:
        UsageError: a value is of another type.
    """
    return {key: _option_text(key, value) for key, value in (options or {}).items()}


def _option_text(key: str, value: OptionValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise UsageError(f"option {key} is a text, a whole number, true or false, not {value!r}")


def configure(cls: type[Importer], options: Mapping[str, str]) -> Importer:
    """Return an importer with options given as text, such as {"pid": "42"}.

    Raises:
        UsageError: an unknown option, or a value of the wrong type; the hint lists the options.
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
        number = whole_of(text.strip())
        if number is None:
            raise UsageError(f"option {key} of {name} is a whole number, not {text!r}")
        return number
    return text
