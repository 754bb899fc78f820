"""The sections `summary` and `unanswered`: what limited the run, in sentences with numbers, and what cannot be told.

Each rule makes one sentence of the tables, and names the table. `docs/answers.md` has the rules and their thresholds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from msgspec import Struct

from traceconv.answers.device_work import COMMUNICATION, COMPUTATION, COPY
from traceconv.answers.section import Cell, Column, Finding, Numbers, Row, Section, Tables, Unit, Unnamed, shown_cell
from traceconv.answers.slice_tables import median_of, union
from traceconv.answers.steps import STEPS
from traceconv.io.shown import one_line, quantity
from traceconv.model.diagnostics import CALLS
from traceconv.model.numbers import format_short

SUMMARY = (
    Column("id", "finding", Unit.TEXT),
    Column("text", "text", Unit.TEXT, whole=True),
    Column("section", "section", Unit.TEXT),
    Column("numbers", "numbers", Unit.OBJECT, detail=True),
)
_UNANSWERED = (Column("question", "question", Unit.TEXT), Column("why", "why", Unit.TEXT, whole=True))
#: Idle time, exposed communication, or exposed copies limit a device if they take this share of the window. Below it, a
#: device that never waited would gain less than what faster kernels give.
LIMITING = 0.3
#: Input data limits the run if loaders ran in this share of the time in which the host was late.
_MOST_OF = 0.5
#: The share of device time whose call is not known is said from a tenth on: the shares of operators among the rest
#: would be a ninth larger.
_UNNAMED = 0.1
#: Steps, or the windows of devices, stand for the run if they cover this share of it.
_MOST = 1 - _UNNAMED
#: A gap is at an edge of the window if no more than this share of the window is between them.
_EDGE = 0.01
#: A rank that the others waited for at least this share of the longest time is named, too.
_AS_LONG = 0.9
_LONGEST_NAME = 80
#: So many devices, and ratios of counts, are named.
_MOST_NAMED = 3
_ONE_OF = {COMPUTATION: "One kernel", COMMUNICATION: "One communication kernel", COPY: "One kind of copy"}
#: Without rows of these, nothing tells what took the time.
_OF_SLICES = ("device", "operations", "waits", "steps")
#: How the causes of idle time are said, behind their share.
_CAUSES = {
    "host_late": "while the host launched nothing",
    "launch_call": "during launch calls",
    "dispatch": "while launched work was starting",
    "device_wait": "while launched work waited",
    "unknown": "for reasons not known",
}
#: Shares below this one are printed as 0.0 %.
_NOTHING = 0.0005
#: The table of the kinds of operations, which is `operations` by another key.
KINDS = "kinds"
#: A function of Python, as profilers name it: "/path/module.py(12): call".
_FUNCTION = re.compile(r"[^()]*\.py\([0-9]+\): ")
#: How limits of single devices are said.
_LIMITS = {
    "computation": "work on the device",
    "communication": "communication",
    "copies": "copies",
    "host": "the host",
    "dispatch": "starting launched work",
    "device_wait": "launched work that waited",
    "unknown": "idle time of unknown cause",
}


def summary(sections: Sequence[Section], start: int, end: int, whole: str) -> list[Section]:
    """Return the tables `summary` and `unanswered` of the other tables of a report.

    Args:
        sections: the other tables.
        start, end: the time that they are about, ns from the start of the trace.
        whole: what lasts so long: "recording" or "window".
    """
    tables = Tables({section.name: section for section in sections}, start, end, whole)
    found, unanswered = Section("summary", SUMMARY), Section("unanswered", _UNANSWERED)
    for rule in _RULES:
        for finding in rule(tables):
            numbers = msgspec.json.encode(finding.numbers).decode()
            found.rows.append((finding.id, finding.text, finding.section, numbers))
    for question in _QUESTIONS:
        unanswered.rows += list(question(tables))
    found.sentences = [f"{row[1]} ({row[2]})" for row in found.rows]
    unanswered.sentences = [f"{row[0]} {row[1]}" for row in unanswered.rows]
    return [found, unanswered]


def _sentence(notes: Sequence[str]) -> str:
    """Return notes as a sentence."""
    text = "; ".join(notes)
    return f"{text[:1].upper()}{text[1:]}."


def _percent(part: float, whole: float) -> str:
    return shown_cell(part / whole if whole else 0.0, Unit.SHARE)


def _short(name: Cell) -> str:
    """Return a name for a sentence, on one line; of a function of Python its end, the path is the longer part."""
    text = one_line(str(name)) or "(no name)"
    if len(text) > _LONGEST_NAME and _FUNCTION.match(text):
        return f"...{text[3 - _LONGEST_NAME :]}"
    return shown_cell(text, Unit.TEXT, _LONGEST_NAME)


def _sum(rows: Sequence[Row], key: str) -> int:
    return sum(row[key] or 0 for row in rows)


class _Spent(Struct, frozen=True):
    """How long devices did what, ns, of rows of `step_parts` or `device`."""

    window: int
    compute: int
    communication: int
    copies: int
    idle: int
    causes: dict[str, int]

    @property
    def cause(self) -> str:
        """The largest cause of idle time; that of the host has two parts."""
        by_host = self.causes["host_late"] + self.causes["launch_call"]
        others = ((self.causes[name], name) for name in ("dispatch", "device_wait", "unknown"))
        return max((by_host, "host"), *others)[1]

    @property
    def cause_ns(self) -> int:
        """The time of this cause, ns."""
        return self.causes.get(self.cause, self.causes["host_late"] + self.causes["launch_call"])

    @property
    def limit(self) -> str:
        """What took the most: "computation", "communication", "copies" or "idle"; docs/answers.md has the rule."""
        largest, limit = max((self.idle, "idle"), (self.communication, "communication"), (self.copies, "copies"))
        return "computation" if largest < LIMITING * self.window and largest <= self.compute else limit


def _spent(rows: Sequence[Row]) -> _Spent:
    compute, communication, copies, idle = (
        _sum(rows, f"{part}_ns") for part in ("compute", "exposed_comm", "exposed_copy", "idle")
    )
    causes = {cause: _sum(rows, f"{cause}_ns") for cause in _CAUSES}
    return _Spent(_sum(rows, "span_ns"), compute, communication, copies, idle, causes)


def _rows_of_devices(tables: Tables) -> tuple[list[Row], str]:
    """Return the rows that tell what devices did, and their table: those of steps with work, else of whole devices.

    Steps tell it if all devices have some, and none reaches beyond the window.
    """
    devices = tables.devices()
    parts = _disjoint([row for row in tables.rows("step_parts") if row["compute_ns"] is not None])
    is_busy = any(row["idle_ns"] < row["span_ns"] for row in parts)
    is_inside = all(row["start_ns"] + row["span_ns"] <= tables.end for row in parts)
    of_all = _by_device(devices).keys() <= _by_device(parts).keys()
    return (parts, "step_parts") if is_busy and is_inside and of_all else (devices, "device")


def _by_device(rows: Sequence[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["device"], row["input"]), []).append(row)
    return found


def _limit(tables: Tables) -> Iterator[Finding]:
    """Tell what limited the devices: idle time, exposed communication or copies from LIMITING on, else computation."""
    rows, section = _rows_of_devices(tables)
    spent, names = _spent(rows), [device for device, _ in _by_device(rows)]
    window, causes = spent.window, spent.causes
    if not tables.devices() or not window or spent.idle == window:
        return
    steps = rows if section == "step_parts" else []
    length = tables.end - tables.start
    covered = _covered(steps or tables.windows()) / length if length else 1
    numbers: Numbers = {
        "window_ns": window,
        "busy_ns": window - spent.idle,
        "compute_ns": spent.compute,
        "exposed_comm_ns": spent.communication,
        "exposed_copy_ns": spent.copies,
        "idle_ns": spent.idle,
        "idle_cause": spent.cause if spent.idle else None,
        "idle_cause_ns": spent.cause_ns,
        "devices": len(names),
        "steps": len({*map(_step, steps)}),
        "limit": spent.limit,
    }
    what = "run"
    name, were = (names[0], "was") if len(names) == 1 else (f"the {len(names)} devices", "were")
    about = ["in all"] if len(names) > 1 else []
    about += [_counted(tables, steps)] if steps else []
    if covered < _MOST:
        what, key = ("steps", "steps_share") if steps else ("time from the first to the last work", "window_share")
        numbers[key] = covered
        about.append(f"{_percent(covered, 1) if covered >= _NOTHING else 'less than 0.1 %'} of the {tables.whole}")
    of_window = f"{format_short(window)} ({', '.join(about)})" if about else format_short(window)
    whys = ("host_late", "launch_call") if spent.cause == "host" else (spent.cause,)
    said = [f"{_percent(causes[why], window)} {_CAUSES[why]}" for why in whys if causes[why] >= _NOTHING * window]
    why = ", ".join(said)
    gap = _one_gap(rows, spent, numbers, in_steps=bool(steps))
    if spent.limit == "computation":
        idle = f"; {_percent(spent.idle, window)} idle{f' (largest part: {why})' if why else ''}" if spent.idle else ""
        communicated = _percent(spent.communication, window)
        exposed = f"; {communicated} communication alone" if spent.communication >= _NOTHING * window else ""
        busy = _percent(window - spent.idle, window)
        text = f"Work on the device limited the {what}: {name} {were} busy {busy} of {of_window}{exposed}{idle}."
    elif spent.limit == "idle":
        ran = _late_host(tables, in_steps=bool(steps)) if spent.cause == "host" else None
        during = ""
        numbers["limit"] = spent.cause
        if ran is not None:
            numbers["limit"] = "input data" if ran["share"] >= _MOST_OF else "host"
            numbers |= {"host_ran": ran["name"], "host_ran_ns": ran["time_ns"], "host_late_ns": ran["whole_ns"]}
            during = _during(ran)
        heads = {"input data": "Input data", "host": "The host", "dispatch": "Starting launched work"}
        head, idle = heads.get(numbers["limit"], "Idle time"), _percent(spent.idle, window)
        text = f"{head} limited the {what}: {name} {were} idle {idle} of {of_window}: {why}{gap}{during}."
    else:
        amount = spent.communication if spent.limit == "communication" else spent.copies
        text = (
            f"{spent.limit.capitalize()} limited the {what}: for {_percent(amount, window)} of {of_window}, {name} did "
            f"nothing else; {_percent(spent.compute, window)} computation, {_percent(spent.idle, window)} idle."
        )
    yield Finding("limit", text, section, numbers)


def _step(row: Row) -> tuple[str, str, int]:
    """Return the input, track and start of a step of `step_parts`, which no other step has."""
    return row["input"], row["track"], row["start_ns"]


def _covered(steps: Sequence[Row]) -> int:
    """Return how long some of the steps lasted, ns."""
    starts, spans = (np.array([row[key] for row in steps], np.int64) for key in ("start_ns", "span_ns"))
    return union(starts, starts + spans).length


def _counted(tables: Tables, rows: Sequence[Row]) -> str:
    """Return how many steps rows of `step_parts` are about, and of how many ranks or tracks, if these are several."""
    steps = {*map(_step, rows)}
    of_tracks = Counter((source, track) for source, track, _ in steps)
    most = max(of_tracks.values())
    if len(of_tracks) == 1:
        return quantity(most, STEPS)
    owners = f"{len(of_tracks)} {'ranks' if _ranks_of(tables, [*of_tracks]) else 'tracks'}"
    return (
        f"{quantity(most, STEPS)} of each of {owners}"
        if most == min(of_tracks.values())
        else f"{len(steps)} steps of {owners}"
    )


def _ranks_of(tables: Tables, tracks: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the rank of each input, if the tracks of steps, each with its input, are of a rank each; else nothing."""
    ranks = {row["input"]: row["rank"] for row in tables.rows("ranks")}
    sources = [source for source, _ in tracks]
    return ranks if len({*sources}) == len(sources) and ranks.keys() >= {*sources} else {}


