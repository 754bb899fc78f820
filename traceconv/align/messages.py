"""All texts of alignment for people: reasons, warnings, errors, hints and the lines of receipts.

The rest of the package makes a `Message` by `Text.NAME(field=value)`: a template with its fields. It is rendered at the
end, by `str()`. Decisions rest on verdicts and other types, never on these texts, so that they can be reworded, or
translated by replacing `TEMPLATES`.

`rendering` describes the fields of templates.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from msgspec import Struct

from traceconv.align.rendering import rendered


class Message(Struct, frozen=True):
    """A text with the values of its fields.

    Attributes:
        text: the template.
        fields: the values, by the names in the template.
    """

    text: Text
    fields: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        """Return the rendered text."""
        return rendered(TEMPLATES[self.text], dict(self.fields))

    def of_both(self, file: str) -> Message:
        """Return the message about input `file` in a form that is equal to that of the `other` input.

        It differs from the message only if that is of a text in `SYMMETRIC`, or made of such a text.
        """
        pair = self.text in SYMMETRIC
        return Message(
            self.text,
            tuple(
                (name, frozenset((file, value)) if pair and name == "other" else _of_both(value, file))
                for name, value in self.fields
            ),
        )


def _of_both(value: Any, file: str) -> Any:
    if isinstance(value, Message):
        return value.of_both(file)
    return tuple(_of_both(one, file) for one in value) if isinstance(value, tuple) else value


class Text(enum.Enum):
    """The templates. The value of each is the text in English."""

    def __call__(self, **fields: Any) -> Message:
        """Return the message made of this template and the fields."""
        return Message(self, tuple(fields.items()))

    # -- estimators, pairs --------------------------------------------------------------------------------------------
    QUEUED = (
        "both name the same work, but a device runs it later, not inside the calls; launch ids in both files would "
        "settle it"
    )
    VIEWS_APART = "two comparisons of the activity give different offsets, each with certainty"
    LAUNCHES_TELL_NO_MORE = "launches give ±{bound:us}, no better than what is known without them"
    ACTIVITY_TELLS_NO_MORE = "the activity gives ±{bound:us}, no better than what is known without it"
    COMPARED_LAUNCHES = "kernels and the calls that launched them"
    COMPARED_SEQUENCE = "the same events in both"
    COMPARED_ACTIVITY = "the same activity in both"
    COMPARED_SAMPLING_GAPS = "the gaps around sampling interrupts"
    COMPARED_DUPLICATE = "the same recording, given twice"
    ALL_EQUAL = "all {events} events are equal, to the ns"
    TWO_FORMS = "both are forms of one recording: {events} events are equal, to the microsecond"
    OTHER_RUN = "perhaps two runs, two parts of one run, or a clock that was set in between"
    OTHER_PLACES = "{reason}; other offsets of {file}, relative to the best one: {rivals:moves}"

    # -- sequences ----------------------------------------------------------------------------------------------------
    FEW_COMMON_EVENTS = "both files show the same kinds of work in {events:event s} only, expected at least {least}"
    TRACES_DO_NOT_MEET = "the events of both files do not overlap at any offset that their clocks allow"
    NO_PLACE_FITS = "the events of both files fit at no offset"
    BEGIN_FITS = (
        "the first {span:short} fit ({begin} events), but the whole does not ({whole} events): a clock was set in "
        "between, or its rate changed"
    )
    BEGIN_FITS_ELSEWHERE = "{matches} events match, {more} more at the start match at another offset: a clock was set"
    END_FITS_ELSEWHERE = "{matches} events match, {more} more at the end match at another offset: a clock was set"
    REASON_AND_WHY = "{reason}; {why}"
    NO_STEADY_CLOCK = (
        "{share:.0%} of the events match in order, but no constant drift puts them inside each other "
        "({apart:short} apart): {other_run}"
    )
    FEW_EVENTS_MATCH = "only {share:.0%} of the events match, {apart:short} apart: {other_run}"
    EVENTS_FIT_ELSEWHERE = "the traces fit nearly as well at {others:offset s} {away:short} away or more"
    EVENTS_HARDLY_FIT = "the best offset hardly fits better than random ones"
    ONLY_SOME_MATCH = "only {matches} events match"
    EVENTS_MATCH = "{matches} events match, {share:.0%} of those that could"
    EVENTS_MATCH_ALONG_LINES = "{matched}, in {lines} segments of time: {changes:list}"
    DURATIONS_VARY_TOGETHER = "{count} durations of both files are correlated to {same:.0%}"
    LOOKS_LIKE_TWO_RUNS = "{reason}, but durations are not correlated: these look like two runs ({compared})"
    MAY_BE_OF_TWO_RUNS = "{reason}; but they may be of two runs with the same work at the same times ({compared})"
    SAMPLES_FIT_ELSEWHERE = (
        "{reason}; but {few} of {count} samples at one end fit only if moved, best {move:move}, as if a clock was set"
    )
    DRIFTS_TOO_MUCH = (
        "{reason}; but the clocks would drift by {drift:+.0f} ppm, expected {most:.0f} ppm at most within one host"
    )
    MAY_RUN_LATER = "{reason}; but a queue may run the work later than its calls{compared}"
    DURATIONS_EXCLUDE_NOTHING = " ({count} durations are correlated to {same:.0%}, which does not exclude it)"

    # -- piecewise_linear ---------------------------------------------------------------------------------------------
    LINES_ARE_UNCLEAR = "it is not clear how"
    REST_FITS_NOWHERE = "from {after:short} after the start on, the events fit at no offset with certainty"
    TIMES_OCCURRED_TWICE = "a clock was set back by {by:short}, so that some of its times occurred twice"
    SET_AHEAD_THERE = "a clock was set ahead by {by:short} {at:short} after the start"
    SET_BACK_THERE = "a clock was set back by {by:short} {at:short} after the start"
    DRIFT_CHANGED = "the drift changed from {before:+.2f} to {after:+.2f} ppm {at:short} after the start"

    # -- durations, duration_layout, duration_placement ---------------------------------------------------------------
    DURATIONS_ARE_MEANS = "durations in {which} are means of runs, which match no single run; profile single runs"
    BOTH_LOGS = "both files"
    OUTER_LOG = "the outer file"
    INNER_LOG = "the inner file"
    FEW_DURATIONS = (
        "both files have durations of the same kinds of work for {known:slice s} only, expected at least {least}"
    )
    DURATIONS_FIT_ELSEWHERE = (
        "the durations fit nearly as well at {others} other offsets{spacing}; {settle}, and so would a log that starts "
        "when the profile starts"
    )
    APART = ", {spacing:short} apart"
    LOG_WITH_TIMES_SETTLES = "a log with times would settle it"
    CERTAIN_MATCHES = "{used} of {total} events match with certainty"
    FEW_CERTAIN_MATCHES = "only {matches}; {settle}"
    NOTHING_REPEATS = "{matches}; no iteration repeats, so another run would match as well"
    ITERATIONS_DIFFER = (
        "the iterations differ too much, or lack too many events, to show that both files are of one run: {settle}"
    )
    ITERATIONS_VARY_TOGETHER = "in both files, the changes of durations between iterations are correlated to {same:.0%}"
    ITERATIONS_VARY_APART = "{matches}, but {together} only: {other_run}; {settle}"
    FEW_ITERATIONS_COMPARE = "{matches}; too few iterations ({count}) can be compared to exclude another run"
    ITERATIONS_HARDLY_TOGETHER = "{matches}; {together}, too little to be certain of one run"
    ITERATIONS_OF_ONE_RUN = "{matches}; {together} ({count} compared)"
    COMPARED_DURATIONS = "durations of the same work"
    DURATIONS_FIT_FILES = "its durations match {files:and}, at different times"
    SLICES_LAID = "{words:list}"
    LIE_INSIDE = "{inside} of {total} slices lie inside the slices of {host} that they match{room}"
    ROOM_INSIDE = " (if the matches are right, half of them within ±{half:short}, 19 of 20 within ±{nearly_all:short})"
    LIE_BETWEEN = "{between} without a match are laid in order between their neighbours"
    LIE_APART = "{apart} before the first or after the last match are laid in order on {tracks:and}"
    NAMED_TRACK = "{name:repr}"
    TRACK_NOT_MEASURED = "{track} (times not measured)"
    NOTHING_TELLS_THE_TIMES = (
        "Slices before the first and after the last match. Their order and durations are real, their times are not "
        "known."
    )
    THREAD_WITHOUT_NAME = "thread {tid}"
    PLACED_AROUND = "around the events inside"
    PLACED_INSIDE = "inside {parent}"
    PLACED_BETWEEN = "between neighbours"
    PLACED_BEFORE = "before the first match"
    PLACED_AFTER = "after the last match"
    PLACED_SHORTENED = "{placed}, shortened"

    # -- activity, activity_views -------------------------------------------------------------------------------------
    SAMPLES = "samples"
    INTERVALS = "intervals"
    TOO_LITTLE_ACTIVITY = "only {count} {what}, expected at least {needed}"
    SAMPLES_ALL_EQUAL = "{busy:.0%} of the samples are busy, so no start or end is visible"
    COUNTER_GROWS_EVENLY = "the counter grows evenly, so no start or end is visible"
    NO_OVERLAP = "the traces do not overlap at any offset that their clocks allow"
    SLICES_ARE_NO_BUSIER = "at no offset is there more activity inside the slices than between them"
    ACTIVITY_FITS_ELSEWHERE = "the {what} fit nearly as well {away:short} away"
    ACTIVITY_FITS_AROUND = "the {what} fit nearly as well up to {away:short} away"
    ACTIVITY_HARDLY_FITS = "the {what} hardly fit better at the best offset than at random ones"
    ACTIVITY_FITS = "{count} {what} fit, to within {width:short}"

    # -- sampling_gaps ------------------------------------------------------------------------------------------------
    SAMPLES_AVOID_SLICES = (
        "{samples} samples keep a distance from the starts and ends of slices, which relates the files within "
        "±{half:short}"
    )
    SAMPLES_AVOID_NOTHING = "at no offset do samples avoid the starts and ends of slices more than by chance"
    SAMPLES_AVOID_ANOTHER_PLACE = "samples avoid the starts and ends of slices as well at an offset {away:short} away"
    FEW_SAMPLES_AMONG_SLICES = "too few samples lie among the slices"
    NO_LINE_THROUGH_GAP = "no straight line fits into the gap between samples and slices"

    # -- launches -----------------------------------------------------------------------------------------------------
    EARLY_WORK = "{early} of {kernels} kernels start before the calls that launched them, by up to {worst:time}"
    DEVICE_IS_BEHIND = "{early}: the clock of its device is behind, which the bound allows for"
    IDS_LEFT_OUT = "{reason} (left out: {slices} slices whose id belongs to another slice)"
    FEW_LAUNCH_IDS = "only {ids} launch ids are in both files"
    FEW_LAUNCHED = "only {share:.0%} of the device work has a launch with its id: these look like two runs"
    WORK_OUT_OF_ORDER = "only {share:.0%} of the device work is in the order of its launches: these look like two runs"
    LAUNCHES_CONTRADICT_WAITS = "{launches} launches and {waits} waits contradict each other: {other_run}"
    LAUNCHES_CONTRADICT_CLOCKS = "{launches} launches and {waits} waits contradict what is known of the clocks"
    FEW_WAITS = (
        "{kernels} kernels start after their launches, which limits the offset on one side; on the other side, only "
        "{waits} calls wait for the device: record more of them (cudaDeviceSynchronize), or state roughly how the "
        "clocks are related"
    )
    GAPS_VARY_TOGETHER = "{gaps} gaps between them in both files are correlated to {together:.0%}"
    LITTLE_SHOWS_ONE_RUN = "ids are equal, but too little shows that the files are of one run ({compared})"
    LAUNCHES_MAY_BE_OF_TWO_RUNS = "launches and kernels fit, but may be of two runs ({compared})"
    LAUNCHES_FIT = "{kernels} kernels start after their launches, {waits} waits end after the kernels ({compared})"

    # -- constraints --------------------------------------------------------------------------------------------------
    LEAVE_IT_OUT = "leave it out"
    DATE_IN_FILE = "--date: {file} ({format}) states its date itself"
    DATE_IN_TIMES = "--date: the times of {file} have a date already"
    DAY_WITHOUT_YEAR = "--date: the times of {file} have a day but no year, so a date cannot complete them"
    GIVES_NO_UNIX_TIME = "{option} does not give {file} ({format}) times since 1970"
    NO_LOCAL_TIME_OR_MORE_NEEDED = "it holds no local time, or {option} is needed, too"
    NEEDED_TOO = "{file}: {option} is needed, too, since its times count {clock}"
    NO_LOCAL_TIMES = "{option}: {file} ({format}) has no local times, since they count {clock}"
    OFFSET_AND_ANCHOR_PLACE_ANY = "--offset and --anchor place any file"
    LOCAL_TIME_READ = "local time read as {zone}"
    LOCAL_TIME_READ_FROM = "local time read as {zone}, from {day} on"
    CLOCK_IS = "--clock states {clock}"
    CLOCK_IS_OF = "--clock states {clock} of {machine}"
    CLOCK_IS_OF_ONE_MACHINE = "--clock states {clock} of one machine"
    CLOCK_OF_PERF_IS = "--clock states {clock} (perf's clock may be {within:time} away from it at this uptime)"
    RECORDED_BY_PERF = "--clock: recorded by perf"
    MACHINE_OF_NO_INPUT = "--clock names the machine {machine}, but inputs name {named:list} only: is the name right?"
    SEVERAL_MACHINES = "--clock: the inputs name several machines, and {file} may be from any of them"
    SAY_WHICH_MACHINE = "name it: --clock {file:file}={clock}@HOST"
    CLOCK_CANNOT_BE = "the clock of {file} cannot be {clock}: {reason}"
    LEAVE_CLOCK_OUT = "leave --clock out, or use --offset or --anchor"
    HAS_NO_TIMES = "it has no times"
    TIMES_COUNT = "its times count {clock}"
    SAYS_ITS_WALL_TIME = "it states where its times are on the wall clock ({method})"
    SAYS_ITS_CLOCK = "it states that it is {clock}"
    SAYS_ITS_MACHINE = "it states that it is of {machine}"
    FIRST_TIME_IS = "its first time is {ts:time} after zero"
    FIRST_TIME_ELSEWHERE = "its first time is {away}: was the machine restarted in between?"
    AWAY_FROM_KNOWN = "{apart:time} away from the known relation ({method}), expected {allowed:time} at most"
    READ_WITH_OTHER_DRIFT = (
        "--drift states {stated:drift} for the clock of {file}, but its readings ({method}) show {read:drift}, "
        "within ±{within:.3f} ppm"
    )
    TWO_DRIFTS = "--drift: {file} counts {clock}, but another drift is given for another file on that clock"
    SAY_ONE_DRIFT = "give the drift of a clock for one file only: it holds for all files on that clock"
    LEAVE_DRIFT_OUT = "leave --drift out: the readings are used"
    NO_SUCH_EVENT = "--anchor {anchor:repr}: {file} has no event named {name:repr}"
    FEWER_EVENTS = "--anchor {anchor:repr}: {file} has {count} events named {name:repr}, not {number}"
    FIRST_AND_LAST = "the first is #1, the last is #{count} or #-1"
    ROW_WITHOUT_TIME = "--anchor {anchor:repr}: {name:repr} in {file} is a row of a table without times"
    HAS_FOR_INSTANCE = "its events include {names:list}"
    HAS_NO_EVENTS = "it has no events at all"
    ANCHOR_AND_FREE_DRIFT = "--anchor, with up to {ppm:.0f} ppm of drift away from its instant"
    ANCHORS_CONTRADICT = (
        "the anchors contradict each other: from {early:repr} to {late:repr}, {passed:time} pass in {file}, but "
        "{its_passed:time} in {other}, {reason}"
    )
    MORE_THAN_DRIFT_ALLOWS = "and neither their bounds nor a drift of {ppm:g} ppm explain the difference"
    LESS_WITHOUT_CLOCK = "and their bounds do not explain the difference; {file} has no clock, so it has no drift"
    LESS_BESIDES_DRIFT = "and their bounds and --drift do not explain the difference"
    ONE_ANCHOR_WRONG = "one of them is wrong, or less accurate than stated: append ~TIME, its uncertainty"
    OFFSET_MOVES_ANCHOR = "--offset moves {file} and {other} {apart:time} away from their anchor {anchor:repr}"
    SAY_ONE_OF_TWO = "use only one of the two"
    ONE_INSTANT_AT_TWO = (
        "--anchor {one:repr} and {two:repr} put one instant of {file} at two instants of {other}, {apart:time} "
        "apart, expected {allowed:time} at most"
    )
    ANCHOR_BEFORE_EVENTS = "--anchor {anchor:repr} names a time {away:long} before its first event: check file and unit"
    ANCHOR_AFTER_EVENTS = "--anchor {anchor:repr} names a time {away:long} after its last event: check file and unit"
    ANCHOR_ELSEWHERE = "the anchor {anchor:repr} puts {file} and {other} {away}"
    CHECK_ANCHOR = (
        "check the anchor; if the clocks of two machines differed, --offset {file:file}={move:option}~{within:within} "
        "moves the file"
    )
    ANCHOR_BELIEVED = "{guess}: {apart:time} away from --anchor {anchor:repr}, which is used"

    # -- constraint_parser --------------------------------------------------------------------------------------------
    OPTION_TWICE = "{option} is given twice for {name:repr}"
    OPTION_FORM = "{option} {text:repr}: expected {form}"
    OPTION_WRONG = "{option}: {reason}"
    NO_INPUT = "{name:repr} is not one of the inputs"
    SEVERAL_INPUTS = "{name:repr} matches several inputs"
    THE_INPUTS = "the inputs: {inputs:list}"
    NO_DRIFT = "--drift: {text:repr} is not a drift such as 12ppm, -3.5ppm or 40ppb"
    TOO_MUCH_DRIFT = "--drift: {text:repr} is more than {most} ppm, and no clock drifts that much"
    NO_CLOCK = "--clock: {name:repr} is not a known clock"
    ONE_OF_CLOCKS = "one of {clocks:list}"
    NO_CLOCK_AT_HOST = "--clock: {text:repr}: expected CLOCK or CLOCK@HOST (none has no host)"
    NO_NAME_OF_ONE = "--clock: {text:repr}: {machine} does not name one machine"
    LEAVE_HOST_OUT = "leave it out: {clock}"
    NO_ZONE = "--tz: {text:repr} is not an offset such as +02:00 or UTC"
    ZONES_END = "no zone is more than 14 hours from UTC"
    NO_NAMES_OF_ZONES = "zone names are not supported: `date +%:z` prints the offset of the machine where it runs"
    NO_DAY = "--date: {text:repr} is not a day such as 2018-10-26"
    ANCHOR_WRONG = "--anchor {text:repr}: {reason}"
    SEVERAL_WAYS = "it can be read in several ways"
    QUOTE_NAMES = 'put the names of events into double quotes: f:"a#1"'
    NO_OCCURRENCE = "#0 is not an occurrence"
    OCCURRENCES = "the first is #1, the last is #-1"
    BOTH_OF_ONE_INPUT = "both sides are of {file}, expected two inputs"
    ANCHOR_FORMS = "FILE@TIME=FILE@TIME or FILE:NAME#K.start=FILE:NAME#K.end, optionally with ~TIME at the end"
    EXPECTED = "expected {forms}"
    TWO_POINTS_EXPECTED = "expected two points with `=` in between: {forms}"
    WITHIN_NO_TIME = "{within:repr} after the `~` is not a time with a unit, 0 or more"
    HOW_FAR_APART = "how far apart the points can be, such as ~5us"
    NO_POINT = "no point follows {file:repr}"
    POINT_EXPECTED = "expected {file}@TIME or {file}:NAME#1.start"
    NO_TIME = "{text:repr} is not a time with a unit, or is beyond 146 years"
    UNITS = "units are ns, us, ms, s, min, h, such as 1.5ms"
    NO_START_OR_END = "{text:repr} ends in neither .start nor .end"
    START_OR_END = "expected {file}:{name}#1.start or {file}:{name}#1.end"
    NO_NUMBER = "{text:repr} has no number"
    FIRST_OF_NAME = "{file}:{name}#1.{end} is the first of that name, #-1 the last"

    # -- domains, hosts, machines, boot_sessions, repeated_snapshots --------------------------------------------------
    HOST_NOT_NAMED = (
        "it states no name that identifies its host, so its clock may not be that of the other ranks; if all are of "
        "one host: --same-machine"
    )
    ZONE_OF_TIMES = "if you know the zone of its local times: --tz {file:file}=+HH:MM"
    ZONE_AND_DATE_OF_TIMES = "if you know the zone of its local times: --tz {file:file}=+HH:MM --date {file:file}=DAY"
    IS_MONOTONIC = "--clock {file:file}=monotonic"
    IS_MONOTONIC_OF = "--clock {file:file}=monotonic@{machine:file}"
    BOTH_MONOTONIC = "if both count the monotonic clock of one machine: {options: }"
    BOTH_OF_ONE_MACHINE = "if both are of one machine, and it was not restarted in between: --same-machine"
    TOTALS_ONLY = "{option}: {file} holds totals only, no times"
    LEAVE_FILE_OUT = "leave {file} out of {option}"
    SEVERAL_CLOCKS = "{option}: {file} holds times of several clocks ({clocks:list})"
    NAME_AN_EVENT = "name an event on the clock you mean: --anchor '{file}:NAME#1.start=OTHER@TIME'"
    TWO_BOOTS = "--same-machine: {file} and {other} are of two boots"
    LEAVE_SAME_MACHINE_OUT = "leave it out: clocks since boot and pids hold only within one boot of a machine"
    ANOTHER_BOOT = (
        "it was recorded in another boot of {machine} than {other}, so only the wall clock relates their clocks "
        "since boot"
    )
    CLOCK_WAS_SET = (
        "{clock} and {other} moved apart by {moved:time} between the readings in {files:and}, more than clocks drift: "
        "one of them was set or stood still, so the bound in between is as wide"
    )
    SET_IN_BETWEEN = "{method} (set in between)"
    READ_TIMES = "{method}, read {count} times"
    NO_EVEN_DRIFT = "{files:list}: no constant drift fits the readings of {clock} and {other}"

    # -- duplicate_inputs, non_overlapping, jobs, names ---------------------------------------------------------------
    SAME_RECORDING = "its events are those of {other}: the same recording is drawn twice; leave one of the two out"
    SAME_SAMPLES = (
        "{shared} of its {samples} samples are samples of {other} (same events, threads and times): they are drawn "
        "twice; leave one of the two out"
    )
    OVERLAPS_WITH_NONE = (
        "it does not overlap in time with any other input, and is {gap:long} away from {other}: is it another run, "
        "or is its clock wrong?"
    )
    WITH_HINTS = "{said:; }"
    ZONE_WOULD_OVERLAP = "the local time of {file} was read as {zone}: {options} would make them overlap"
    NO_ZONE_WOULD_OVERLAP = "the local time of {file} was read as {zone}, and no other zone would make them overlap"
    DATE_IS = "--date {file:file}={day}"
    ANY_ZONE_OF = "--tz {file:file}=ZONE with any of {count} zones"
    ONE_OPTION_OF = "{options: or }"
    ANOTHER_JOB = (
        "it is from a job of {ranks} ranks, and {other} from one of {its_ranks}: collectives of two jobs are not "
        "compared"
    )
    MAP = "--map {kind}={patterns}"
    MAP_TAKES_NO_NAME = "{map}: no event has such a name"
    HOW_TO_MAP_NAMES = "case does not matter, and * matches anything: convolution=*conv* matches all names with conv"
    MAP_JOINS_NO_NAMES = "{map}: {kind} is not a known class, and its patterns relate no names of two files"
    CLASSES_OF_NAMES = (
        "known classes are {classes:list}; for other work, list the names in both files: "
        "{kind}=NAME_IN_ONE,NAME_IN_THE_OTHER"
    )
    NOT_A_MAP = "--map {given:repr}: expected CLASS=PATTERN,PATTERN, such as convolution=Conv*,*FusedConv*"

    # -- contradictions -----------------------------------------------------------------------------------------------
    TOO_MANY_TO_CHECK = "its clock was not checked against the events of {other}: there are more than {most} slices"
    FITS_IN_SEVERAL_PLACES = "its events do not fit those of {other} at this offset, but at several others"
    WRONG_OR_TWO_RUNS = "a clock is wrong, or they are of two runs"
    STEPS = "{steps:, then }"
    BOTH_FILES_SAY = "as both files state them"
    ZONE_OPTION = "--tz {file:file}={zone}"
    ZONE_MOVED = (
        "its local time was read as {was}, but {matches} matches with {other} fit only in {zone}; {zone} is used: "
        "{option} states it"
    )
    ZONES_WOULD_AGREE = "{options:and} would agree with the events; "
    EVENTS_CONTRADICT = (
        "{a} and {b}: their clocks ({by}) contradict their events: {n} events fit only if {file} is moved by "
        "{move:time}"
    )
    BELIEVE_OR_LEAVE = (
        "{settle}--offset {file:file}={move:option}~{within:within} follows the events; --anchor names one event in "
        "both files"
    )
    WORK_TOO_EARLY = (
        "{host} and {device}: their clocks ({by}) contradict their events: {early}, and at most {most:time} is possible"
    )
    NONE_TOO_EARLY = "if you know the offset: --offset {file:file}=TIME; it is at least {move:time}"
    EARLY_WORK_WARNING = "the clocks of {host} and {device} contradict their events: {early}"
    MOVE = "{move:move}"
    MOVES = "{begin:move} at its start and {end:move} at its end"
    FITS_BETTER = "its events and those of {other} would fit better {where}, but that is {verdict}: {reason}"
    BELONGS_ELSEWHERE = "its events and those of {other} fit {where} ({n} matches, within {within:time})"
    OFFSET_WOULD_AGREE = "{text}; --offset {file:file}={move:option}~{within:within} would agree"

    # -- solve --------------------------------------------------------------------------------------------------------
    LOOP_DOES_NOT_CLOSE = (
        "the clocks of {files:list} contradict each other: a time mapped along {path: -> } comes back {apart:time} "
        "off, expected {most:time} at most"
    )
    ONE_RELATION_IS_WRONG = (
        "one of these relations is wrong, but it is not clear which: leave a file out, or place one by --offset "
        "{file}=TIME"
    )
    LOOP_IS_STRAINED = (
        "a time mapped along {path: -> } comes back {apart:time} off, expected {most:time} at most: one of these "
        "relations is less accurate than stated"
    )
    ASSUMED_IS_OFF = "{method}: its events show that this is {apart:time} off; the events are used"
    PAIR_LEFT_OUT = (
        "the events of {a} and {b} were left out: alone they place the two {apart:time} from where all others place "
        "them"
    )
    CANNOT_BE_LINED_UP = "{a} and {b} cannot be aligned: {why}"
    PARTS_OF_ONE_CLOCK = (
        "{parts:and} are on one clock, but each is compared by itself, and has too little in common with {b}: {why}"
    )
    SETTLE_AMBIGUITY = (
        "`traceconv clocks {files:files}` lists what would help; if you know the offset: --offset FILE=TIME or "
        "--anchor; --on-ambiguous best takes the best offset and marks it"
    )
    BESIDE_OTHERS = "not aligned: starts with the others"
    TAKEN_AS_BEST = "placed at the best offset (--on-ambiguous best), but that is {verdict}: {why}"
    NOT_ALIGNED = "not aligned: do not compare its times with those of other files"
    NOT_ALIGNED_BECAUSE = "not aligned: do not compare its times with those of other files ({reason})"

    # -- inputs, placement --------------------------------------------------------------------------------------------
    ONE_BOOT = "both count from the boot of one machine, as --same-machine says"
    NO_TIMES = "no times in the file: placed at its first timed event"
    TOTALS = "totals have no times: placed at the start of the trace"
    DURATIONS_IN = "durations of the same work in {file}"
    IN_THE_SAME_SLICES = "it lies in the same slices as {other}, so one of the two must be of another run"
    TWO_CLOCKS_IN_ONE_FILE = "{file} holds times of two unrelated clocks: {one}, and {other}"
    SPLIT_IT = "split it where the second recording starts, and merge the parts with --offset"
    CANNOT_BE_RELATED = "{a} and {b} have no common clock{events} ({a}: {one}; {b}: {other})"
    NOR_DO_EVENTS_TELL = ", and their events do not determine the offset: {reason}"
    SAY_SAME_RUN = "if both are of one run: --same-run"
    CLOCKS_COMMAND = "`traceconv clocks {files:files}` lists what would help"
    SAY_OFFSET = "if you know the offset, --offset {file:file}=TIME adds it to all times of that file"
    TWO_FORMS_WITHOUT_TIMES = ": both are forms of one recording, in which the times differ"
    LEAVE_ONE_OUT = "leave one of the two out"
    DRAW_SEPARATELY = "--on-ambiguous separate draws it from the start of the others on, and marks it"
    ELSE = "{advice:; }"
    WOULD_RUN_OFF = "{file}: the known relations of its clock contradict each other: its drift would be {drift:drift}"
    LEAVE_OUT_OR_PLACE = "leave a file out, or place this one with --offset"
    TOO_FAR = "{file}: after the move, its times are more than 146 years from zero"
    CHECK_OFFSET_AND_UNIT = "check --offset and the unit of the times (-O ts_unit=...)"

    # -- receipts -----------------------------------------------------------------------------------------------------
    ITS_OWN_TIMES = "its own times"
    AS_SECONDS = "its own times, assumed to be seconds"
    TOTALS_ALONE = "totals have no times"
    NO_TIMES_ALONE = "no times in the file: positions are synthetic"
    ALONG_LINES = "{method}, in {n} segments of time"
    BOUND = "{bound:bound}"
    BOUND_AMONG_DEVICES = "{bound}; {devices:bound} between devices"
    BOUND_OF_TWO_HOSTS = "not known (clocks of hosts may differ)"

    # -- causality ----------------------------------------------------------------------------------------------------
    CHILD_OUTSIDE_PARENT = "child outside its parent"
    CALL_OUTSIDE_OPERATORS = "call outside of every operator"
    KERNEL_BEFORE_LAUNCH = "kernel before its launch"
    RECEIVE_BEFORE_SEND = "receive before its send"
    FLOW_BACKWARDS = "flow backwards in time"
    COLLECTIVE_LEFT_EARLY = "collective left before it was entered"
    MATCHES = "{count:match es}"
    CALLS = "{count:call s}"
    LAUNCHES = "{count:launch es}"
    FLOWS = "{count:flow s}"
    COLLECTIVES = "{count:collective s}"
    SAID_OF_FILE = "{file}: {text}"
    SLICE_AT = "{place} {name:repr}"
    EFFECT_AND_CAUSE = "{effect}, {cause}"
    CALLS_TOO_FEW = "{count} calls in {files:and}: too few that operators could hold to check"
    CALLS_BESIDE = ", and {count} more where no operator was recorded"
    CHECKED = "{rule}: {count} of {pairs} of {files:and}{outside}{worst}{rest}"
    BY_UP_TO = ", by up to {time:time}"
    WORST_AT = "{worst} ({place})"
    FAULT_OF_RECORDING = ": a fault of the recording, not of the alignment"
    BEYOND_LIMIT = "; {count} of them by more than the possible {limit:time}"
    BEFORE_CORRECTION = "; before the correction: {count}{worst}"
    UNKNOWN_BEFORE = "; not known before the correction"
    BESIDE = "{one}{other}"
    CAUSALITY_CHECKED = "causality: {sizes:and} checked, {total}"
    NO_CAUSALITY_CHECKED = "causality: nothing was checked"
    OUT_OF_ORDER = "{count} out of order"
    ALL_IN_ORDER = "all in order"
    INDENTED = "  {line}"
    CONTRADICTS_ITS_PLACE = "aligned with {other}, its events break a rule: {check}"
    SAY_WHERE_IT_BELONGS = (
        "place it by --anchor or --offset {name:file}=TIME; --on-ambiguous best leaves it here and marks it"
    )

    # -- containment --------------------------------------------------------------------------------------------------
    CALLS_FIT_ELSEWHERE = (
        "with these clocks, only {inside} of {count} calls{where} lie in operators of {framework}; "
        "{fitting} would if placed {move:move}: {why}"
    )
    FROM_ON = ", from {place} on,"
    CALLS_IN_NO_OPERATOR = (
        "with these clocks, {outside} of {count} calls lie in no operator of {framework}; {empty} "
        "operators hold no call: {why}"
    )
    LOOSE_CALLS_BELONG_ELSEWHERE = (
        "{calls} calls lie {where}; {fitting} of them would lie in operators if placed {move:move}, {empty} of which "
        "hold no call otherwise: a clock was set in between"
    )
    AMONG = "in no operator of {framework}"
    BEFORE_ALL = "before all operators of {framework}"
    AFTER_ALL = "after all operators of {framework}"
    CALLS_OF_OTHERS = (
        "{count} of {checked} calls are drawn apart, as of another process or thread: they do not fit into operators "
        "of {files:and}, or start during calls that fit better"
    )
    CLOCK_WRONG_OR_TWO_PROCESSES = "a clock is wrong or was set in between, or the files are of two processes"
    OPERATORS_WITHOUT_CALLS = (
        "{empty} operators of {framework} in a row hold no call while the log goes on: a clock was set in between, "
        "lines are missing, or other code did their work"
    )

    # -- collectives, ranks -------------------------------------------------------------------------------------------
    LEFT_BEFORE_ENTERED = "rank {left} left {name:repr} before rank {entered} entered it: {early}, {late}"
    COLLECTIVES_CONTRADICT = (
        "by {clocks}, {count} of {all} collectives are impossible, by up to {worst:short} ({place})"
    )
    WALL_CLOCKS_TAKEN_FOR_ONE = "the wall clocks of its host and of {other}, taken as equal"
    CLOCKS_OF_BOTH = "its clock and that of {other}"
    BECAUSE = "{text}: {why}"
    NO_OFFSET_EXPLAINS = "no offset makes all of them possible: a clock was set in between, or records are missing"
    ONE_CLOCK_WAS_SET = "one clock was set in between, by about {by:short}, or records are missing"
    KEEP_CLOCKS = "--on-ambiguous best keeps all clocks, and marks them"
    MOVED_BY = "--offset {name:file}={move:option}~{within:within}"
    MAY_BE_TWO_JOBS = "the ends of these collectives do not show one job; if they are of one, "
    ALL_POSSIBLE_WITH = "{jobs}with {options: } all these collectives are possible; {leave}"
    FEWER_IMPOSSIBLE_WITH = (
        "{jobs}with {options: } {count} of {all} collectives remain impossible, by up to {worst:short} instead of "
        "{now:short}; {leave}"
    )
    PLACED_BY_COLLECTIVES = (
        "{count:collective s} of {groups:group s}; its wall clock and that of {other} are {apart:short} apart"
    )
    NO_CLOCKS_OF_HOSTS_FIT = (
        "{files:list}: no offsets between their hosts make all their collectives possible; {names:and} contradict each "
        "other: a clock was set in between, records are wrong, or they are of different jobs"
    )
    DRIFT_NOT_CONFIRMED = "its file places it up to {apart:short} elsewhere, and no events confirm --drift"
    ENDS_OF_NO_JOB = (
        "{files:list}: these may be records of different jobs, or of different collectives: the ranks of a job leave a "
        "collective together; here the ends scatter by {scatter:short}, and the times between them do not vary together"
    )
    CLOCK_WAS_SET_AFTER = (
        "{files:list}: by the ends of their collectives, the clock of a host was set by {by:short} after {name:repr} "
        "at {place}"
    )
    ENDS_WANDER = (
        "{files:list}: the ends of their collectives wander apart as those of no two clocks: a clock was set or slewed "
        "several times, or the records are of different jobs"
    )
    ENDS_DRIFT = (
        "{files:list}: by the ends of their collectives, the clocks of their hosts drift by {drift:+.0f} ppm, expected "
        "{most:.0f} ppm at most: one is being slewed, or the records are of different jobs"
    )
    COLLECTIVE_NUMBERED = "{name:repr} number {seq}"
    OF_TWO_RANKS = "{collective} (rank {left} left it at {early}, rank {entered} entered it at {late})"
    HOSTS_ARE_APART = (
        "by {count:collective s} of both, the wall clock of {host} is {least} to {most} ahead of that of "
        "{other} (in the middle of the recording)"
    )
    HOSTS_MAY_BE_APART = (
        "by {count:collective s}, the wall clock of {host} is at most {least} behind and "
        "{most} ahead of that of {other} (in the middle of the recording)"
    )
    SEVERAL_ORDERS_FIT = (
        "{files:list}: their collectives have no numbers (Seq) and fit at several offsets between their hosts; the "
        "wall clocks do not decide"
    )
    NO_ORDER_FITS = (
        "{files:list}: their collectives have no numbers (Seq), and it is not certain which records are one "
        "collective: one file lacks some, or a clock was set in between"
    )
    RANKS = "ranks {ranks}"
    MANY_RANKS = "{count} ranks"
    NO_COLLECTIVE_CHECKED = (
        "none of {count} records of collectives of {ranks} was checked: none has a certain partner on another rank"
    )
    COLLECTIVES_CHECKED = "{collectives} of {ranks} checked: {found}{alone}"
    ALL_COLLECTIVES_POSSIBLE = "all are possible with these offsets"
    COLLECTIVES_IMPOSSIBLE = "{count} are impossible with these offsets, by up to {worst:short} ({place})"
    WITHOUT_PARTNER = "; {count} more records have no certain partner"

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
    ONLY_WRITER = "only this process can have written the log; {machine}"
    BOTH_OF_HOST = "both are from host {host}"
    BOTH_OF_ONE_BOOT = "both are from one boot"
    HOSTS_OF_ONE_BOOT = "{one} and {other} are from one boot"
    USER_SAYS_ONE_MACHINE = "--same-machine says that it is one machine"
    NO_INPUT_NAMES_A_MACHINE = "assumed: no input names its machine"
    NAMES_NO_MACHINE = "{file} names no machine"
    NEITHER_NAMES_A_MACHINE = "neither names a machine"
    OTHERS_OF_HOST = "assumed: {none}, all others are from host {host}"
    OTHERS_OF_ONE_MACHINE = "assumed: {none}, all others are from one machine"
    NOT_ONE_PROCESS = "{names}: not one process in {files}: {why}"
    NOT_ONE_PROCESS_EACH = "{names}: not one process each in {files}: {why}"
    OF_SEVERAL_HOSTS = "they are from the hosts {hosts}"
    OF_SEVERAL_BOOTS = "they are from different boots"
    OF_SEVERAL_RANKS = "they are of the ranks {ranks}"
    RECORDED_TWICE = "both are recordings of {format} at the same time"
    MACHINES_UNSAID = "no input shows that they are from one machine"
    PROCESS_UNTOLD = "{name} of {file} stays apart: no input names its process"
    PROCESSES_UNTOLD = "{name} of {file} stay apart: no input names their process"
    CAN_BELONG_TO_SEVERAL = "{name} of {file} stays apart: it may belong to {meant}"

    # -- clock_overview -----------------------------------------------------------------------------------------------
    IF_MONOTONIC = "if {file} counts the monotonic clock of this machine: {option}"
    READ_CLOCKS = "next time, read the clocks around the run: traceconv anchor -o anchor.json -- COMMAND"
    IF_INSTANT_KNOWN = "if you know an instant that both recorded: --anchor {anchor:file}"
    IF_APART_KNOWN = "if you know how far apart they are: --offset {file:file}=TIME"
    EVENTS_MAY_TELL = (
        "their events may determine the offset: traceconv align {files:files} (if it refuses, use one of the following)"
    )


#: The texts that say the same of an input and of the `other` one, if all other fields are equal.
SYMMETRIC = frozenset({Text.OVERLAPS_WITH_NONE})
#: The templates in use; another language replaces this mapping.
TEMPLATES: Final[dict[Text, str]] = {text: text.value for text in Text}
