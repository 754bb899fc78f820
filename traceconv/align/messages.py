"""All that alignment says to people: reasons, warnings, errors, hints and the lines of receipts.

The rest of the package says `Text.NAME(field=value)`, which is a `Message`: what is to be said, and about what. It is
rendered at the end, by `str()`. Decisions rest on verdicts and other types, and never look at what is written here, so
that the texts can be reworded or translated at will: replace `TEMPLATES`.

A template names its fields in braces, as `str.format` does, with how each is shown behind a colon:

    time    an exact time in ns: "1.5 ms"               short   three digits of it: "71.5 ms"
    long    hours or days, too: "1 h 22 min"            us      whole microseconds: "250 µs"
    move    a move in time: "1.5 ms later"              option  as options take it: "+1.5ms"
    bound   "±20 µs", "not known" for None              drift   parts per million: "+3.100 ppm"
    file    quoted for a shell                          files   likewise, several, with blanks between
    list    several: "a, b"                             and     several: "a and b"
    repr    in quotation marks, as Python writes it     NOUN s  counted: "{n:slice s}" is "1 slice", "2 slices"

Anything else is a format of Python. A message or "" may stand in a field.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Callable, Mapping
from string import Formatter
from typing import Any, Final

from msgspec import Struct

from traceconv.times import earlier_or_later, format_bound, format_drift, format_long, format_option, format_short
from traceconv.times import format_time as exact_time


class Message(Struct, frozen=True):
    """Something to be said.

    Attributes:
        text: what.
        fields: what it is about, by the names in its template.
    """

    text: Text
    fields: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        """Render it for people."""
        return _FORMATTER.vformat(TEMPLATES[self.text], (), dict(self.fields))


class Text(enum.Enum):
    """What can be said. The value is the template in English."""

    def __call__(self, **fields: Any) -> Message:
        """Return it as a message about something."""
        return Message(self, tuple(fields.items()))

    # -- select_estimator ---------------------------------------------------------------------------------------------

    QUEUED = (
        "both name the same work, but that of a device runs when its queue comes to it, in no call for certain: ids "
        "of its launches in both would tell"
    )
    VIEWS_APART = "different views of the activity are certain of different places"
    LAUNCHES_TELL_NO_MORE = "launches tell to ±{bound:us}, no more than is known without it"
    ACTIVITY_TELLS_NO_MORE = "the activity tells to ±{bound:us}, no more than is known without it"
    ALL_EQUAL = "all {events} events are equal, to the ns"

    # -- sequences ----------------------------------------------------------------------------------------------------

    # -- piecewise_linear ---------------------------------------------------------------------------------------------

    # -- durations, duration_layout, duration_placement ---------------------------------------------------------------

    # -- activity, activity_views -------------------------------------------------------------------------------------

    # -- sampling_gaps ------------------------------------------------------------------------------------------------

    # -- launches -----------------------------------------------------------------------------------------------------

    # -- constraints --------------------------------------------------------------------------------------------------

    # -- constraint_parser --------------------------------------------------------------------------------------------

    # -- domains, hosts, machines, boot_sessions, repeated_snapshots --------------------------------------------------

    # -- duplicate_inputs, non_overlapping, jobs, names ---------------------------------------------------------------

    # -- contradictions -----------------------------------------------------------------------------------------------

    # -- solve --------------------------------------------------------------------------------------------------------

    # -- receipts -----------------------------------------------------------------------------------------------------

    # -- causality ----------------------------------------------------------------------------------------------------

    CHILD_OUTSIDE_PARENT = "child outside its parent"
    CALL_OUTSIDE_OPERATORS = "call outside of every operator"
    KERNEL_BEFORE_LAUNCH = "kernel before its launch"
    RECEIVE_BEFORE_SEND = "receive before its send"
    ARROW_BACKWARDS = "arrow backwards in time"
    COLLECTIVE_LEFT_EARLY = "collective left before it was entered"
    MATCHES = "{count:match es}"
    CALLS = "{count:call s}"
    LAUNCHES = "{count:launch es}"
    ARROWS = "{count:arrow s}"
    COLLECTIVES = "{count:collective s}"
    SAID_OF_FILE = "{file}: {text}"
    SLICE_AT = "{place} {name:repr}"
    EFFECT_AND_CAUSE = "{effect}, {cause}"
    CALLS_TOO_FEW = "{count} calls in {files:and} are too few to be checked"
    CALLS_BESIDE = ", and {count} more where no operator was recorded"
    CHECKED = "{rule}: {count} of {pairs} of {files:and}{outside}{worst}{rest}"
    BY_UP_TO = ", by up to {time:time}"
    WORST_AT = "{worst} ({place})"
    FAULT_OF_RECORDING = ": a fault of the recording, not of the alignment"
    BEYOND_LIMIT = "; {count} of them by more than the {limit:time} that are possible"
    BEFORE_CORRECTION = "; before the correction: {count}{worst}"
    UNKNOWN_BEFORE = "; how it was before is not known"
    BESIDE = "{one}{other}"
    CAUSALITY_CHECKED = "causality: {sizes:and} checked, {total}"
    NO_CAUSALITY_CHECKED = "causality: nothing was checked"
    OUT_OF_ORDER = "{count} out of order"
    ALL_IN_ORDER = "all in order"
    INDENTED = "  {line}"
    EVENTS_CONTRADICT = "its events contradict how it was put on one time axis with {other}: {check}"
    SAY_WHERE_IT_BELONGS = (
        "--anchor or --offset {name:file}=TIME say where it belongs (0ns: where its own times put it); "
        "--on-ambiguous best leaves it here and says so beside it"
    )

    # -- containment --------------------------------------------------------------------------------------------------

    CALLS_FIT_ELSEWHERE = (
        "only {inside} of {count} calls{where} lie in operators of {framework} as the two clocks are stated, and "
        "{fitting} would {move:move}: {why}"
    )
    FROM_ON = ", from {place} on,"
    CALLS_IN_NO_OPERATOR = (
        "{outside} of {count} calls lie in no operators of {framework} as the two clocks are stated, and {empty} "
        "operators hold no call: {why}"
    )
    CLOCK_WRONG_OR_TWO_PROCESSES = "a clock is wrong or was set meanwhile, or they are of two processes"
    OPERATORS_WITHOUT_CALLS = (
        "{empty} operators of {framework} in a row hold no call while the log goes on: a clock was set meanwhile, "
        "lines are missing, or something else did their work"
    )

    # -- collectives, ranks -------------------------------------------------------------------------------------------

    LEFT_BEFORE_ENTERED = "rank {left} left {name:repr} before rank {entered} entered it: {early}, {late}"
    COLLECTIVES_CONTRADICT = (
        "{clocks} contradict their collectives: {count} of {all} cannot have happened as drawn, by up to "
        "{worst:short} ({place})"
    )
    WALL_CLOCKS_TAKEN_FOR_ONE = "the wall clocks of its host and that of {other}, taken for one,"
    CLOCKS_OF_BOTH = "its clock and that of {other}"
    BECAUSE = "{text}: {why}"
    NO_OFFSET_EXPLAINS = (
        "no single offset lets all of them happen, so that a clock was set meanwhile, or records are missing"
    )
    ONE_CLOCK_WAS_SET = "one clock was set meanwhile, by about {by:short}, or records are missing"
    LEAVE_IT = "--offset {name:file}=0ns leaves it where it is, and --on-ambiguous best all files"
    MOVE_IT_OR_LEAVE_IT = "--offset {name:file}={move:option} lets all of them happen; {leave}"
    RANKS = "ranks {ranks}"
    MANY_RANKS = "{count} ranks"
    NO_COLLECTIVE_CHECKED = (
        "none of {count} records of collectives of {ranks}: no partner of another rank is certain, so none was checked"
    )
    COLLECTIVES_CHECKED = "{collectives} of {ranks} checked: {found}{alone}"
    ALL_COLLECTIVES_POSSIBLE = "all can have happened as drawn"
    COLLECTIVES_IMPOSSIBLE = "{count} cannot have happened as drawn, by up to {worst:short} ({place})"
    WITHOUT_PARTNER = "; of {count} more records no partner is certain"

    # -- identity -----------------------------------------------------------------------------------------------------

    PID = "pid {number}"
    THREAD = "thread {number}"
    THREADS = "threads {numbers}"
    NAME_OF_FILE = "{name} of {file}"
    AND = "{several:list} and {last}"
    OR = "{several:list} or {last}"
    MORE = "{count} more"
    ALONE = "{word}"
    ONE_PROCESS = "{name}: one process in {into} and {moved}: {why}"
    ONE_PROCESS_OF_THREADS = "{name}: one process in {into} and {moved} ({threads}): {why}"
    ONE_THREAD = "{name}: one thread in {into} and {moved}: {why}"
    ITS_CALLS_INSIDE = "the calls of the log lie inside its slices"
    ONLY_WRITER = "no other one here can have written the log; {machine}"
    BOTH_OF_HOST = "both are of host {host}"
    BOTH_OF_ONE_BOOT = "both are of one boot"
    HOSTS_OF_ONE_BOOT = "{one} and {other} are of one boot"
    USER_SAYS_ONE_MACHINE = "the user says that it is one machine"
    NO_INPUT_NAMES_A_MACHINE = "assumed: no input names its machine"
    NAMES_NO_MACHINE = "{file} names no machine"
    NEITHER_NAMES_A_MACHINE = "neither names a machine"
    OTHERS_OF_HOST = "assumed: {none}, all others are of host {host}"
    OTHERS_OF_ONE_MACHINE = "assumed: {none}, all others are of one machine"
    NOT_ONE_PROCESS = "{names}: not one process in {files}: {why}"
    NOT_ONE_PROCESS_EACH = "{names}: not one process each in {files}: {why}"
    OF_SEVERAL_HOSTS = "they are of the hosts {hosts}"
    OF_SEVERAL_BOOTS = "they are of different boots"
    OF_SEVERAL_RANKS = "they are of the ranks {ranks}"
    RECORDED_TWICE = "both are recordings of {format} at the same time"
    MACHINES_UNSAID = "nothing says that these are of one machine"
    PROCESS_UNTOLD = "{name} of {file} stays apart: no input tells the process"
    PROCESSES_UNTOLD = "{name} of {file} stay apart: no input tells the process"
    CAN_BELONG_TO_SEVERAL = "{name} of {file} stays apart: it can belong to {meant}"

    # -- clock_overview -----------------------------------------------------------------------------------------------


#: The texts that are said. Another language is another mapping.
TEMPLATES: Final[dict[Text, str]] = {text: text.value for text in Text}

_SHOWN: Final[Mapping[str, Callable[[Any], str]]] = {
    "time": exact_time,
    "short": format_short,
    "long": format_long,
    "us": lambda ns: f"{ns / 1e3:.0f} µs",
    "move": earlier_or_later,
    "option": format_option,
    "bound": format_bound,
    "drift": format_drift,
    "file": shlex.quote,
    "files": lambda names: " ".join(map(shlex.quote, names)),
    "list": lambda several: ", ".join(map(str, several)),
    "and": lambda several: " and ".join(map(str, several)),
    "repr": repr,
}


class _MessageFormatter(Formatter):
    """Shows fields as templates ask for it."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one field as text."""
        if format_spec in _SHOWN:
            return _SHOWN[format_spec](value)
        noun, counted, plural = format_spec.partition(" ")
        if counted:
            return f"{value} {noun}{'' if value == 1 else plural}"
        return format(value, format_spec) if format_spec else str(value)


_FORMATTER: Final = _MessageFormatter()