def _owner(tables: Tables, step: Row) -> str:
    """Return whose a step is, for a sentence, if several ranks or tracks have steps."""
    tracks = {(row["input"], row["track"]): 0 for row in tables.rows("step_parts")}
    if len(tracks) < 2:
        return ""
    ranks = _ranks_of(tables, [*tracks])
    owner = f"rank {ranks[step['input']]}" if ranks else _short(step["track"])
    return f" of {owner}"


def _one_gap(rows: Sequence[Row], spent: _Spent, numbers: Numbers, *, in_steps: bool) -> str:
    """Return what the longest gap of each device is of the idle time, if that is most of it; put it into the numbers.

    It may be the start or the end of a recording that was cut, and says nothing about the rest.
    """
    longest = [max(of_device, key=lambda row: row["longest_gap_ns"] or 0) for of_device in _by_device(rows).values()]
    length = _sum(longest, "longest_gap_ns")
    if not length or length < _MOST_OF * spent.idle or length == spent.window:
        return ""
    numbers["longest_gaps_ns"] = length
    what = f"the longest gaps of each last {format_short(length)} in all"
    if len(longest) == 1:
        row, at = longest[0], longest[0]["longest_gap_at_ns"]
        near = _EDGE * row["span_ns"]
        behind = row["span_ns"] - at - length
        nearest = "at the start" if at <= behind else "at the end"
        place = nearest if min(at, behind) <= near else "in the middle"
        of_step = f" of {_short(row['name'])}" if in_steps and len(rows) > 1 else ""
        what = f"one gap {place}{of_step} lasts {format_short(length)}"
    busy = _percent(spent.window - spent.idle, spent.window - length)
    return f"; {what}, {_percent(length, spent.idle)} of the idle time (busy {busy} of the rest)"


