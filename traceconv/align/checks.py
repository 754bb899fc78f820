"""What is found when cause and effect are compared, as data, and what is said of it."""

from __future__ import annotations

import enum
import math
from collections import Counter
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from traceconv.align.messages import Message, Text
from traceconv.model.clocks import Verdict, worse

if TYPE_CHECKING:
    from traceconv.align.collective_matching import Matched

#: So many ranks are listed by number.
_MOST_LISTED = 4
#: By so many standard deviations more pairs than are expected may be wrong by chance, which is so in 2 of 100 checks.
_CHANCE = 2


class Rule(enum.StrEnum):
    """What must not happen."""

    INSIDE = "child outside its parent"
    CALL = "call outside of every operator"
    LAUNCH = "kernel before its launch"
    RECEIVE = "receive before its send"
    FLOW = "flow backwards in time"
    COLLECTIVE = "collective left before it was entered"


#: What people read of rules, and what is counted by them if it is in several files.
_RULES: Final = {
    Rule.INSIDE: (Text.CHILD_OUTSIDE_PARENT, Text.MATCHES),
    Rule.CALL: (Text.CALL_OUTSIDE_OPERATORS, Text.CALLS),
    Rule.LAUNCH: (Text.KERNEL_BEFORE_LAUNCH, Text.LAUNCHES),
    Rule.RECEIVE: (Text.RECEIVE_BEFORE_SEND, Text.FLOWS),
    Rule.FLOW: (Text.FLOW_BACKWARDS, Text.FLOWS),
    Rule.COLLECTIVE: (Text.COLLECTIVE_LEFT_EARLY, Text.COLLECTIVES),
}


