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


class Text(enum.Enum):
    """The templates. The value of each is the text in English."""

    def __call__(self, **fields: Any) -> Message:
        """Return the message made of this template and the fields."""
        return Message(self, tuple(fields.items()))

    # -- estimators, pairs --------------------------------------------------------------------------------------------
    QUEUED = (
        "both name the same work, but that of a device runs when its queue comes to it, in no call for certain: ids "
        "of its launches in both would tell"
    )
    VIEWS_APART = "different views of the activity are certain of different offsets"
    LAUNCHES_TELL_NO_MORE = "launches tell to ±{bound:us}, no more than is known without it"
    ACTIVITY_TELLS_NO_MORE = "the activity tells to ±{bound:us}, no more than is known without it"
    COMPARED_LAUNCHES = "kernels and the calls that launched them"
    COMPARED_SEQUENCE = "the same events in both"
    COMPARED_ACTIVITY = "the same activity in both"
    COMPARED_SAMPLING_GAPS = "the gaps around sampling interrupts"
    COMPARED_DUPLICATE = "the same recording, given twice"
    ALL_EQUAL = "all {events} events are equal, to the ns"
    OTHER_RUN = "perhaps of two runs, of two parts of one run, or of a clock that was set meanwhile"
    OTHER_PLACES = "{reason}; other offsets, against the best one: {rivals:moves}"

    # -- sequences ----------------------------------------------------------------------------------------------------
    FEW_COMMON_EVENTS = "only {events} events of the same kinds of work, {least} are needed"
    TRACES_DO_NOT_MEET = "the events of both do not overlap where their clocks allow it"
    NO_PLACE_FITS = "the events of both fit at no offset"
    BEGIN_FITS = (
        "the first {span:short} fit ({begin} events), the whole does not ({whole} events): a clock was set, or changed "
        "its rate, on the way"
    )
    BEGIN_FITS_ELSEWHERE = (
        "{matches} events match, and {more} more at the start match at another offset: a clock was set"
    )
    END_FITS_ELSEWHERE = "{matches} events match, and {more} more at the end match at another offset: a clock was set"
    REASON_AND_WHY = "{reason}; {why}"
    NO_STEADY_CLOCK = (
        "{share:.0%} of the events match in order, but no steady clock puts all of them inside each other "
        "({apart:short} apart), {other_run}"
    )
    FEW_EVENTS_MATCH = "only {share:.0%} of the events match, {apart:short} apart, {other_run}"
    EVENTS_FIT_IN_ANOTHER_PLACE = "the traces fit nearly as well at 1 other offset, {away:short} away"
    EVENTS_FIT_IN_OTHER_PLACES = (
        "the traces fit nearly as well at {others} other offsets, the nearest {away:short} away"
    )
    EVENTS_HARDLY_FIT = "the traces hardly fit better at the best offset than at random ones"
    ONLY_SOME_MATCH = "only {matches} events match"
    EVENTS_MATCH = "{matches} events match, {share:.0%} of those that could"
    EVENTS_MATCH_ALONG_LINES = (
        "{matches} events match, {share:.0%} of those that could, along {lines} lines: {changes:list}"
    )
    DURATIONS_VARY_TOGETHER = "{count} durations vary together in both, to {same:.0%}"
    LOOKS_LIKE_TWO_RUNS = "{reason}, but durations do not vary together: these look like two runs ({compared})"
    MAY_BE_OF_TWO_RUNS = "{reason}; but they may be of two runs that had the same work at the same times ({compared})"
    MAY_RUN_LATER = (
        "{reason}; but neither do the formats say that the work of the one lies inside the calls of the other, nor do "
        "durations show it ({count} vary together to {same:.0%}): a queue may run it later"
    )

    # -- piecewise_linear ---------------------------------------------------------------------------------------------
    LINES_ARE_UNCLEAR = "it is not clear how"
    REST_FITS_NOWHERE = "what comes {after:short} after the start fits nowhere for certain"
    TIMES_OCCURRED_TWICE = "a clock was set back by {by:short}, so that some of its times occurred twice"
    SET_AHEAD_THERE = "a clock was set ahead by {by:short} {at:short} after the start"
    SET_BACK_THERE = "a clock was set back by {by:short} {at:short} after the start"
    DRIFT_CHANGED = "the drift changed from {before:+.2f} to {after:+.2f} ppm {at:short} after the start"

    # -- durations, duration_layout, duration_placement ---------------------------------------------------------------
    DURATIONS_ARE_MEANS = "durations of {which} are means of several runs, which are like no run; profile single runs"
    BOTH_LOGS = "both"
    OUTER_LOG = "the outer"
    INNER_LOG = "the inner"
    FEW_DURATIONS = "only {known} slices of the same kinds of work have a duration, {least} are needed"
    DURATIONS_FIT_ELSEWHERE = (
        "the durations fit nearly as well at {others} other offsets; {settle}, or one that starts with the profile"
    )
    DURATIONS_FIT_ITERATIONS_AWAY = (
        "the durations fit nearly as well at {others} other offsets, {spacing:short} apart; {settle}, or one that "
        "starts with the profile"
    )
    LOG_WITH_TIMES_SETTLES = "a log with times would settle it"
    CERTAIN_MATCHES = "{used} of {total} events match with certainty"
    FEW_CERTAIN_MATCHES = "only {matches}; {settle}"
    NOTHING_REPEATS = "{matches}; nothing repeats, so that another run would match as well"
    ITERATIONS_DIFFER = (
        "the iterations differ too much, or miss too much, to tell whether both are of one run: {settle}"
    )
    ITERATIONS_VARY_TOGETHER = "from one iteration to the next they vary together in both, to {same:.0%}"
    ITERATIONS_VARY_APART = "{matches}, but {together} only, {other_run}; {settle}"
    FEW_ITERATIONS_COMPARE = "{matches}; too few ({count}) are comparable to exclude another run"
    ITERATIONS_HARDLY_TOGETHER = "{matches}; {together}, which is too little to be certain of one run"
    ITERATIONS_OF_ONE_RUN = "{matches}; {together} ({count} compared)"
    COMPARED_DURATIONS = "durations of the same work"
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
    PLACED_AROUND = "around the events inside"
    PLACED_INSIDE = "inside {parent}"
    PLACED_BETWEEN = "between neighbours"
    PLACED_BEFORE = "before the first match"
    PLACED_AFTER = "after the last match"
    PLACED_SHORTENED = "{placed}, shortened"

    # -- activity, activity_views -------------------------------------------------------------------------------------
    SAMPLES = "samples"
    INTERVALS = "intervals"
    TOO_LITTLE_ACTIVITY = "only {count} {what}, {needed} are needed"
    SAMPLES_ALL_EQUAL = "{busy:.0%} of the samples are busy: nothing starts or ends"
    COUNTER_GROWS_EVENLY = "the counter grows evenly: nothing begins or ends"
    NO_OVERLAP = "the traces do not overlap where their clocks allow it"
    SLICES_ARE_NO_BUSIER = "nowhere are the slices busier than the time between them"
    ACTIVITY_FITS_ELSEWHERE = "the {what} fit nearly as well {away:short} away"
    ACTIVITY_FITS_AROUND = "the {what} fit nearly as well up to {away:short} away"
    ACTIVITY_HARDLY_FITS = "the {what} hardly fit better at the best offset than at random ones"
    ACTIVITY_FITS = "{count} {what} fit, to within {width:short}"

    # -- sampling_gaps ------------------------------------------------------------------------------------------------
    SAMPLES_AVOID_SLICES = (
        "{samples} samples keep away from the starts and ends of slices: together within ±{half:short}"
    )
    SAMPLES_AVOID_NOTHING = "nowhere do samples keep away from the starts and ends of slices more than by chance"
    SAMPLES_AVOID_ANOTHER_PLACE = (
        "samples keep away from the starts and ends of slices as much at an offset {away:short} away"
    )
    FEW_SAMPLES_AMONG_SLICES = "too few samples lie among the slices"
    NO_LINE_THROUGH_GAP = "no line passes through the gap between samples and slices"

    # -- launches -----------------------------------------------------------------------------------------------------
    EARLY_WORK = "{early} of {kernels} kernels begin before the calls that launched them, by up to {worst:time}"
    IDS_LEFT_OUT = "{reason} ({slices} slices with ids that are not their own are left out)"
    FEW_LAUNCH_IDS = "only {ids} ids of launches are in both files"
    FEW_LAUNCHED = "only {share:.0%} of the work has a launch with its id: these look like two runs"
    WORK_OUT_OF_ORDER = "only {share:.0%} of the work is in the order of its launches: these look like two runs"
    LAUNCHES_CONTRADICT_WAITS = "{launches} launches and {waits} waits contradict each other, {other_run}"
    LAUNCHES_CONTRADICT_CLOCKS = "{launches} launches and {waits} waits contradict what is known of the clocks"
    FEW_WAITS = (
        "{kernels} kernels begin after their launches, which says how late they are at most, and {waits} calls wait "
        "for the device, which would say how early: record calls that do (cudaDeviceSynchronize), or say roughly how "
        "the clocks are related"
    )
    GAPS_VARY_TOGETHER = "{gaps} gaps between them vary together in both, to {together:.0%}"
    LITTLE_SHOWS_ONE_RUN = "ids are the same, but too little shows that it is one run ({compared})"
    LAUNCHES_MAY_BE_OF_TWO_RUNS = "launches and kernels fit, but may be of two runs ({compared})"
    LAUNCHES_FIT = "{kernels} kernels begin after their launches, {waits} waits end after them ({compared})"

    # -- constraints --------------------------------------------------------------------------------------------------
    LEAVE_IT_OUT = "leave it out"
    DATE_IN_FILE = "--date: {file} ({format}) states its date itself"
    DATE_IN_TIMES = "--date: the times of {file} have a date already"
    DAY_WITHOUT_YEAR = "--date: the times of {file} have a day but no year: they cannot be placed by a date"
    GIVES_NO_UNIX_TIME = "{option}: that does not give {file} ({format}) a time since 1970"
    NO_LOCAL_TIME_OR_MORE_NEEDED = "it holds no local time, or {option} is needed, too"
    NEEDED_TOO = "{file}: its times count {clock}: {option} is needed, too"
    NO_LOCAL_TIMES = "{option}: {file} ({format}) has no local times: they count {clock}"
    OFFSET_AND_ANCHOR_PLACE_ANY = "--offset and --anchor place any file"
    LOCAL_TIME_READ = "local time read as {zone}"
    LOCAL_TIME_READ_FROM = "local time read as {zone}, from {day} on"
    CLOCK_IS = "--clock: it is {clock}"
    CLOCK_IS_OF = "--clock: it is {clock} of {machine}"
    RECORDED_BY_PERF = "--clock: recorded by perf"
    MACHINE_OF_NO_INPUT = (
        "--clock says that it is of {machine}, but the inputs name {named:list} only: is the name right?"
    )
    SEVERAL_MACHINES = "--clock: the inputs name several machines, and not which of them {file} is from"
    SAY_WHICH_MACHINE = "say it: --clock {file:file}={clock}@HOST"
    CLOCK_CANNOT_BE = "the clock of {file} cannot be {clock}: {reason}"
    LEAVE_CLOCK_OUT = "leave --clock out, or use --offset or --anchor"
    HAS_NO_TIMES = "it has no times"
    TIMES_COUNT = "its times count {clock}"
    SAYS_ITS_WALL_TIME = "it says itself where its times are on the wall clock ({method})"
    SAYS_ITS_CLOCK = "it says itself that it is {clock}"
    SAYS_ITS_MACHINE = "it says itself that it is of {machine}"
    FIRST_TIME_IS = "its first time is {ts:time} after zero"
    FIRST_TIME_ELSEWHERE = "its first time is {away}: was the machine started anew in between?"
    AWAY_FROM_KNOWN = "{apart:time} away from what is known ({method}), expected {allowed:time} at most"
    READ_WITH_OTHER_DRIFT = (
        "--drift says that the clock of {file} drifts by {stated:drift}, but it was read more than once ({method}): it "
        "drifts by {read:drift}, within ±{within:.3f} ppm"
    )
    TWO_DRIFTS = "--drift: {file} counts {clock}, of which another drift is stated for another file"
    SAY_ONE_DRIFT = "say the drift of a clock for one of the files that count it: it holds for all of them"
    LEAVE_DRIFT_OUT = "leave --drift out: what was read is used"
    NO_SUCH_EVENT = "--anchor {anchor:repr}: {file} has no event of the name {name:repr}"
    FEWER_EVENTS = "--anchor {anchor:repr}: {file} has {count} events of the name {name:repr}, not {number}"
    FIRST_AND_LAST = "the first is #1, the last is #{count} or #-1"
    ROW_WITHOUT_TIME = "--anchor {anchor:repr}: {name:repr} in {file} is a row of a table without times"
    HAS_FOR_INSTANCE = "it has, for instance, {names:list}"
    HAS_NO_EVENTS = "it has no events at all"
    ANCHOR_AND_FREE_DRIFT = "--anchor, with up to {ppm:.0f} ppm of drift away from its instant"
    ANCHORS_CONTRADICT = (
        "the anchors contradict each other: between {early:repr} and {late:repr} pass {passed:time} in {file}, but "
        "{its_passed:time} in {other}, {reason}"
    )
    MORE_THAN_DRIFT_ALLOWS = "which is more than their bounds and a drift of {ppm:g} ppm allow"
    LESS_WITHOUT_CLOCK = "and their bounds allow for less; {file} has no clock, so no drift explains it"
    LESS_BESIDES_DRIFT = "and their bounds allow for less besides --drift"
    ONE_ANCHOR_WRONG = "one of them is wrong, or less exact than it says: put ~TIME behind it"
    OFFSET_MOVES_ANCHOR = "--offset moves {file} and {other} {apart:time} away from their anchor {anchor:repr}"
    SAY_ONE_OF_TWO = "say only one of the two"
    ONE_INSTANT_AT_TWO = (
        "--anchor {one:repr} and {two:repr} are about one instant of {file}, but put it at two of {other}, "
        "{apart:time} apart, expected {allowed:time} at most"
    )
    ANCHOR_BEFORE_EVENTS = (
        "--anchor {anchor:repr} names a time {away:long} before its first event: is it of this file, and is its unit "
        "right?"
    )
    ANCHOR_AFTER_EVENTS = (
        "--anchor {anchor:repr} names a time {away:long} after its last event: is it of this file, and is its unit "
        "right?"
    )
    ANCHOR_ELSEWHERE = "the anchor {anchor:repr} puts {file} and {other} {away}"
    CHECK_ANCHOR = (
        "check the anchor; if the clocks of two machines were apart, --offset {file:file}={move:option} moves the file"
    )
    ANCHOR_BELIEVED = "{guess}: {apart:time} away from --anchor {anchor:repr}, which is believed"

    # -- constraint_parser --------------------------------------------------------------------------------------------
    OPTION_TWICE = "{option} is given twice for {name:repr}"
    OPTION_FORM = "{option} {text:repr}: expected {form}"
    OPTION_WRONG = "{option}: {reason}"
    NO_INPUT = "{name:repr} is none of the inputs"
    SEVERAL_INPUTS = "{name:repr} fits several inputs"
    THE_INPUTS = "the inputs: {inputs:list}"
    NO_DRIFT = "--drift: {text:repr} is not a drift such as 12ppm, -3.5ppm or 40ppb"
    TOO_MUCH_DRIFT = "--drift: {text:repr} is more than {most} ppm, which no clock drifts"
    NO_CLOCK = "--clock: {name:repr} is not a clock that is known"
    ONE_OF_CLOCKS = "one of {clocks:list}"
    NO_CLOCK_AT_HOST = "--clock: {text:repr}: expected CLOCK or CLOCK@HOST (none has no host)"
    NO_NAME_OF_ONE = "--clock: {text:repr}: {machine} is not a name of one machine"
    LEAVE_HOST_OUT = "leave it out: {clock}"
    NO_ZONE = "--tz: {text:repr} is not an offset such as +02:00 or UTC"
    ZONES_END = "no zone is further from UTC than 14 hours"
    NO_NAMES_OF_ZONES = "names of zones are not understood: `date +%:z` prints the offset of the machine it runs on"
    NO_DAY = "--date: {text:repr} is not a day such as 2018-10-26"
    ANCHOR_WRONG = "--anchor {text:repr}: {reason}"
    SEVERAL_WAYS = "it can be read in several ways"
    QUOTE_NAMES = 'put the names of events into double quotes: f:"a#1"'
    NO_OCCURRENCE = "#0 is not an occurrence"
    OCCURRENCES = "the first is #1, the last is #-1"
    BOTH_OF_ONE_INPUT = "both sides are of {file}, expected two inputs"
    ANCHOR_FORMS = "FILE@TIME=FILE@TIME, FILE:NAME#K.start=FILE:NAME#K.end, each with ~TIME behind it or not"
    EXPECTED = "expected {forms}"
    TWO_POINTS_EXPECTED = "expected two points with `=` in between: {forms}"
    WITHIN_NO_TIME = "{within:repr} behind the `~` is not a time with a unit, 0 or more"
    HOW_FAR_APART = "how far apart the points can be, such as ~5us"
    NO_POINT = "there is no point behind {file:repr}"
    POINT_EXPECTED = "expected {file}@TIME or {file}:NAME#1.start"
    NO_TIME = "{text:repr} is not a time with a unit, or one beyond 146 years"
    UNITS = "units are ns, us, ms, s, min, h: such as 1.5ms"
    NO_START_OR_END = "{text:repr} ends in neither .start nor .end"
    START_OR_END = "expected {file}:{name}#1.start or {file}:{name}#1.end"
    NO_NUMBER = "there is no number in {text:repr}"
    FIRST_OF_NAME = "{file}:{name}#1.{end} is the first of that name, #-1 the last"

    # -- domains, hosts, machines, boot_sessions, repeated_snapshots --------------------------------------------------
    HOST_NOT_NAMED = (
        "it does not name its host, so that its clock may be that of another host than those of the other ranks: "
        "--same-machine, if all are of one"
    )
    ZONE_OF_TIMES = "if you know the zone of its local times: --tz {file:file}=+HH:MM"
    ZONE_AND_DATE_OF_TIMES = "if you know the zone of its local times: --tz {file:file}=+HH:MM --date {file:file}=DAY"
    IS_MONOTONIC = "--clock {file:file}=monotonic"
    BOTH_MONOTONIC = "if both count the monotonic clock of one machine: {options: }"
    BOTH_OF_ONE_MACHINE = "if both are of one machine, and it was not restarted in between: --same-machine"
    TOTALS_ONLY = "{option}: {file} holds totals only, without any time"
    LEAVE_FILE_OUT = "leave {file} out of {option}"
    SEVERAL_CLOCKS = "{option}: {file} holds times of several clocks ({clocks:list})"
    NAME_AN_EVENT = "name an event on the one that is meant: --anchor '{file}:NAME#1.start=OTHER@TIME'"
    TWO_BOOTS = "--same-machine: {file} and {other} are of two boots"
    LEAVE_SAME_MACHINE_OUT = (
        "leave it out: one boot of a machine has one clock since boot and gives each pid once, two do not"
    )
    ANOTHER_BOOT = (
        "it was recorded since another boot of {machine} than {other}: their clocks since boot are related by the wall "
        "clock only"
    )

    CLOCK_WAS_SET = (
        "{clock} and {other} moved against each other by {moved:time} between the readings in {files:and}, more "
        "than clocks drift: one of them was set or stood still, and nothing in between is known better than by that"
    )
    SET_IN_BETWEEN = "{method} (set in between)"
    READ_TIMES = "{method}, read {count} times"
    NO_EVEN_DRIFT = "{files:list}: no even drift leads through the readings of {clock} and {other}"

    # -- duplicate_inputs, non_overlapping, jobs, names ---------------------------------------------------------------
    SAME_RECORDING = (
        "its events are those of {other}: the same recording given twice is drawn twice; leave one of the two out"
    )
    SAME_SAMPLES = (
        "{shared} of its {samples} samples are of the same events, threads and times as samples of {other}: they are "
        "drawn twice; leave one of the two out"
    )
    OVERLAPS_WITH_NONE = (
        "it does not overlap in time with any other input, and is {gap:long} away from {other}: another run, or a "
        "clock that was read wrongly"
    )
    WITH_HINTS = "{said:; }"
    ZONE_WOULD_OVERLAP = "the local time of {file} was read as {zone}: {options} would let it overlap"
    NO_ZONE_WOULD_OVERLAP = "the local time of {file} was read as {zone}, and no other zone would let it overlap"
    DATE_IS = "--date {file:file}={day}"
    ANY_ZONE_OF = "--tz {file:file}=ZONE with any of {count} zones"
    ONE_OPTION_OF = "{options: or }"
    ANOTHER_JOB = (
        "it is of a job of {ranks} ranks, {other} of one of {its_ranks}: two jobs, so that what their ranks did "
        "together is not compared"
    )
    MAP = "--map {kind}={patterns}"
    MAP_TAKES_NO_NAME = "{map}: no event has such a name"
    HOW_TO_MAP_NAMES = "capitals do not matter, * stands for anything: convolution=*conv* takes all names with conv"
    MAP_JOINS_NO_NAMES = "{map}: there is no class {kind}, so this makes names of two files no more equal"
    CLASSES_OF_NAMES = (
        "classes are {classes:list}; for other work give the names of both files: {kind}=NAME_IN_ONE,NAME_IN_THE_OTHER"
    )
    NOT_A_MAP = "--map {given:repr}: expected CLASS=PATTERN,PATTERN, such as convolution=Conv*,*FusedConv*"

    # -- contradictions -----------------------------------------------------------------------------------------------
    TOO_MANY_TO_CHECK = (
        "whether its clock is right was not checked by its events and those of {other}, since there are more than "
        "{most} slices"
    )
    FITS_IN_SEVERAL_PLACES = "its events and those of {other} do not fit each other here, but at several other offsets"
    WRONG_OR_TWO_RUNS = (
        "its events and those of {other} do not fit each other here, but at several other offsets: a clock is "
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
    MOVES = "{begin:move} at its start and {end:move} at its end"
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
        "`traceconv clocks {files:files}` lists what would help; if you know the offset: --offset FILE=TIME or "
        "--anchor; --on-ambiguous best takes the best offset and marks it"
    )
    BESIDE_OTHERS = "not aligned: starts with the others"
    TAKEN_AS_BEST = "placed where it fits best (--on-ambiguous best), though that is {verdict}: {why}"
    NOT_ALIGNED = "not aligned: do not compare its times with those of other files"
    NOT_ALIGNED_BECAUSE = "not aligned: do not compare its times with those of other files ({reason})"

    # -- inputs, placement --------------------------------------------------------------------------------------------
    ONE_BOOT = "both count from the boot of one machine, as --same-machine says"
    NO_TIMES = "no times in the file: placed at its first timed event"
    TOTALS = "totals have no times: placed at the start of the trace"
    DURATIONS_IN = "durations of the same work in {file}"
    IN_THE_SAME_SLICES = "it lies in the same slices as {other}, so one of the two must be of another run"
    TWO_CLOCKS_IN_ONE_FILE = "{file} holds times of two clocks that nothing relates: {one}, and {other}"
    SPLIT_IT = "split it where the second recording begins, and merge the parts with --offset"
    CANNOT_BE_RELATED = "{a} and {b} have no common clock{events} ({a}: {one}; {b}: {other})"
    NOR_DO_EVENTS_TELL = ", and their events do not tell the offset: {reason}"
    SAY_SAME_RUN = "if both are of one run: --same-run"
    CLOCKS_COMMAND = "`traceconv clocks {files:files}` lists what would help"
    SAY_OFFSET = "if you know the offset, --offset {file:file}=TIME adds it to all times of that file"
    GUESS_OFFSET = "--offset {file:file}={move:option} lets both start together, which is a guess"
    ELSE = "{advice:; }"
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
    CONTRADICTS_ITS_PLACE = "its events contradict how it was put on one time axis with {other}: {check}"
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
        "{clocks} contradict their collectives: {count} of {all} are impossible with these offsets, by up to "
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
    PLACED_BY_COLLECTIVES = (
        "{count:collective s} of {groups:group s}; its wall clock and that of {other} are {apart:short} apart"
    )
    NO_CLOCKS_OF_HOSTS_FIT = (
        "{files:list}: no offsets of the clocks of their hosts let all of their collectives happen: {names:and} "
        "contradict each other, so that a clock was set meanwhile, or records are wrong"
    )
    COLLECTIVE_NUMBERED = "{name:repr} number {seq}"
    OF_TWO_RANKS = "{collective} (rank {left} left it at {early}, rank {entered} entered it at {late})"
    HOSTS_ARE_APART = (
        "the wall clock of {host} is ahead of that of {other} by {least:short} to {most:short}, in the middle, by "
        "{count:collective s} of both"
    )
    HOSTS_MAY_BE_APART = (
        "the wall clock of {host} is {least:short} behind that of {other} at most and {most:short} ahead at most, in "
        "the middle, by {count:collective s} of both"
    )
    SEVERAL_ORDERS_FIT = (
        "{files:list}: their collectives have no numbers (Seq), and several offsets of the clocks of their hosts "
        "let them happen; the wall clocks do not tell which"
    )
    NO_ORDER_FITS = (
        "{files:list}: their collectives have no numbers (Seq), and it is not certain which of them are one: one file "
        "lacks some, or a clock was set meanwhile"
    )
    RANKS = "ranks {ranks}"
    MANY_RANKS = "{count} ranks"
    NO_COLLECTIVE_CHECKED = (
        "none of {count} records of collectives of {ranks}: no partner of another rank is certain, so none was checked"
    )
    COLLECTIVES_CHECKED = "{collectives} of {ranks} checked: {found}{alone}"
    ALL_COLLECTIVES_POSSIBLE = "all are possible with these offsets"
    COLLECTIVES_IMPOSSIBLE = "{count} are impossible with these offsets, by up to {worst:short} ({place})"
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
    ONLY_WRITER = "it is the only one here that can have written the log; {machine}"
    BOTH_OF_HOST = "both are of host {host}"
    BOTH_OF_ONE_BOOT = "both are of one boot"
    HOSTS_OF_ONE_BOOT = "{one} and {other} are of one boot"
    USER_SAYS_ONE_MACHINE = "--same-machine says that it is one machine"
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
    IF_MONOTONIC = "if {file} counts the monotonic clock of this machine: {option}"
    READ_CLOCKS = "next time, read the clocks around the run: traceconv anchor -o anchor.json -- COMMAND"
    IF_INSTANT_KNOWN = "if you know an instant of both: --anchor {anchor:file}"
    IF_APART_KNOWN = "if you know how far apart they are: --offset {file:file}=TIME"
    EVENTS_MAY_TELL = (
        "their events may tell: traceconv align {files:files} (if it refuses, one of the following is needed)"
    )


#: The templates in use; another language replaces this mapping.
TEMPLATES: Final[dict[Text, str]] = {text: text.value for text in Text}
