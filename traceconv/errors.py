"""The errors that traceconv raises on purpose.

Each holds a message for the user: one line with the place, what was found and what was expected, and mostly a hint
about what to do. A traceback of any other class is a bug in traceconv.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traceconv.io.shown import one_line


class TraceconvError(Exception):
    """Base of all errors that are meant for the user.

    Args:
        reason: one line without a final full stop, or an object whose `str()` is one; control characters are escaped.
        hint: what the user can do about it, or an empty text.
        at: the file as the user named it, or a position in it: the start of the message.

    Attributes:
        message: the whole line: "profile.json: the file is empty".
    """

    exit_code = 1

    def __init__(self, reason: object, *, hint: object = "", at: str = "") -> None:
        self.reason = one_line(str(reason))
        self.message = f"{one_line(at)}: {self.reason}" if at else self.reason
        self.hint = one_line(str(hint))
        super().__init__(self.message)


class UsageError(TraceconvError):
    """The command or call is wrong: an option, a combination, a path (exit code 2)."""

    exit_code = 2


def refuse_single_texts(**values: object) -> None:
    """Raise UsageError if one of the named values is a text: it would be taken as a list of its letters."""
    for name, value in values.items():
        if isinstance(value, str):
            raise UsageError(f"{name}: a list of texts is expected, not {value!r}", hint=f"{name}=[{value!r}]")


class InputError(TraceconvError):
    """An input cannot be read at all: absent, a directory, no permission, a broken archive."""


class ImporterFailed(InputError):
    """An importer has a bug: it raised an error of its own, or its trace breaks a rule. The cause is that error."""


class UnrecognizedFormat(TraceconvError):
    """No importer knows the input."""


class UnrecognizedInput(UnrecognizedFormat):
    """No importer knows one of several inputs. The others can be read without it."""


class AmbiguousFormat(TraceconvError):
    """Several importers claim the input equally."""


class MalformedInput(TraceconvError):
    """The format is known, but the content of the file is invalid as a whole.

    Args:
        source: the file as the user named it.
        where: the place in the file, such as "line 12" or "byte 340", or an empty text.
        reason: what was found and what was expected.
        hint: what the user can do about it.
    """

    def __init__(self, source: str, where: str, reason: str, *, hint: str = "") -> None:
        super().__init__(reason, hint=hint, at=f"{source}:{where}" if where else source)


class NothingRead(MalformedInput):
    """An input holds data, but none of it could be read."""


class AlignmentError(TraceconvError):
    """Inputs cannot be put on one time axis (exit code 3).

    Args:
        message: one line, without a final full stop.
        hint: what the user can do about it, or an empty text.
        pairs: the estimates for pairs of clocks (PairEstimate), for the report.
        checks: the checks of cause and effect (Causality) that contradict the clocks, for the report; None without.
    """

    exit_code = 3
    verdict = "insufficient"

    def __init__(self, message: object, *, hint: object = "", pairs: Sequence[Any] = (), checks: Any = None) -> None:
        super().__init__(message, hint=hint)
        self.pairs = tuple(pairs)
        self.checks = checks


class UnrelatedClocks(AlignmentError):
    """Nothing relates the clocks of two inputs: no metadata, option or estimate.

    Its verdict is `unverified` if only the statement is missing that both are of one run.
    """

    def __init__(self, message: object, *, hint: object = "", pairs: Sequence[Any] = (), verdict: str = "") -> None:
        super().__init__(message, hint=hint, pairs=pairs)
        self.verdict = verdict or self.verdict


class AmbiguousAlignment(AlignmentError):
    """The events of two traces fit together at several offsets."""

    verdict = "ambiguous"


class UnverifiedAlignment(AlignmentError):
    """The events do not confirm the clocks: they may be of another run, or fit badly (exit code 3)."""

    verdict = "unverified"


class InconsistentClocks(AlignmentError):
    """Statements about clocks contradict each other, or the events contradict them (exit code 4)."""

    exit_code = 4
    verdict = "inconsistent"


class LostData(TraceconvError):
    """Data of the input is missing in the output, and `--strict` was given."""


class OutputError(TraceconvError):
    """The output cannot be written."""


class SeveralErrors(TraceconvError):
    """More than one input failed."""

    def __init__(self, errors: Sequence[TraceconvError]) -> None:
        super().__init__(f"{len(errors)} inputs failed")
        self.errors = list(errors)
        self.exit_code = max(error.exit_code for error in errors)
