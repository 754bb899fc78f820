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
    moves   several moves in time                       repr    in quotation marks, as Python writes it

    NOUN s    counted: "{n:slice s}" is "1 slice", "2 slices"
    " -> "    several with that between them: anything that begins or ends with a blank

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
    OTHER_RUN = "as with two runs, two different parts of one run, or a clock that was set meanwhile"
    OTHER_PLACES = "{reason}; other places, seen from the best one: {rivals:moves}"

    # -- sequences ----------------------------------------------------------------------------------------------------

    FEW_COMMON_EVENTS = "only {events} events of common kinds, {least} are needed"
    TRACES_DO_NOT_MEET = "the events of both do not overlap where their clocks allow it"
    NO_PLACE_FITS = "no place was found where the events of both fit"
    BEGIN_FITS = (
        "the first {span:short} fit ({begin} events), the whole does not ({whole} events): a clock was set, or changed "
        "its rate, on the way"
    )
    BEGIN_FITS_ELSEWHERE = (
        "{matches} events match, and {more} more at the begin match at another place: a clock was set"
    )
    END_FITS_ELSEWHERE = "{matches} events match, and {more} more at the end match at another place: a clock was set"
    REASON_AND_WHY = "{reason}; {why}"
    NO_STEADY_CLOCK = (
        "{share:.0%} of the events match in order, but no steady clock puts all of them inside each other "
        "({apart:short} apart), {other_run}"
    )
    FEW_EVENTS_MATCH = "only {share:.0%} of the events match, {apart:short} apart, {other_run}"
    EVENTS_FIT_IN_ANOTHER_PLACE = "the traces fit nearly as well in 1 other place {away:short} away"
    EVENTS_FIT_IN_OTHER_PLACES = "the traces fit nearly as well in {others} other places, the nearest {away:short} away"
    EVENTS_HARDLY_FIT = "the traces hardly fit better at the best place than at random ones"
    ONLY_SOME_MATCH = "only {matches} events match"
    EVENTS_MATCH = "{matches} events match, {share:.0%} of those that could"
    EVENTS_MATCH_ALONG_LINES = (
        "{matches} events match, {share:.0%} of those that could, along {lines} lines: {changes:list}"
    )
    DURATIONS_VARY_ALIKE = "{count} durations vary alike in both, to {same:.0%}"
    LOOKS_LIKE_TWO_RUNS = "{reason}, but durations do not vary alike: these look like two different runs ({compared})"
    MAY_BE_OF_TWO_RUNS = "{reason}; but they may be of two runs that had the same work at the same times ({compared})"
    MAY_RUN_LATER = (
        "{reason}; but neither do the formats say that the work of the one lies inside the calls of the other, nor do "
        "durations show it ({count} vary alike to {same:.0%}): a queue may run it later"
    )

    # -- piecewise_linear ---------------------------------------------------------------------------------------------

    LINES_ARE_UNCLEAR = "it is not clear how"
    REST_FITS_NOWHERE = "what comes {after:short} after the begin fits nowhere for certain"
    TIMES_OCCURRED_TWICE = "a clock was set back by {by:short}, so that some of its times occurred twice"
    SET_AHEAD_THERE = "a clock was set ahead by {by:short} {at:short} after the begin"
    SET_BACK_THERE = "a clock was set back by {by:short} {at:short} after the begin"
    DRIFT_CHANGED = "the drift changed from {before:+.2f} to {after:+.2f} ppm {at:short} after the begin"

    # -- durations, duration_layout, duration_placement ---------------------------------------------------------------

    DURATIONS_ARE_MEANS = "durations of {which} are means of several runs, which are like no run; profile single runs"
    BOTH_LOGS = "both"
    OUTER_LOG = "the outer"
    INNER_LOG = "the inner"
    FEW_DURATIONS = "only {known} events of common kinds have a duration, {least} are needed"
    DURATIONS_FIT_ELSEWHERE = (
        "the durations fit nearly as well in {others} other places; {settle}, or one that begins with the profile"
    )
    DURATIONS_FIT_ITERATIONS_AWAY = (
        "the durations fit nearly as well in {others} other places, {spacing:short} apart; {settle}, or one that "
        "begins with the profile"
    )
    LOG_WITH_TIMES_SETTLES = "a log with times would settle it"
    CERTAIN_MATCHES = "{used} of {total} events match with certainty"
    FEW_CERTAIN_MATCHES = "only {matches}; {settle}"
    NOTHING_REPEATS = "{matches}; nothing repeats, so that another run would match as well"
    ITERATIONS_DIFFER = (
        "the iterations differ too much, or miss too much, to tell whether both are of one run: {settle}"
    )
    ITERATIONS_VARY_ALIKE = "from one iteration to the next they vary alike in both, to {same:.0%}"
    ITERATIONS_VARY_APART = "{matches}, but {alike} only, {other_run}; {settle}"
    FEW_ITERATIONS_COMPARE = "{matches}; too few ({count}) are comparable to exclude another run"
    ITERATIONS_HARDLY_ALIKE = "{matches}; {alike}, which is too little to be certain of one run"
    ITERATIONS_OF_ONE_RUN = "{matches}; {alike} ({count} compared)"
    DURATIONS_ONLY = "durations of the same work"
    DURATIONS_FIT_FILES = "its durations fit into {files:and}, at different times"
    SLICES_LAID = "{words:list}"
    LIE_INSIDE = "{inside} of {total} slices lie inside those of {host} that they were matched to{room}"
    ROOM_INSIDE = " (half of them to ±{half:short}, 19 of 20 to ±{nearly_all:short}, if they are matched rightly)"
    LIE_BETWEEN = "{between} without a partner in order between their neighbours"
    LIE_APART = "{apart} before the first or after the last match in order on {tracks:and}"
    NAMED_TRACK = "{name:repr}"
    TRACK_NOT_MEASURED = "{track} (times not measured)"
    NOTHING_TELLS_THE_TIMES = (
        "Before the first and after the last slice that was matched: order and durations are real, nothing tells the "
        "times."
    )
    THREAD_WITHOUT_NAME = "thread {tid}"
    PLACED_AROUND = "around what lies inside"
    PLACED_INSIDE = "inside {parent}"
    PLACED_BETWEEN = "between neighbours"
    PLACED_BEFORE = "before the first match"
    PLACED_AFTER = "after the last match"
    PLACED_SHORTENED = "{placed}, shortened"

    # -- activity, activity_views -------------------------------------------------------------------------------------

    # -- sampling_gaps ------------------------------------------------------------------------------------------------

    # -- launches -----------------------------------------------------------------------------------------------------

    # -- constraints --------------------------------------------------------------------------------------------------

    # -- constraint_parser --------------------------------------------------------------------------------------------

    # -- domains, hosts, machines, boot_sessions, repeated_snapshots --------------------------------------------------

    # -- duplicate_inputs, non_overlapping, jobs, names ---------------------------------------------------------------

    # -- contradictions -----------------------------------------------------------------------------------------------

    TOO_MANY_TO_CHECK = (
        "whether its clock is right was not checked by its events and those of {other}, since there are more than "
        "{most} slices"
    )
    FITS_IN_SEVERAL_PLACES = (
        "its events and those of {other} do not fit each other here, but elsewhere, in several places"
    )
    WRONG_OR_TWO_RUNS = (
        "its events and those of {other} do not fit each other here, but elsewhere, in several places: a clock is "
        "wrong, or they are of two runs"
    )
    STEPS = "{steps:, then }"
    BOTH_FILES_SAY = "by what both files say of their times"
    ZONE_OPTION = "--tz {file:file}={zone}"
    ZONE_MOVED = (
        "its local time was read as {was}, but {matches} events of it and of {other} fit in {zone} only, and are "
        "believed: {option} says so"
    )
    ZONES_WOULD_AGREE = "{options:and} would agree with the events; "
    EVENTS_CONTRADICT = (
        "{a} and {b}: their clocks ({by}) contradict their events: {n} events fit if {file} is moved by {move:time}, "
        "and they do not fit as it is"
    )
    BELIEVE_OR_LEAVE = (
        "{settle}--offset {file:file}={move:option} believes the events; --offset {file:file}=0ns leaves it where it "
        "is; --anchor says of an event what it is in the other file"
    )
    WORK_TOO_EARLY = (
        "{host} and {device}: their clocks ({by}) contradict their events: {early}, and at most {most:time} are "
        "possible"
    )
    OFFSET_OR_LEAVE = (
        "--offset {file:file}={move:option} lets none begin before its call; --offset {file:file}=0ns leaves it where"
        " it is"
    )
    EARLY_WORK_WARNING = "the clocks of {host} and {device} contradict their events: {early}"
    MOVE = "{move:move}"
    MOVES = "{begin:move} at its begin and {end:move} at its end"
    FITS_BETTER = "its events and those of {other} fit better {where}, though that is {verdict}: {reason}"
    BELONGS_ELSEWHERE = (
        "its events and those of {other} say that it belongs {where} ({n} matches, within {within:time})"
    )
    OFFSET_WOULD_AGREE = "{text}; --offset {file:file}={move:option} would agree"

    # -- solve --------------------------------------------------------------------------------------------------------

    LOOP_DOES_NOT_CLOSE = (
        "the clocks of {files:list} contradict each other: a time that is taken from one to the next, {path: -> }, "
        "comes back {apart:time} off, and at most {most:time} are possible"
    )
    ONE_RELATION_IS_WRONG = (
        "one of these relations is wrong, and nothing tells which: leave a file out, or say where one belongs, for "
        "instance --offset {file}=TIME"
    )
    LOOP_IS_STRAINED = (
        "a time that is taken from one clock to the next, {path: -> }, comes back {apart:time} off, where at most "
        "{most:time} are possible: one of these relations is less exact than it says"
    )
    ASSUMED_IS_OFF = "{method}: its events say that this is {apart:time} off, and they are believed"
    PAIR_LEFT_OUT = (
        "the events of {a} and {b} alone would put them {apart:time} from where all others put them, and were left out"
    )
    CANNOT_BE_LINED_UP = "{a} and {b} cannot be lined up: {why}"
    SETTLE_AMBIGUITY = (
        "`traceconv clocks {files:files}` says what would relate their clocks; or say it: --offset FILE=TIME, "
        "--anchor; --on-ambiguous best takes the best place and says so beside it"
    )
    BESIDE_OTHERS = "nothing: beside the others, from their begin on"
    TAKEN_AS_BEST = "it lies where it fits best, though that is {verdict}, since --on-ambiguous best asks for it: {why}"
    NOT_ALIGNED = "not aligned: its times have nothing to do with those of the other files"
    NOT_ALIGNED_BECAUSE = "not aligned: its times have nothing to do with those of the other files ({reason})"

    # -- inputs, placement --------------------------------------------------------------------------------------------

    ONE_BOOT = "both count from the boot of one machine, as --same-machine says"
    NO_TIMES = "no times in the file: placed at its first timed event"
    TOTALS = "totals have no times: placed at the begin of the trace"
    DURATIONS_IN = "durations of the same work in {file}"
    IN_THE_SAME_SLICES = "it lies in the same slices as {other}, so one of the two must be of another run"
    TWO_CLOCKS_IN_ONE_FILE = "{file} holds times of two clocks that nothing relates: {one}, and {other}"
    SPLIT_IT = "split it where the second recording begins, and merge the parts with --offset"
    CANNOT_BE_RELATED = (
        "the clocks of {a} and {b} cannot be related: the first counts {one}, the second {other}{events}"
    )
    NOR_DO_EVENTS_TELL = "; nor do their events tell: {reason}"
    SAY_SAME_RUN = "if both are of one run: --same-run"
    CLOCKS_COMMAND = "`traceconv clocks {files:files}` says what else would relate them"
    SAY_OFFSET = "say how: --offset {file:file}=TIME adds TIME to all times of that file"
    GUESS_OFFSET = "--offset {file:file}={move:option} would let both begin together, which is a guess"
    ELSE = "{advice:; else }"
    WOULD_RUN_OFF = "{file}: what is known of its clock contradicts itself: it would run {drift:drift} off"
    LEAVE_OUT_OR_PLACE = "leave a file out, or say with --offset where this one belongs"
    TOO_FAR = "{file}: its times lie more than 146 years from zero once they are moved"
    CHECK_OFFSET_AND_UNIT = "check --offset and the unit of the times (-O ts_unit=...)"

    # -- receipts -----------------------------------------------------------------------------------------------------

    ITS_OWN_TIMES = "its own times"
    ALONG_LINES = "{method}, along {n} lines"
    BOUND = "{bound:bound}"
    BOUND_OF_TWO_HOSTS = "{bound:bound} (clocks of two hosts)"

    # -- causality ----------------------------------------------------------------------------------------------------

    # -- containment --------------------------------------------------------------------------------------------------

    # -- collectives, ranks -------------------------------------------------------------------------------------------

    # -- identity -----------------------------------------------------------------------------------------------------

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
    "moves": lambda several: ", ".join(map(earlier_or_later, several)),
    "repr": repr,
}


class _MessageFormatter(Formatter):
    """Shows fields as templates ask for it."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Return one field as text."""
        if format_spec in _SHOWN:
            return _SHOWN[format_spec](value)
        if format_spec != format_spec.strip():
            return format_spec.join(map(str, value))
        noun, counted, plural = format_spec.partition(" ")
        if counted:
            return f"{value} {noun}{'' if value == 1 else plural}"
        return format(value, format_spec) if format_spec else str(value)


_FORMATTER: Final = _MessageFormatter()