def _limits(tables: Tables) -> Iterator[Finding]:
    """Tell of several devices, such as those of ranks, how many were limited by what, if not all by the same."""
    rows, section = _rows_of_devices(tables)
    devices = [(name, _spent(of_device)) for (name, _), of_device in _by_device(rows).items()]
    by_limit: dict[str, list[str]] = {}
    for name, spent in devices:
        if spent.window and spent.idle < spent.window:
            by_limit.setdefault(spent.cause if spent.limit == "idle" else spent.limit, []).append(name)
    if len(by_limit) < 2:
        return
    ordered = sorted(by_limit.items(), key=lambda item: (-len(item[1]), item[0]))
    said = [f"{_LIMITS[limit]} for {_some(names)}" for limit, names in ordered]
    yield Finding(
        "limits", f"The limit differs between devices: {'; '.join(said)}.", section, {"devices": dict(ordered)}
    )


def _some(names: Sequence[str]) -> str:
    """Return how many devices these are, and which if there are few."""
    return ", ".join(names) if len(names) <= _MOST_NAMED else f"{len(names)} devices"


def _during(ran: Row) -> str:
    """Return what late hosts ran, for a sentence."""
    if ran["time_ns"] < LIMITING * ran["whole_ns"]:
        return ""
    nothing = "nothing is recorded on the launching thread"
    did = nothing if ran["name"] is Unnamed.NOTHING_RAN else f"{_short(ran['name'])} ran"
    return f"; for {_percent(ran['time_ns'], ran['whole_ns'])} of the time in which the host launched nothing, {did}"


