"""Hints that propose an option: each is followed as it is printed, and leads to a right merge, or to a marked one.

A hint is found by a part of it in the texts of a refusal or of a receipt. What it leaves open, such as TIME, is filled
in with the truth. A text that names an option of `merge` has a scenario here, or is listed as one that proposes none.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path

import click
import numpy as np
import pytest
from msgspec import structs

import traceconv
from tests import commands
from tests.align.pairs import trace_of
from tests.align.test_causality import gpu_files
from tests.align.test_constraint_parser import BOOT, LOCAL, MONOTONIC, TIME_OF_DAY, UNIX, perf, trace
from tests.align.test_containment import CHAIN, SHORT, recorded
from tests.align.test_containment import moved as later
from tests.align.test_contradictions import EPOCH_NS, OWN, made, snap, view
from tests.align.test_hosts import profile
from tests.align.test_non_overlapping import named as by_name
from tests.align.test_non_overlapping import wall
from tests.align.test_one_host import inputs
from tests.align.test_ranks import GLOO
from tests.benchmarks.alignment.simulate import Shape, Truth, inner, outer, run
from tests.golden import ROOT
from tests.literals import texts_of
from traceconv.align import Alignment, Policy, align
from traceconv.align.causality import believed, causality
from traceconv.align.constraints import parse_constraints, zone_ns
from traceconv.api import read
from traceconv.cli import cli
from traceconv.cli.options import _ns
from traceconv.errors import TraceconvError
from traceconv.model.clocks import REALTIME, ClockDomain, LocalTime, Run, Verdict, Zero
from traceconv.model.numbers import format_option
from traceconv.model.trace import Trace

MS, US, S = 10**6, 10**3, 10**9
HOUR, DAY_NS = 3600 * S, 86400 * S
TODAY = date.fromtimestamp(0) + timedelta(UNIX // DAY_NS)
_HOSTS = Path(__file__).parents[1] / "data" / "hosts"


@dataclass(frozen=True)
class Case:
    """Inputs that are refused or warned about, and the truth.

    Attributes:
        traces: the inputs.
        true: for each input the map from its own times to true times, ns.
        given: the options that are given.
        open: what stands for the words that the hint leaves open.
        in_zone: how the second input is read with --tz, where its importer does so; given how far the zone is ahead.
    """

    traces: list[Trace]
    true: Sequence[Callable[[int], float]]
    given: tuple[str, ...] = ()
    open: Mapping[str, str] = field(default_factory=dict)
    in_zone: Callable[[int], Trace] | None = None


def moved(by: int) -> Callable[[int], int]:
    return lambda ts: ts + by


def unrelated() -> Case:
    """Two runs, so that events tell nothing."""
    traces = [view("a.json", made(), EPOCH_NS, REALTIME), view("b.json", made(1001), 5_000, OWN, 1)]
    return Case(traces, (moved(0), moved(EPOCH_NS)), open={"TIME": format_option(EPOCH_NS)})


def periodic() -> Case:
    """One run whose iterations cannot be told apart."""
    work = run(np.random.default_rng(1), Shape(iterations=40).periodic())
    log = inner(np.random.default_rng(1), work, Truth(3e9, 0.0))[0]
    traces = [trace_of(outer(work), "a.json"), trace_of(log, "b.json")]
    return Case(traces, (moved(0), moved(-3 * S)), open={"FILE=TIME": "b.json=-3s"})


def steep() -> Case:
    """One run, with clocks that drift more than two of one host do."""
    work, truth = run(np.random.default_rng(3), Shape(iterations=60)), Truth(3e9, 80e-6)
    traces = [trace_of(outer(work), "a.json"), trace_of(inner(np.random.default_rng(3), work, truth)[0], "b.json")]
    return Case(traces, (moved(0), lambda ts: (ts - truth.offset) / (1 + truth.drift)))


def contradicting() -> Case:
    """What both files state is 40 ms off, by their events."""
    traces = [view("a.json", made(), EPOCH_NS, REALTIME), view("b.json", made(), EPOCH_NS + 40 * MS, REALTIME, 1)]
    return Case(traces, (moved(0), moved(-40 * MS)))


def in_another_zone() -> Case:
    """The zone that a file states is two hours off, by its events."""

    def in_zone(ahead: int) -> Trace:
        return view("b.json", made(), 0, OWN, 1, (snap(EPOCH_NS - ahead, MS, LocalTime(ahead)),))

    traces = [view("a.json", made(), EPOCH_NS, REALTIME), in_zone(2 * HOUR)]
    return Case(traces, (moved(0), moved(EPOCH_NS)), in_zone=in_zone)


def early_kernels() -> Case:
    """Kernels that begin before their launches, by the clocks that both files state."""
    host, device = (replace(one, sources=[structs.replace(one.sources[0], format="one")]) for one in gpu_files())
    off = 5 * MS + 10 * US
    device = device.with_tables(slices=replace(device.slices, ts=device.slices.ts - off))
    return Case([host, device], (moved(0), moved(off)), open={"TIME": format_option(off)})


def wrong_offset() -> Case:
    """An option that is 40 ms off, by the events."""
    traces = [view("a.json", made(), EPOCH_NS, REALTIME), view("b.json", made(), 5_000, OWN, 1)]
    return Case(
        traces, (moved(0), moved(EPOCH_NS - 5_000)), ("--offset", f"b.json={format_option(EPOCH_NS - 40 * MS)}")
    )


def wrong_anchor() -> Case:
    """An anchor that is 40 ms off what both files state, rightly: the clocks of two machines differ."""
    traces = [view("a.json", made(), EPOCH_NS, REALTIME), view("b.json", made(), EPOCH_NS - 40 * MS, REALTIME, 1)]
    at = [format_option(int(one.slices.ts[0]) - inside)[1:] for one, inside in zip(traces, (0, 1000), strict=True)]
    return Case(traces, (moved(0), moved(40 * MS)), ("--anchor", f"a.json@{at[0]}=b.json@{at[1]}~3us"))


def two_ranks(ahead: int) -> Callable[[], Case]:
    """Two ranks of one host, the clock of the second one ahead."""

    def case() -> Case:
        traces = [read(path) for path in GLOO]
        traces[1] = traces[1].with_tables(slices=replace(traces[1].slices, ts=traces[1].slices.ts + ahead))
        return Case([named(one, f"rank{rank}.json") for rank, one in enumerate(traces)], (moved(0), moved(-ahead)))

    return case


def named(trace: Trace, name: str) -> Trace:
    return trace.with_tables(sources=[structs.replace(trace.sources[0], name=name, path=name)])


def of_hosts(name: str) -> Callable[[], Case]:
    """Ranks of two hosts whose collectives do not fit; nothing is right for all of them."""
    return lambda: Case([read(path) for path in sorted((_HOSTS / name).iterdir())], ())


def wrong_log() -> Case:
    """The clock that a log states is 2 ms off, by the operators that its calls lie in."""
    one, other = recorded(SHORT)
    (true,), (its,) = (maps.values() for maps in align([one, other]).maps)
    said = {"--anchor or --offset": "--offset", "TIME": "-2ms~20us"}
    return Case([one, later(other, 2 * MS)], (true.at, lambda ts: its.at(ts - 2 * MS)), open=said)


def set_late() -> Case:
    """The clock of a log was set: no offset is right for all of it."""
    return Case(inputs("st_step_late"), ())


def set_at_half() -> Case:
    """The same, in the middle of the log."""
    one, other = recorded(CHAIN)
    return Case([one, later(other, 9 * MS, from_share=0.5)], ())


def beside(
    one: Trace, other: Trace, by: int, words: Mapping[str, str] | None = None, given: tuple[str, ...] = ()
) -> Case:
    """Two inputs, and what is added to the times of the second one for true times."""
    return Case([one, other], (moved(0), moved(by)), given, words or {})


def of_one_boot() -> Case:
    """Two files that count from the boot of a machine that neither names."""
    clock = ClockDomain("boot", Zero.BOOT_AND_SLEEP, Run.MONOTONIC)
    return beside(trace("a", clock, [5 * S]), trace("b", structs.replace(clock, name="another"), [5 * S]), 0)


def of_one_monotonic_clock() -> Case:
    return beside(trace("a", BOOT, [5 * S]), trace("b", structs.replace(BOOT, name="another"), [5 * S]), 0)


def of_a_named_machine() -> Case:
    return beside(trace("a", MONOTONIC, [5 * S]), trace("b", BOOT, [5 * S]), 0)


def of_one_of_two_machines() -> Case:
    far = trace("far", structs.replace(MONOTONIC, machine="far"), [0])
    true = moved(UNIX - 100 * S), moved(UNIX), moved(UNIX - 100 * S)
    given = ("--on-ambiguous", "separate", "--clock", "b=monotonic")
    return Case([perf(), far, trace("b", BOOT)], true, given, {"HOST": "vm"})


def of_no_host() -> Case:
    return beside(profile("a", "", rank=0), profile("b", "", rank=1), 0)


def local_times(form: ClockDomain, start: int, true: int, words: Mapping[str, str]) -> Callable[[], Case]:
    """A log in local time, three hours ahead of that of a file on the wall clock."""
    return lambda: beside(wall(), trace("a.log", form, [start]), true - 3 * HOUR, words)


def another_day() -> Case:
    """A log around midnight, whose date was taken for that of its end."""
    log = trace("a.log", TIME_OF_DAY, [DAY_NS - 5 * S, DAY_NS + 5 * S])
    given = ("--tz", "a.log=UTC", "--date", f"a.log={TODAY - timedelta(1)}")
    return beside(wall(start=UNIX - UNIX % DAY_NS + DAY_NS - 5 * S), log, UNIX - UNIX % DAY_NS, given=given)


def another_zone(ahead: int, length: int, words: Mapping[str, str] | None = None) -> Callable[[], Case]:
    """A file name in local time that was read as UTC, beside a file on the wall clock."""

    def in_zone(zone: int) -> Trace:
        return by_name(UNIX + ahead - zone, zone=zone, guessed=False)

    return lambda: Case([wall(length=length), by_name(UNIX + ahead)], (moved(0), moved(UNIX)), (), words or {}, in_zone)


#: For each text that proposes options, by a part of it in which X stands for a field: the scenarios that print it.
SCENARIOS: dict[str, list[Callable[[], Case]]] = {
    "if you know the offset, --offset X=TIME": [unrelated],
    "--on-ambiguous separate draws it": [unrelated],
    "if you know the offset: --offset FILE=TIME": [periodic],
    "--on-ambiguous best takes": [periodic],
    "if both are of one run: --same-run": [steep],
    "--offset X=X~X follows the events": [contradicting],
    "--tz X=X": [in_another_zone, another_zone(2 * HOUR, 10 * S)],
    "--tz X=ZONE with any of": [another_zone(6 * HOUR, 2 * HOUR, {"ZONE": "+06:00"})],
    "--date X=X": [another_day],
    "if you know the zone of its local times: --tz X=+HH:MM": [
        local_times(LOCAL, UNIX + 3 * HOUR, 0, {"+HH:MM": "+03:00"})
    ],
    " --date X=DAY": [
        local_times(
            TIME_OF_DAY, UNIX % DAY_NS + 3 * HOUR, UNIX - UNIX % DAY_NS, {"+HH:MM": "+03:00", "DAY": str(TODAY)}
        )
    ],
    "if all are of one host: --same-machine": [of_no_host],
    "--clock X=monotonic": [of_one_monotonic_clock],
    "--clock X=monotonic@X": [of_a_named_machine],
    "name it: --clock": [of_one_of_two_machines],
    "--offset X=TIME; it is at least": [early_kernels],
    "--offset X=X~X would agree": [wrong_offset],
    "--offset X=X~X moves the file": [wrong_anchor],
    "--offset X=X~X": [two_ranks(3_700_000), two_ranks(40 * MS), two_ranks(-777_777)],
    "--on-ambiguous best keeps all clocks": [
        *(of_hosts("uneven_cut"), of_hosts("rank_step"), of_hosts("two_jobs"), set_late, set_at_half)
    ],
    "place it by --anchor or --offset X=TIME": [wrong_log],
    "if both are of one machine, and it was not restarted in between: --same-machine": [of_one_boot],
}

_OPTION = re.compile(r"--(offset|anchor|tz|date|clock|drift|same-run|same-machine|on-ambiguous)\b")
_FLAGS = ("same-run", "same-machine")
#: Parts of texts that name an option, and propose none with a value: what was given, what it means, or to leave it out.
_PROPOSE_NONE = (
    *("--date: ", "--tz: X is not", "--clock: ", "--drift: ", "--drift states", "--anchor X: ", "--clock states"),
    *("--clock names the machine", "--anchor, with up to", "X away from --anchor X, which is used"),
    *("--anchor X names a time", "--offset moves X and X", "--anchor X and X put one instant", "X x --anchor"),
    *("no events confirm --drift", "--same-machine: ", "as --same-machine says", "--same-machine says that it is"),
    *("(--on-ambiguous best), but", "--map X: expected", "--drift do not explain the difference"),
    # They say which option to use or to leave out, and leave the rest to the user.
    *(
        "--offset and --anchor place any file",
        "leave --clock out",
        "leave --drift out",
        "merge the parts with --offset",
    ),
    *(
        "not compared where --offset moves a file",
        "or place this one with --offset",
        "check --offset and the unit",
        "name an event on the clock you mean",
    ),
    "--map X=X",
    # Estimates of one run agree; `test_contradictions` replaces one for this refusal, which leaves the time open.
    "or place one by --offset",
    # Advice of the command `clocks`, under conditions that only the user knows.
    *("if you know an instant that both recorded", "if you know how far apart they are"),
    "counts the monotonic clock of this machine",
    # Of the report.
    *("--report X: the name ends", "--report align.html"),
)


def test_each_text_that_names_an_option_is_followed_or_proposes_none() -> None:
    command = cli.get_command(click.Context(cli), "merge")
    assert command is not None
    names = [name for option in command.params for name in option.opts if name.startswith("--")]
    pattern = re.compile("|".join(rf"{name}(?![\w-])" for name in names))
    texts = [text for _, text in texts_of(Path(traceconv.__file__).parent / "align")]
    naming = [text for text in texts if pattern.search(text) and text not in names]
    parts = [*SCENARIOS, *_PROPOSE_NONE]
    assert not [text for text in naming if not any(part in text for part in parts)]
    assert not [part for part in parts if not any(part in text for text in naming)]


def merged(case: Case, options: Sequence[str]) -> Alignment:
    """The alignment with options as typed, as far as its checks confirm it."""
    values: dict[str, list[str]] = {}
    words = iter(options)
    for word in words:
        name = word.removeprefix("--")
        values.setdefault(name, []).append("" if name in _FLAGS else next(words))
    traces = list(case.traces)
    if case.in_zone is not None and "tz" in values:
        traces[1] = case.in_zone(zone_ns(values.pop("tz")[0].partition("=")[2]))
    names = [trace.sources[0].name for trace in traces]
    offsets = {
        names.index(name): _ns(text) for name, _, text in (one.partition("=") for one in values.get("offset", []))
    }
    kinds = {"anchors": "anchor", "drifts": "drift", "clocks": "clock", "zones": "tz", "dates": "date"}
    stated = parse_constraints(names, **{kind: values.get(name, []) for kind, name in kinds.items()})
    constraints = structs.replace(
        stated,
        offsets={index: ns for index, (ns, _) in offsets.items()},
        offsets_within={index: within for index, (_, within) in offsets.items()},
        same_machine="same-machine" in values,
    )
    (on_ambiguous,) = values.get("on-ambiguous", ["fail"])
    policy = Policy(same_run="same-run" in values, on_ambiguous=on_ambiguous)
    found = align(traces, policy=policy, constraints=constraints)
    return believed(found, causality(traces, found), policy.on_ambiguous)


def said_of(case: Case, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hint of the refusal, or the warnings."""
    hints: list[str] = []
    init = TraceconvError.__init__

    def noted(self: TraceconvError, reason: object, *, hint: object = "", at: str = "") -> None:
        hints.append(str(hint))
        init(self, reason, hint=hint, at=at)

    with monkeypatch.context() as patch:
        patch.setattr(TraceconvError, "__init__", noted)
        try:
            found = merged(case, case.given)
        except TraceconvError:
            return hints[-1:]
    return [warning for line in found.receipt for warning in line.warnings]


