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

    # -- containment --------------------------------------------------------------------------------------------------

    # -- collectives, ranks -------------------------------------------------------------------------------------------

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