def _disjoint(parts: list[Row]) -> list[Row]:
    """Return the parts of steps; none if steps of a device overlap, whose sums would count its time twice."""
    until: dict[tuple[str, str], int] = {}
    for row in sorted(parts, key=lambda row: row["start_ns"]):
        device = row["device"], row["input"]
        if row["start_ns"] < until.get(device, row["start_ns"]):
            return []
        until[device] = row["start_ns"] + row["span_ns"]
    return parts


def _late_host(tables: Tables, *, in_steps: bool) -> Row | None:
    """Return what late hosts ran the longest, with the share of loaders of input data; None if they were not late."""
    time, loading = ("steps_ns", "steps_input_data_ns") if in_steps else ("time_ns", "input_data_ns")
    times = Counter[tuple[type[str], str]]()
    for row in tables.rows("host_late"):
        times[type(row["name"]), row["name"]] += row[time]
    whole = times.total()
    if not whole:
        return None
    (_, name), longest = times.most_common(1)[0]
    return {
        "name": name,
        "time_ns": longest,
        "whole_ns": whole,
        "share": _sum(tables.rows("host_late"), loading) / whole,
    }


def _kernel(tables: Tables) -> Iterator[Finding]:
    rows = [row for row in tables.rows("kernels") if row["kernel_share"] is not None]
    if rows:
        row = rows[0]
        by = f", the largest part launched by {_short(row['operator'])}" if row["operator"] else ""
        calls = quantity(row["count"], CALLS)
        text = (
            f"{_ONE_OF[row['kind']]} takes {shown_cell(row['kernel_share'], Unit.SHARE)} of the time of kernels and "
            f"copies: {_short(row['name'])} ({calls}, {format_short(row['total_ns'])}{by})."
        )
        keys = ("name", "kind", "count", "total_ns", "kernel_share", "operator")
        yield Finding("kernel", text, "kernels", {key: row[key] for key in keys})


def _operator(tables: Tables) -> Iterator[Finding]:
    rows = tables.rows("operations")
    of_devices = (
        [row for row in rows if row.get("device_ns") and row["name"] is not Unnamed.NO_OPERATOR] if _named(rows) else []
    )
    if of_devices:
        row, *others = sorted(of_devices, key=lambda each: -each["device_ns"])
        is_call = row["no_operator_ns"] == row["device_ns"]
        unknown = _sum([each for each in rows if each["name"] is Unnamed.NO_OPERATOR], "device_ns")
        all_work = _sum(rows, "device_ns")
        numbers = {key: row[key] for key in ("name", "device_ns", "device_share", "kernels")}
        rest = ""
        if unknown >= _UNNAMED * all_work:
            numbers["no_call_ns"] = unknown
            undecided = bool(others) and unknown > row["device_ns"] - others[0]["device_ns"]
            more = f", more than its lead over {_short(others[0]['name'])}" if undecided else ""
            rest = f"; for {_percent(unknown, all_work)} neither operator nor call is recorded{more}"
        who = f"Calls of {_short(row['name'])} outside of operators" if is_call else _short(row["name"])
        text = (
            f"{who} launched the most device time: {format_short(row['device_ns'])} in {row['kernels']} of the kernels "
            f"and copies, {shown_cell(row['device_share'], Unit.SHARE)} of their time{rest}."
        )
        yield Finding("operator", text, "operations", numbers)
    elif not tables.devices() and _named(rows) and any(row["self_ns"] for row in rows):
        row = max(rows, key=lambda each: (each["step_share"] or 0, each["self_ns"] or 0))
        whole, share, of_what = _denominator(row)
        in_calls = f" in {quantity(row['count'], CALLS)}" if row["count"] is not None else ""
        text = (
            f"{_short(row['name'])} takes {shown_cell(share, Unit.SHARE)} of {of_what}: {format_short(row['self_ns'])} "
            f"of its own{in_calls}."
        )
        numbers = {key: row[key] for key in ("name", "count", "self_ns", "host_share", "step_share")}
        yield Finding("operation", text, "operations", numbers | {"of": whole})
        yield from _kind(tables, row["self_ns"] or 0)