class Breaches(Struct, frozen=True):
    """How often a rule is broken.

    Attributes:
        count: by how many pairs.
        worst_ns: by how much at most.
        place: where that is; "" if nowhere.
    """

    count: int
    worst_ns: int
    place: Message | str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the members for the report."""
        return {"violations": self.count, "worst_ns": self.worst_ns, "place": str(self.place)}


class Contradiction(Struct, frozen=True):
    """What the breaches of a rule say against the clocks of inputs.

    Attributes:
        verdict: how far these are to be trusted then; ASSUMED where the user said so, or where it is weak.
        inputs: the numbers of the inputs whose clocks that are.
        file: the last of them.
        text: what is wrong, said of that one.
        hint: what can be done about it.
    """

    verdict: Verdict
    inputs: tuple[int, ...]
    file: str
    text: Message
    hint: Message

    @property
    def sentence(self) -> Message:
        """What is wrong, with the file of which it is said."""
        return Text.SAID_OF_FILE(file=self.file, text=self.text)


class Limit(Struct, frozen=True):
    """What the pairs of a check are measured against: who states a bound states it, and how many pairs may be wrong.

    Attributes:
        bound_ns: by how much a pair may break the rule by what is stated of the clocks; None if nothing is, so that
            nothing can be contradicted.
        wrong: the share of the pairs that may be wrong themselves, and say nothing about clocks.
        verdict: what it means if more pairs than that break the rule by more than the bound.
    """

    bound_ns: int | None = None
    wrong: float = 0.0
    verdict: Verdict = Verdict.INCONSISTENT

    def excused(self, count: int) -> int:
        """Return how many of some pairs may be wrong, by chance some more than their share."""
        return math.floor(self.wrong * count + _CHANCE * math.sqrt(self.wrong * (1 - self.wrong) * count))


class Check(Struct, frozen=True):
    """One rule, asked of the flows of a file, or of what two files have in common, or the ranks of a job.

    Attributes:
        rule: what must not happen.
        files: the file, or both; of collectives those of all ranks.
        checked: how many pairs were looked at.
        after: on the common time axis.
        before: by what the files themselves say; None if they say nothing, or if nothing was changed.
        ranks: of collectives, those that took part.
        alone: of collectives, how many records of one there are beside, for which no record of another rank is certain;
            of calls, how many lie where no operator was recorded.
        contradictions: what the breaches say against clocks.
        limit: of what two files have in common, what it is measured against.
        beyond: how many pairs break the rule by more than that.
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
        """The worst that it says of the alignment."""
        return reduce(worse, (one.verdict for one in self.contradictions), Verdict.OK)

    @property
    def what(self) -> Text:
        """What was looked at: flows judge a recording, all else the alignment of several."""
        return Text.FLOWS if self.in_one_file else _RULES[self.rule][1]

    @property
    def in_one_file(self) -> bool:
        """Whether it judges a recording, and not the alignment of several."""
        return len(self.files) == 1

    @property
    def exceeds(self) -> bool:
        """Whether more pairs break the rule by more than is possible than may be wrong themselves."""
        return self.beyond > self.limit.excused(self.checked)

    def describe(self) -> Message:
        """Return one line for people."""
        if self.rule is Rule.COLLECTIVE:
            return self._of_ranks()
        if self.alone and not self.checked:
            return Text.CALLS_TOO_FEW(count=self.alone, files=self.files)
        worst = Text.BY_UP_TO(time=self.after.worst_ns)
        fault: Message | str = Text.FAULT_OF_RECORDING() if self.after.count else ""
        rest = fault if self.in_one_file else self._of_alignment()
        return Text.CHECKED(
            rule=_RULES[self.rule][0](),
            count=self.after.count,
            pairs=self.what(count=self.checked),
            files=self.files,
            outside=Text.CALLS_BESIDE(count=self.alone) if self.alone else "",
            worst=Text.WORST_AT(worst=worst, place=self.after.place) if self.after.count else "",
            rest=rest,
        )

    def _of_alignment(self) -> Message:
        """Return how much is more than is possible, and how it was before."""
        beyond: Message | str = ""
        if self.exceeds:
            beyond = Text.BEYOND_LIMIT(count=self.beyond, limit=self.limit.bound_ns or 0)
        before: Message | str = Text.UNKNOWN_BEFORE() if self.rule in (Rule.INSIDE, Rule.LAUNCH) else ""
        if self.before is not None:
            worst = Text.BY_UP_TO(time=self.before.worst_ns) if self.before.count else ""
            before = Text.BEFORE_CORRECTION(count=self.before.count, worst=worst)
        return Text.BESIDE(one=beyond, other=before)

    def _of_ranks(self) -> Message:
        ranks = Text.RANKS(ranks=Text.AND(several=self.ranks[:-1], last=self.ranks[-1]))
        whose = ranks if len(self.ranks) <= _MOST_LISTED else Text.MANY_RANKS(count=len(self.ranks))
        if not self.checked:
            return Text.NO_COLLECTIVE_CHECKED(count=self.alone, ranks=whose)
        found = Text.ALL_COLLECTIVES_POSSIBLE()
        if self.after.count:
            place, worst = self.after.place, self.after.worst_ns
            found = Text.COLLECTIVES_IMPOSSIBLE(count=self.after.count, worst=worst, place=place)
        alone = Text.WITHOUT_PARTNER(count=self.alone) if self.alone else ""
        return Text.COLLECTIVES_CHECKED(
            collectives=self.what(count=self.checked), ranks=whose, found=found, alone=alone
        )

    def as_json(self) -> dict[str, Any]:
        """Return the members for the report."""
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
            "contradictions": [{"verdict": str(one.verdict), "text": str(one.sentence)} for one in self.contradictions],
        }


class Causality(Struct, frozen=True):
    """All checks of a merge.

    Attributes:
        checks: one for each rule and what it was asked of.
        matched: the collectives of several ranks that were checked; None without any.
    """

    checks: tuple[Check, ...]
    matched: Matched | None = None

    @property
    def violations(self) -> int:
        """How many pairs break a rule on the common time axis."""
        return sum(check.after.count for check in self.checks)

    def describe(self) -> list[str]:
        """Return lines for people: a sum, then a line for each check that found or changed something."""
        counts = Counter[Text]()
        for check in self.checks:
            counts[check.what] += check.checked
        sizes = [what(count=count) for what, count in counts.items() if count]
        found = [
            check
            for check in self.checks
            if check.alone
            or check.rule is Rule.COLLECTIVE
            or check.after.count > 0
            or (check.before is not None and check.before.count > 0)
        ]
        if not sizes and not found:
            return []
        total = Text.OUT_OF_ORDER(count=self.violations) if self.violations else Text.ALL_IN_ORDER()
        head = Text.CAUSALITY_CHECKED(sizes=sizes, total=total) if sizes else Text.NO_CAUSALITY_CHECKED()
        return [str(head), *(str(Text.INDENTED(line=check.describe())) for check in found)]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the members for the report."""
        return [check.as_json() for check in self.checks]
