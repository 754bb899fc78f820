"""The report of a check."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from traceconv.io.shown import Counted
from traceconv.model.diagnostics import Code, Diagnostics, Severity, register

Format = Literal["chrome-json", "pftrace"]


def declare(name: str, severity: Severity, help: str) -> Code:
    """Declare a finding of a check, with its effect in viewers. Raises ValueError if the name is taken."""
    return register(Code(name, severity, help))


@dataclass(frozen=True, slots=True)
class Problem:
    """One kind of problem in a file.

    Attributes:
        code: the declared name, such as "check-json.overlap".
        severity: the severity; from DATA_LOSS on, a viewer shows less than the file holds.
        message: the meaning of the code.
        at: the first few places, such as "event 12: 'a' ends as 'b'; event 40: ...".
        count: the number of occurrences.
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
        format: the format of the file.
        problems: one entry per kind of problem, the worst first.
        counts: the number of "events", "slices", "tracks", ... in the file.
        is_trace: whether viewers read it as a trace, even one without events.
    """

    format: Format
    problems: list[Problem]
    counts: dict[Counted, int]
    is_trace: bool = True

    @property
    def ok(self) -> bool:
        """Whether viewers show the whole file as intended."""
        return all(problem.severity < Severity.DATA_LOSS for problem in self.problems)


def make_report(
    format: Format, diagnostics: Diagnostics, counts: dict[Counted, int], *, is_trace: bool = True
) -> CheckReport:
    """Return a report of the diagnostics; equal severities stay in the order of first occurrence."""
    return CheckReport(format, _worst_first(_problems(diagnostics)), counts, is_trace)


def extend_report(report: CheckReport, diagnostics: Diagnostics) -> CheckReport:
    """Return the report with more diagnostics, before its own ones of the same severity."""
    return replace(report, problems=_worst_first([*_problems(diagnostics), *report.problems]))


def _problems(diagnostics: Diagnostics) -> list[Problem]:
    return [
        Problem(entry.code.name, entry.code.severity, entry.code.help, "; ".join(entry.places), entry.count)
        for entry in diagnostics
    ]


def _worst_first(problems: list[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: -problem.severity)