def proposed(part: str, said: Sequence[str], case: Case) -> list[list[str]]:
    """The options in clauses with a part of a text, by alternatives, with what they leave open filled in."""
    pattern = re.compile(re.escape(part).replace("X", r"\S+"))
    clauses = [clause for text in said for clause in re.split(r"; (?!it is at least)", text) if pattern.search(clause)]
    for word, meant in case.open.items():
        clauses = [clause.replace(word, meant) for clause in clauses]
    alternatives = [words for clause in clauses for words in re.split(r", and | (?:and|or) (?=--)", clause)]
    return [options for words in alternatives if (options := options_in(words))]


def options_in(sentence: str) -> list[str]:
    words = shlex.split(re.sub(r"[`;]", " ", sentence))
    found: list[str] = []
    for at, word in enumerate(words):
        if _OPTION.fullmatch(word):
            follows = word.removeprefix("--") not in _FLAGS
            if not follows or word == "--on-ambiguous" or "=" in "".join(words[at + 1 : at + 2]):
                found += [word, *([words[at + 1].rstrip(",:")] if follows else [])]
    return found


def is_right(case: Case, found: Alignment) -> bool:
    """Whether all files are where they are in truth, within their bounds, or are marked."""
    sure = [
        (way, true, trace)
        for (way,), true, trace in zip((maps.values() for maps in found.maps), case.true, case.traces, strict=False)
        if way.verdict in (Verdict.OK, Verdict.ASSUMED) and way.bound_ns is not None
    ]
    within = sum((way.bound_ns or 0) + trace.clocks[0].resolution_ns for way, _, trace in sure)
    apart = [way.at(ts) - true(ts) for way, true, trace in sure for ts in trace.span() or ()]
    return max(apart, default=0) - min(apart, default=0) <= within


