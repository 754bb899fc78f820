"""All that alignment says in another language: nothing else changes, so no decision rests on wording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from string import Formatter

import pytest

from tests.align.test_contradictions import based, guessed, two
from tests.benchmarks.alignment.recordings import load, truth, without_metadata
from tests.golden import cases
from traceconv.align import Policy, align, messages
from traceconv.align.causality import believed, causality
from traceconv.align.messages import Text
from traceconv.errors import AlignmentError, TraceconvError
from traceconv.model.clocks import LocalTime
from traceconv.model.trace import Trace

#: Recordings whose events alone place them, and some that they do not place.
SHORT = ("short_torch_resnet_7", "short_torch_steady_10", "short_ort_8", "ort_stat_pauses", "ort_perf_pauses")
MERGES = [case for case in cases() if case.format == "merge"]


def translated(template: str) -> str:
    """A template in which every word is another one; fields stay, those of times in another form."""
    parts = []
    for literal, field, spec, _ in Formatter().parse(template):
        parts.append("".join("ж" if letter.isalpha() else " " for letter in literal))
        parts.append("" if field is None else f"{{{field}:{spec}}}" if spec else f"{{{field}}}")
    return "".join(parts)


def result(traces: Sequence[Trace], policy: Policy) -> list[object]:
    """All numbers and verdicts of an alignment, or the kind of its refusal."""
    try:
        alignment = align(traces, policy=policy)
        checks = causality(traces, alignment)
        alignment = believed(alignment, checks)
    except TraceconvError as error:
        pairs = error.pairs if isinstance(error, AlignmentError) else ()
        return [type(error), error.exit_code, *((pair.estimate.verdict, pair.clock_map.offset_ns) for pair in pairs)]
    found: list[object] = [
        (line.verdict, line.offset_ns, line.bound_ns, line.drift_ppm, line.matches, len(line.warnings))
        for line in alignment.receipt
    ]
    found += [
        (pair.estimate.verdict, pair.taken, pair.clock_map.offset_ns, pair.clock_map.bound_ns)
        for pair in alignment.pairs
    ]
    found += [(check.rule, check.verdict, check.checked, check.after.count) for check in checks.checks]
    return [*found, len(alignment.together.as_json() or ())]


def inputs() -> Iterator[tuple[str, Callable[[Path], list[Trace]]]]:
    """Merges that are ok, assumed, unverified, ambiguous and inconsistent."""
    yield from ((f"golden {case.name}", case.traces) for case in MERGES)
    yield "files that contradict their events", lambda path: two(40_000_000)
    yield "base times that contradict each other", lambda path: based(5_000_000)
    yield "a zone that was guessed", lambda path: guessed(3_600 * 10**9, LocalTime(0, guessed=True))
    for name, files in truth().items():
        if name in SHORT:
            yield name, lambda path, files=files: [without_metadata(load(file)) for file in files.values()]


@pytest.mark.parametrize(("name", "traces"), list(inputs()))
def test_another_language_changes_no_decision(
    name: str, traces: Callable[[Path], list[Trace]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = [Policy(), Policy(on_ambiguous="best")]
    read = traces(tmp_path)
    before = [result(read, policy) for policy in policies]
    for text in Text:
        monkeypatch.setitem(messages.TEMPLATES, text, translated(text.value))
    assert [result(read, policy) for policy in policies] == before