def _host(tables: Tables) -> Iterator[Finding]:
    """Tell what the host ran the longest, from LIMITING on, where devices worked in less than half of the time."""
    window, whole = max((row["window_ns"] for row in tables.devices()), default=0), tables.end - tables.start
    rows = [row for row in tables.rows("operations") if row.get("host_share")] if window else []
    row = max(rows, key=lambda each: each["host_share"], default=None)
    if row is not None and 2 * window < whole and row["host_share"] >= LIMITING:
        share = shown_cell(row["host_share"], Unit.SHARE)
        text = (
            f"The work of devices spans {_percent(window, whole)} of the {tables.whole}. "
            f"Hosts ran {_short(row['name'])} the longest: {share} of their time, {format_short(row['self_ns'])}."
        )
        yield Finding("host", text, "operations", {key: row[key] for key in ("name", "count", "self_ns", "host_share")})


def _kind(tables: Tables, of_name_ns: int) -> Iterator[Finding]:
    """Tell which kind of operations took the most, if it is more than one name."""
    rows = [row for row in tables.rows(KINDS) if (row["self_ns"] or 0) > of_name_ns]
    key = next(iter(rows[0])) if rows else ""
    rows = [row for row in rows if row[key]]
    if rows:
        row = max(rows, key=lambda each: (each["step_share"] or 0, each["self_ns"]))
        whole, share, of_what = _denominator(row)
        text = (
            f"Of the kinds of operations, {_short(row[key])} takes the most: {shown_cell(share, Unit.SHARE)} of "
            f"{of_what} in {quantity(row['count'], CALLS)} (--by {key})."
        )
        numbers = {"kind": row[key], "by": key, "of": whole}
        keys = ("count", "self_ns", "host_share", "step_share")
        yield Finding("kind", text, "operations", numbers | {each: row[each] for each in keys})


def _named(rows: Sequence[Row]) -> bool:
    return bool(rows) and "name" in rows[0]


def _denominator(row: Row) -> tuple[str, float, str]:
    """Return the share of an operation: of steps if it ran in steps, else of all operations."""
    if row.get("step_share"):
        return "steps", row["step_share"], "the time of steps"
    return "host", row["host_share"] or 0.0, "the time of all operations"


def _waiting(tables: Tables) -> Iterator[Finding]:
    """Tell which thread waited the longest, and in what most, where no device was recorded, from LIMITING on."""
    of_threads: dict[str, list[Row]] = {}
    for row in tables.rows("waits"):
        of_threads.setdefault(row["thread"], []).append(row)
    waiting = [
        (_sum(rows, "self_ns"), share, rows)
        for rows in of_threads.values()
        if (share := sum(row["thread_share"] or 0 for row in rows)) >= LIMITING
    ]
    if waiting and not tables.devices():
        waited, share, rows = max(waiting, key=lambda found: found[0])
        row = max(rows, key=lambda each: each["self_ns"])
        most = f", most of it in {_short(row['name'])}" if len(rows) > 1 else f" in {_short(row['name'])}"
        text = (
            f"{_short(row['thread'])} waited {shown_cell(share, Unit.SHARE)} of its recorded time"
            f"{most} ({format_short(row['self_ns'])})."
        )
        numbers = {"name": row["name"], "thread": row["thread"], "self_ns": row["self_ns"]}
        yield Finding("wait", text, "waits", numbers | {"waited_ns": waited, "thread_share": share})


def _not_recorded(tables: Tables) -> Iterator[Finding]:
    """Tell how much of the steps nothing is recorded in, where no device was recorded, from LIMITING on."""
    rows = [row for row in tables.rows("step_parts") if row["untraced_ns"] is not None]
    span, nothing = _sum(rows, "span_ns"), _sum(rows, "untraced_ns")
    if not tables.devices() and nothing and LIMITING * span <= nothing < span:
        text = (
            f"For {_percent(nothing, span)} of {format_short(span)} ({_counted(tables, rows)}), nothing that the "
            f"steps ran is recorded: {format_short(nothing)} before, between and after what is."
        )
        yield Finding("not_recorded", text, "step_parts", {"span_ns": span, "untraced_ns": nothing})