def without(given: Sequence[str], options: Sequence[str]) -> list[str]:
    """The options that are given, without those that are replaced."""
    pairs = list(zip(given[::2], given[1::2], strict=True))
    return [word for pair in pairs if pair[0] not in options for word in pair]


@pytest.mark.parametrize(
    ("part", "number"), [(part, number) for part, cases in SCENARIOS.items() for number in range(len(cases))]
)
def test_a_hint_that_is_followed_is_right(part: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = SCENARIOS[part][number]()
    said = said_of(case, monkeypatch)
    followed = proposed(part, said, case)
    assert followed, f"proposes nothing: {said}"
    for options in followed:
        kept = [] if case.given[:1] == ("--anchor",) else without(case.given, options)
        assert is_right(case, merged(case, [*kept, *options])), options


def test_files_without_any_times_are_drawn_beside_one_another(tmp_path: Path) -> None:
    files = [ROOT / "tvm-profile" / "vm-text" / "input.txt", ROOT / "openvino" / "average" / "input.csv"]
    refused = commands.run("merge", *files, "-o", tmp_path / "a.pftrace")
    assert (refused.returncode, "--on-ambiguous separate draws it" in refused.stderr) == (3, True)
    followed = commands.run("merge", *files, "-o", tmp_path / "a.pftrace", "--on-ambiguous", "separate")
    assert (followed.returncode, "not aligned: starts with the others" in followed.stderr) == (0, True)
