"""What a check returns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from traceconv.model.diagnostics import Code, Diagnostics, Severity, register

Format = Literal["chrome-json", "pftrace"]


def declare(name: str, severity: Severity, help: str) -> Code:
    """Declare what a check can find, and what viewers make of it. Raises ValueError if the name is taken."""
    return register(Code(name, severity, help))


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of problem in a file.

    Attributes:
        code: the declared name, such as "check-json.overlap".
        severity: how bad; from DATA_LOSS on, a viewer shows less than the file holds.
        message: what the code means.
        at: the first few places, such as "event 12: 'a' ends as 'b'; event 40: ...".
        count: how often it occurs.
    """

    code: str
    severity: Severity
    message: str
    at: str
    count: int


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of a check.

    Attributes:
        format: what the file is.
        problems: one entry per kind of problem, the worst first.
        counts: what the file holds, by the plural of its name: "events", "slices", "tracks", ...
        is_trace: whether viewers find the events of a trace in it, if only none.
    """

    format: Format
    problems: list[Problem]
    counts: dict[str, int]
    is_trace: bool = True

    @property
    def ok(self) -> bool:
        """Whether viewers show all of the file as it was meant."""
        return all(problem.severity < Severity.DATA_LOSS for problem in self.problems)


def make_report(format: Format, found: Diagnostics, counts: dict[str, int], *, is_trace: bool = True) -> CheckReport:
    """Return a report of the diagnostics; equal severities stay in the order of first occurrence."""
    return CheckReport(format, _worst_first(_problems(found)), counts, is_trace)


def extend_report(report: CheckReport, found: Diagnostics) -> CheckReport:
    """Return the report with more diagnostics, before its own ones of the same severity."""
    return replace(report, problems=_worst_first([*_problems(found), *report.problems]))


def _problems(found: Diagnostics) -> list[Problem]:
    return [
        Problem(entry.code.name, entry.code.severity, entry.code.help, "; ".join(entry.places), entry.count)
        for entry in found
    ]


def _worst_first(problems: list[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: -problem.severity)