def _part_of_run(tables: Tables) -> Iterator[Finding]:
    """Tell how much of a run is recorded, where an input states how long that was, and holds only a part of it."""
    for row in tables.rows("overview"):
        if row.get("run_ns"):
            share = _percent(row["recorded_ns"], row["run_ns"])
            text = (
                f"What is recorded takes {share} of the {format_short(row['run_ns'])} that {one_line(row['input'])} "
                "states for the whole run; it does not tell what took the rest."
            )
            yield Finding("part_of_run", text, "overview", {key: row[key] for key in ("recorded_ns", "run_ns")})


def _communication(tables: Tables) -> Iterator[Finding]:
    """Tell how long steps communicated while they ran no operation, where no device was recorded, from LIMITING on."""
    rows = [row for row in tables.rows("step_parts") if row["host_ns"] is not None]
    span, communicated = _sum(rows, "span_ns"), _sum(rows, "exposed_comm_ns")
    if not tables.devices() and communicated and communicated >= LIMITING * span:
        text = (
            f"Communication took {_percent(communicated, span)} of {format_short(span)} "
            f"({_counted(tables, rows)}), while the steps ran no other operation: {format_short(communicated)}."
        )
        numbers = {"span_ns": span, "exposed_comm_ns": communicated}
        yield Finding("communication", text, "step_parts", numbers)


def _without_slices(tables: Tables) -> Iterator[Finding]:
    """Tell what samples and counts say about the run, where there is nothing else."""
    if any(tables.rows(name) for name in _OF_SLICES):
        return
    spans = [row["span_ns"] or 0 for row in tables.rows("overview")]
    length = spans[0] if len(spans) == 1 else 0
    during = f" of {format_short(length)}" if length else ""
    rows = tables.rows("layers")
    samples = _sum(rows, "samples")
    if samples:
        columns = tables.columns("layers")
        timed = [column.name for column in columns if column.unit is Unit.NS]
        times = [name for name in timed if f"{name}_total" in rows[0] and _sum(rows, name)]
        event = next(column.name for column in columns if column.beside == "samples")
        cpu = _sum(rows, times[0]) if times else 0
        of_cpu = f", {format_short(cpu)} of {times[0]}" if times else ""
        cpus = f" ({cpu / length:.2f} CPUs)" if cpu and length else ""
        kinds = (("sampled_threads", "threads"), ("symbols", "functions"))
        sampled = [row for row in rows if row["samples"]]
        most = [f"; {what} with most {event}: {row[key]}" for row in sampled for key, what in kinds if row[key]]
        most = most if len(sampled) == 1 else []
        text = f"Samples{during} are recorded, and no slices: {samples}{of_cpu}{cpus}{''.join(most)}."
        numbers = {"samples": samples, "span_ns": length, "cpu_ns": cpu if times else None}
        yield Finding("samples", text, "layers", numbers)
    first: dict[str, Row] = {}
    for row in tables.rows("run_ratios"):
        first.setdefault(row["name"], row)
    if ratios := list(first.values())[:_MOST_NAMED]:
        said = [f"{_ratio(row['value'])} {row['name']} ({row['formula']})" for row in ratios]
        runs = max(row["runs"] for row in ratios)
        what = f"{runs} runs, added up," if runs > 1 else f"the whole run{during}"
        text = f"Counts of {what} are recorded, and no slices: {', '.join(said)}."
        yield Finding("counts", text, "run_ratios", {row["formula"]: row["value"] for row in ratios})


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _slow_step(tables: Tables) -> Iterator[Finding]:
    """Tell which step took the most beyond the median step of its track, and what of it was longer."""
    differences = tables.rows("step_differences")
    parts = tables.rows("step_parts")
    if not differences:
        if len({*map(_step, parts)}) >= 3:
            yield _durations(tables, parts)
        return
    first = differences[0]
    of_step = _of_step(differences, first)
    whole = sum(row["difference_ns"] for row in of_step)
    named = [row for row in of_step if not any(row["name"] is rest for rest in (Unnamed.OTHERS, Unnamed.IN_PARALLEL))]
    most = max(named or of_step, key=lambda row: row["difference_ns"])
    span = sum(row["time_ns"] for row in of_step)
    step, usual = _short(first["step"]), _short(first["usual_step"])
    if step == usual:
        step = f"{step} at {format_short(first['start_ns'])}"
    longer, section, part_ns = _short(most["name"]), "step_differences", most["difference_ns"]
    of_device = _grown(_of_step(tables.rows("step_kernels"), first))
    on_device: Numbers = {}
    if of_device and _sum(of_device, "difference_ns") >= _MOST_OF * whole:
        most, section, part_ns = of_device[0], "step_kernels", _sum(of_device, "difference_ns")
        on_device = {"device": most["device"], "kind_difference_ns": part_ns}
        longer = f"{most['kind']} on {_short(most['device'])}"
        if most["name"] is not Unnamed.OTHERS:
            rest = _rest(part_ns - most["difference_ns"], " and others")
            longer += f", with {_short(most['name'])} {format_short(most['difference_ns'])} longer{rest}"
    longer = f"{format_short(part_ns)} longer: {longer}{_rest(whole - part_ns, '; others')}"
    if part_ns <= 0:
        longer = "each of many names was a little longer"
    text = (
        f"{step}{_owner(tables, first)} took {format_short(span)}, {format_short(whole)} more than the median step "
        f"({usual}); {longer}."
    )
    numbers = {
        "step": first["step"],
        "usual_step": first["usual_step"],
        "span_ns": span,
        "slower_by_ns": whole,
        "name": most["name"],
        "kind": most["kind"],
        "difference_ns": most["difference_ns"],
        "track": first["track"],
        "input": first["input"],
    }
    yield Finding("slow_step", text, section, numbers | on_device)


