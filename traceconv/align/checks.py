"""The results of the checks of cause and effect, and their lines for the receipt and the report."""

from __future__ import annotations

import enum
import math
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from traceconv.io.shown import counted, listed
from traceconv.model.clocks import Verdict, worse
from traceconv.model.numbers import format_short, format_time
from traceconv.model.trace import Trace

if TYPE_CHECKING:
    from traceconv.align.collective_matching import Matched


#: This many ranks are listed by number; of more, only the count is given.
_MOST_LISTED = 4
#: More pairs than expected may be wrong by chance: by this many standard deviations. It happens in 2 of 100 checks.
_CHANCE = 2


class Rule(enum.StrEnum):
    """A rule of cause and effect, named by what breaks it. The values stand in reports."""

    INSIDE = "child outside its parent"
    CALL = "call outside of every operator"
    LAUNCH = "kernel before its launch"
    WAIT = "wait returned before its work"
    RECEIVE = "receive before its send"
    FLOW = "flow backwards in time"
    COLLECTIVE = "collective left before it was entered"


#: The pairs of several files that each rule is checked on, as a singular and the ending of its plural.
_PAIRS: Final = {
    Rule.INSIDE: ("match", "es"),
    Rule.CALL: ("call", "s"),
    Rule.LAUNCH: ("launch", "es"),
    Rule.WAIT: ("wait", "s"),
    Rule.RECEIVE: ("flow", "s"),
    Rule.FLOW: ("flow", "s"),
    Rule.COLLECTIVE: ("collective", "s"),
}


class Breaches(Struct, frozen=True):
    """How often and by how much a rule is broken.

    Attributes:
        count: how many pairs break it.
        worst_ns: by how much the worst pair breaks it, ns; 0 if none does.
        place: which pair that is; "" if none does.
    """

    count: int
    worst_ns: int
    place: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the members of the breaches in the report."""
        return {"violations": self.count, "worst_ns": self.worst_ns, "place": self.place}


class Contradiction(Struct, frozen=True):
    """The conclusion from a broken rule that the clocks of some inputs are wrong.

    Attributes:
        verdict: the best verdict that these clocks can keep; ASSUMED if the user placed them, or if it is weak.
        inputs: the numbers of these inputs.
        file: the name of the last of them.
        text: what is wrong with that one.
        hint: what the user can do about it; an object whose `str()` that is, if it takes time to find.
        by_user: whether an option places one of the clocks: then the user decides, and nothing is refused.
    """

    verdict: Verdict
    inputs: tuple[int, ...]
    file: str
    text: str
    hint: object
    by_user: bool = False

    @property
    def refuses(self) -> bool:
        """Whether an alignment is refused for it."""
        return not self.by_user and self.verdict not in (Verdict.OK, Verdict.ASSUMED)

    @property
    def sentence(self) -> str:
        """The text, with the name of the file before it."""
        return f"{self.file}: {self.text}"


class Limit(Struct, frozen=True):
    """How many pairs of a check may break its rule, and by how much, before they contradict the clocks.

    Attributes:
        bound_ns: by how much a pair may break the rule within the bounds of the clocks, ns; None if the clocks have no
            bounds, so that nothing can contradict them.
        wrong: the share of the pairs that may be matched wrongly, and then say nothing about clocks.
        verdict: the verdict on the clocks if more pairs than that break the rule by more than the bound.
    """

    bound_ns: int | None = None
    wrong: float = 0.0
    verdict: Verdict = Verdict.INCONSISTENT

    def excused(self, count: int) -> int:
        """Return how many of this many pairs may be matched wrongly: their share, and some more by chance."""
        return math.floor(self.wrong * count + _CHANCE * math.sqrt(self.wrong * (1 - self.wrong) * count))


class Check(Struct, frozen=True):
    """One rule, checked on the flows of a file, on the matched events of two files, or on the ranks of a job.

    Attributes:
        rule: the rule.
        files: the name of the file, or of both; for collectives those of all ranks.
        checked: the number of pairs that were checked.
        after: how they break the rule on trace time.
        before: how they break it by the clocks that files state; None if these state nothing or were not changed.
        ranks: for collectives the ranks that took part.
        alone: for collectives the number of records without a certain partner on another rank; for calls the number of
            those that lie where no operator was recorded.
        contradictions: the conclusions against clocks.
        limit: for two files, what the clocks allow.
        beyond: the number of pairs that break the rule by more than the bound of the limit.
    """

    rule: Rule
    files: tuple[str, ...]
    checked: int
    after: Breaches
    before: Breaches | None = None
    ranks: tuple[int, ...] = ()
    alone: int = 0
    contradictions: tuple[Contradiction, ...] = ()
    limit: Limit = Limit()
    beyond: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of its contradictions; OK without any."""
        return reduce(worse, (found.verdict for found in self.contradictions), Verdict.OK)

    @property
    def pairs(self) -> tuple[str, str]:
        """What its pairs are called: the singular, and the ending of the plural."""
        return _PAIRS[Rule.FLOW if self.in_one_file else self.rule]

    @property
    def in_one_file(self) -> bool:
        """Whether it checks a recording, and not the alignment of several."""
        return len(self.files) == 1

    @property
    def exceeds(self) -> bool:
        """Whether more pairs are beyond the limit than may be matched wrongly."""
        return self.beyond > self.limit.excused(self.checked)

    def describe(self) -> str:
        """Return the line of the check."""
        if self.rule is Rule.COLLECTIVE:
            return self._of_ranks()
        if self.alone and not self.checked:
            return f"{self.alone} calls in {listed(self.files, ' and ')}: too few that operators could hold to check"
        worst = f", by up to {format_time(self.after.worst_ns)}"
        fault = ": a fault of the recording, not of the alignment" if self.after.count else ""
        rest = fault if self.in_one_file else self._of_alignment()
        outside = f", and {self.alone} more where no operator was recorded" if self.alone else ""
        worst = f"{worst} ({self.after.place})" if self.after.count else ""
        return (
            f"{self.rule}: {self.after.count} of {counted(self.checked, *self.pairs)} of "
            f"{listed(self.files, ' and ')}{outside}{worst}{rest}"
        )

    def _of_alignment(self) -> str:
        """Return the end of the line for two files: how many pairs are beyond the limit, and how it was before."""
        beyond = ""
        if self.exceeds:
            beyond = f"; {self.beyond} of them by more than the possible {format_time(self.limit.bound_ns or 0)}"
        before = "; not known before the correction" if self.rule in (Rule.INSIDE, Rule.LAUNCH, Rule.WAIT) else ""
        if self.before is not None:
            worst = f", by up to {format_time(self.before.worst_ns)}" if self.before.count else ""
            before = f"; before the correction: {self.before.count}{worst}"
        return f"{beyond}{before}"

    def _of_ranks(self) -> str:
        """Return the line for collectives."""
        few = len(self.ranks) <= _MOST_LISTED
        shown_ranks = f"ranks {listed(self.ranks[:-1])} and {self.ranks[-1]}" if few else f"{len(self.ranks)} ranks"
        if not self.checked:
            return (
                f"none of {self.alone} records of collectives of {shown_ranks} was checked: none has a "
                "certain partner on another rank"
            )
        result = "all are possible with these offsets"
        if self.after.count:
            place, worst = self.after.place, self.after.worst_ns
            result = f"{self.after.count} are impossible with these offsets, by up to {format_short(worst)} ({place})"
        alone = f"; {self.alone} more records have no certain partner" if self.alone else ""
        return f"{counted(self.checked, *self.pairs)} of {shown_ranks} checked: {result}{alone}"

    def as_json(self) -> dict[str, Any]:
        """Return the members of the check in the report."""
        return {
            "rule": str(self.rule),
            "files": list(self.files),
            "checked": self.checked,
            "before": self.before.as_json() if self.before else None,
            "after": self.after.as_json(),
            "bound_ns": self.limit.bound_ns,
            "beyond": self.beyond,
            "may_be_wrong": self.limit.excused(self.checked),
            "verdict": str(self.verdict) if self.checked or self.contradictions else None,
            "ranks": list(self.ranks),
            "unmatched": self.alone,
            "contradictions": [{"verdict": str(said.verdict), "text": said.sentence} for said in self.contradictions],
        }