def _rest(difference_ns: int, who: str) -> str:
    """Return how much longer or shorter the others were, for a sentence; "" if they were not."""
    longer = "longer" if difference_ns > 0 else "shorter"
    return f"{who} {format_short(abs(difference_ns))} {longer}" if difference_ns else ""


def _of_step(rows: Sequence[Row], step: Row) -> list[Row]:
    """Return the rows of a table about the step of a row."""
    return [row for row in rows if all(row[key] == step[key] for key in ("input", "track", "start_ns"))]


def _grown(rows: Sequence[Row]) -> list[Row]:
    """Return the rows about the kind of work that grew most on a device, the largest first; idle time is none.

    Nor is work of which steps launched as much as others: the device ran what earlier steps had launched.
    """
    of_kinds: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["kind"] in _ONE_OF:
            of_kinds.setdefault((row["device"], row["kind"]), []).append(row)
    launched = [
        found
        for found in of_kinds.values()
        if (of_step := found[0]["launched_difference_ns"]) is None or of_step >= _MOST_OF * _sum(found, "difference_ns")
    ]
    grown = max(launched, key=lambda found: _sum(found, "difference_ns"), default=[])
    return sorted(grown, key=lambda row: -row["difference_ns"])


def _durations(tables: Tables, parts: Sequence[Row]) -> Finding:
    """Tell how long steps took, of each track by itself."""
    times = {_step(row): row["span_ns"] for row in parts}
    of_tracks: dict[tuple[str, str], list[int]] = {}
    for (source, track, _), span in times.items():
        of_tracks.setdefault((source, track), []).append(span)
    medians = sorted(median_of(spans) or 0 for spans in of_tracks.values())
    slowest_row = max(parts, key=lambda row: row["span_ns"])
    longest = slowest_row["span_ns"]
    each = f"{format_short(medians[0])} each (median)"
    if len(medians) > 1:
        each = f"{format_short(medians[0])} to {format_short(medians[-1])}"
    if 1 < len(medians) < len(times):
        each += " (medians of the tracks)"
    owner = _owner(tables, slowest_row)
    which = f" ({_short(slowest_row['name'])}{owner})" if owner else ""
    slowest = f"; the slowest one {format_short(longest)}{which}" if len(medians) < len(times) else ""
    text = f"{_counted(tables, parts)} took {each}{slowest}."
    numbers = {
        "steps": len(times),
        "tracks": len(medians),
        "p50_ns": medians[0],
        "p50_of_slowest_track_ns": medians[-1],
    }
    return Finding("steps", text, "step_parts", numbers | {"max_ns": longest})


def _ranks(tables: Tables) -> Iterator[Finding]:
    """Tell which rank the others waited for the longest, if that is known for most of the waits."""
    rows = [row for row in tables.rows("ranks") if row["caused_ns"]]
    if rows:
        row = max(rows, key=lambda each: each["caused_ns"])
        if row["caused_share"] is not None and row["caused_share"] >= LIMITING:
            numbers = {key: row[key] for key in ("rank", "caused_ns", "caused_share")}
            text = (
                f"Rank {row['rank']} caused {shown_cell(row['caused_share'], Unit.SHARE)} of the waiting in "
                f"collectives: the others waited {format_short(row['caused_ns'])} for it."
            )
            of_rank = [cause for cause in tables.rows("late_causes") if cause["rank"] == row["rank"]]
            causes = [cause for cause in of_rank if cause["kind"] != COMMUNICATION]
            if causes and causes[0]["extra_ns"] >= max(1, LIMITING * _sum(of_rank, "extra_ns")):
                cause = causes[0]
                numbers |= {"name": cause["name"], "extra_ns": cause["extra_ns"]}
                longer = format_short(cause["extra_ns"])
                if cause["name"] is Unnamed.NOT_BEGUN:
                    text += f" Its recording begins {longer} later than theirs."
                else:
                    ran = (
                        "had nothing recorded"
                        if cause["name"] is Unnamed.NOTHING_RAN
                        else f"ran {_short(cause['name'])}"
                    )
                    text += f" Before collectives, it {ran} {longer} longer than they."
            for other in rows:
                if other is not row and other["caused_ns"] >= _AS_LONG * row["caused_ns"]:
                    text += f" Rank {other['rank']} caused {shown_cell(other['caused_share'], Unit.SHARE)}."
            yield Finding("late_rank", text, "ranks", numbers)


def _runs(tables: Tables) -> Iterator[Finding]:
    """Name `diff` where recordings of one format follow one another: they may be runs, which a report adds up."""
    rows = [row for row in tables.rows("overview") if row["slices"] and row["start_ns"] is not None]
    rows.sort(key=lambda row: row["start_ns"])
    apart = all(row["start_ns"] + row["span_ns"] <= later["start_ns"] for row, later in pairwise(rows))
    if len(rows) > 1 and apart and len({row["format"] for row in rows}) == 1:
        text = (
            f"The {len(rows)} recordings follow one another, and all tables add them up. If they are runs, "
            "`traceconv diff --before A... --after B...` compares them."
        )
        yield Finding("runs", text, "overview", {"recordings": len(rows)})


_RULES: tuple[Callable[[Tables], Iterator[Finding]], ...] = (
    _limit,
    _limits,
    _communication,
    _kernel,
    _operator,
    _host,
    _waiting,
    _without_slices,
    _not_recorded,
    _part_of_run,
    _slow_step,
    _ranks,
    _runs,
)


def _idle_without_cause(tables: Tables) -> Iterator[tuple[Cell, ...]]:
    rows = tables.devices()
    unknown, idle = _sum(rows, "unknown_ns"), _sum(rows, "idle_ns")
    if unknown and not any(row["host_late_ns"] is not None for row in rows):
        yield "Why was the device idle?", "No launch of the device work is known, so idle time has no cause."
    elif unknown > idle // 2:
        yield (
            "Why was the device idle?",
            f"No recorded launch explains {_percent(unknown, idle)} of the idle time{_before_launch(rows)}.",
        )


def _before_launch(rows: Sequence[Row]) -> str:
    """Return how many kernels and copies of devices start before their launch, for a sentence; "" if none does."""
    count = _sum(rows, "negative")
    return (
        f"; {count} of {_sum(rows, 'launches')} launched kernels and copies start before their launch" if count else ""
    )


def _no_times(tables: Tables) -> Iterator[tuple[Cell, ...]]:
    rows = {name: tables.rows(name) for name in _OF_SLICES}
    if not any(rows.values()):
        found = [name for name in ("layers", "run_ratios", "stated_totals") if tables.rows(name)]
        where = f"; what else the inputs state is in {', '.join(found)}" if found else ""
        yield "What took the time?", f"No slices are recorded{where}."
    elif not (
        tables.devices() or _sum([*rows["operations"], *rows["waits"]], "self_ns") or _sum(rows["steps"], "duration_ns")
    ):
        recorded = any(row["self_ns"] is not None for row in (*rows["operations"], *rows["waits"]))
        yield "What took the time?", f"{'All recorded durations are 0' if recorded else 'No durations are recorded'}."


def _no_device(tables: Tables) -> Iterator[tuple[Cell, ...]]:
    if not tables.devices() and tables.rows("operations"):
        yield "Did a device limit the run?", _sentence(tables.notes("device") or ["its work has no duration"])


def _no_steps(tables: Tables) -> Iterator[tuple[Cell, ...]]:
    if not tables.rows("steps") and (tables.rows("operations") or tables.rows("kernels")):
        for note in tables.notes("steps")[:1]:
            yield "Which step was slow?", _sentence([note])


def _no_operators(tables: Tables) -> Iterator[tuple[Cell, ...]]:
    work = [row for row in tables.rows("operations") if row.get("device_ns")]
    if work and all(row["no_operator_ns"] == row["device_ns"] for row in work):
        yield "Which operator launched the kernels?", "No launches inside of operators are recorded."


def _waits_of_ranks(tables: Tables) -> Iterator[tuple[Cell, ...]]:
    rows = tables.rows("ranks")
    if len(rows) > 1 and all(row["caused_ns"] is None for row in rows):
        yield "Which rank did the others wait for?", _sentence(tables.notes("collectives"))


_QUESTIONS: tuple[Callable[[Tables], Iterator[tuple[Cell, ...]]], ...] = (
    _idle_without_cause,
    _no_times,
    _no_device,
    _no_steps,
    _no_operators,
    _waits_of_ranks,
)