class Causality(Struct, frozen=True):
    """All checks of a merge.

    Attributes:
        checks: one for each rule, and for each file, pair of files or job that it was checked on.
        matched: the collectives of several ranks that were checked; None without any.
    """

    checks: tuple[Check, ...]
    matched: Matched | None = None

    @property
    def contradictions(self) -> list[Contradiction]:
        """The conclusions of all checks against clocks."""
        return [found for check in self.checks for found in check.contradictions]

    @property
    def violations(self) -> int:
        """How many pairs break a rule on trace time."""
        return sum(check.after.count for check in self.checks)

    def describe(self) -> list[str]:
        """Return the sum of all checks, then a line for each one that found or changed something."""
        counts = Counter[tuple[str, str]]()
        for check in self.checks:
            counts[check.pairs] += check.checked
        sizes = [counted(count, *pairs) for pairs, count in counts.items() if count]
        lines = [
            check
            for check in self.checks
            if check.alone
            or check.rule is Rule.COLLECTIVE
            or check.after.count > 0
            or (check.before is not None and check.before.count > 0)
        ]
        if not sizes and not lines:
            return []
        total = f"{self.violations} out of order" if self.violations else "all in order"
        head = f"causality: {listed(sizes, ' and ')} checked, {total}" if sizes else "causality: nothing was checked"
        return [head, *(f"  {check.describe()}" for check in lines)]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the members of all checks in the report."""
        return [check.as_json() for check in self.checks]


def place_of(trace: Trace, row: int) -> str:
    """Return the line or position of a slice in its file, and its name, for messages."""
    return f"{trace.place_of_slice(row)} {trace.strings[trace.slices.name[row]]!r}"
