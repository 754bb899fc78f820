"""Parse the statements of the user about inputs and their clocks, and about names of work."""

from __future__ import annotations

import enum
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date
from decimal import Decimal
from fnmatch import translate
from functools import cached_property
from shlex import quote

from msgspec import Struct

from traceconv.errors import UsageError, refuse_single_texts
from traceconv.io.shown import listed
from traceconv.model.clocks import DRIFT_UNIT, machine_name
from traceconv.model.numbers import parse_duration, step_of

#: The hint for clocks that contradict each other.
KEEP_CLOCKS = "--on-ambiguous best keeps all clocks, and marks them"
#: More than the drift of any clock, and within the range of a map.
_MOST_PPM = 900
_NUMBERED = re.compile(r"(.+) \(([2-9]|[1-9]\d{1,6})\)")
_PPM = re.compile(r"\s*([+-]?\d{1,9}(?:\.\d{1,9})?)\s*(ppm|ppb)\s*")
_ZONE = re.compile(r"([+-])(\d\d):?([0-5]\d)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_EVENT = re.compile(r':("(?:[^"\\]|\\.)*"|(?!").+)#([+-]?\d{1,9})\.(start|end)', re.DOTALL)
_FORMS = {
    "--from": "FILE=FORMAT",
    "--offset": "FILE=TIME",
    "-O": "KEY=VALUE or FILE:KEY=VALUE",
    "--drift": "FILE=NUMBERppm",
    "--clock": "FILE=CLOCK or FILE=CLOCK@HOST",
    "--tz": "FILE=+HH:MM",
    "--date": "FILE=YYYY-MM-DD",
}


def place_it(file: str) -> str:
    """Return the hint for a file whose clock contradicts its events."""
    return f"place it by --anchor or --offset {quote(file)}=TIME; --on-ambiguous best leaves it here and marks it"


class ClockKind(enum.StrEnum):
    """The clocks that `--clock` can name."""

    REALTIME = "realtime"
    MONOTONIC = "monotonic"
    MONOTONIC_RAW = "monotonic_raw"
    BOOTTIME = "boottime"
    PERF = "perf"
    NONE = "none"


class ClockConstraint(Struct, frozen=True):
    """The statement of `--clock`: the kind of the clock, and its machine, "" if not given."""

    kind: ClockKind
    machine: str = ""


class TimePoint(Struct, frozen=True):
    """A time on the clock of an input.

    Attributes:
        ts: ns.
        step_ns: the value of one unit in the last digit, ns; 0 if the time is exact.
    """

    input: int
    ts: int
    step_ns: int = 0


class EventPoint(Struct, frozen=True):
    """The start or end of an event of an input.

    Attributes:
        number: the occurrence among the events of that name: 1 is the first, -1 the last.
    """

    input: int
    name: str
    number: int = 1
    at_end: bool = False


Point = TimePoint | EventPoint


class Anchor(Struct, frozen=True):
    """Two points that are one instant.

    Attributes:
        within_ns: the uncertainty, ns; None for the sum of their resolutions.
    """

    point: Point
    other: Point
    within_ns: int | None = None
    text: str = ""


class Constraints(Struct, frozen=True):
    """The statements of the user about the inputs, by index, and their clocks.

    Attributes:
        drifts: how slow the clock runs against trace time, in units of DRIFT_UNIT (12 ppm is 13194140).
        zones: the zones of local times, such as "+02:00" or "UTC".
        dates: the day of the first time, for times without a date.
        offsets, offsets_within: ns to add to each time of an input, and how wrong this can be.
        same_machine: whether all inputs were recorded on one machine, in one boot session, whatever hosts they name:
            then equal pids are the same process, and clocks since boot are one clock.
    """

    anchors: tuple[Anchor, ...] = ()
    drifts: Mapping[int, int] = {}
    clocks: Mapping[int, ClockConstraint] = {}
    zones: Mapping[int, str] = {}
    dates: Mapping[int, date] = {}
    offsets: Mapping[int, int] = {}
    offsets_within: Mapping[int, int] = {}
    same_machine: bool = False


NO_CONSTRAINTS = Constraints()


def parse_constraints(
    paths: Sequence[str],
    *,
    anchors: Sequence[str] = (),
    drifts: Sequence[str] = (),
    clocks: Sequence[str] = (),
    zones: Sequence[str] = (),
    dates: Sequence[str] = (),
) -> Constraints:
    """Return the constraints of a command line.

    Raises:
        UsageError: a value is malformed, names no input, or is given twice for one input; or a text is given instead
            of a list.
    """
    refuse_single_texts(paths=paths, anchors=anchors, drifts=drifts, clocks=clocks, zones=zones, dates=dates)
    return Constraints(
        tuple(parse_anchor(text, paths) for text in anchors),
        {index: parse_drift(value) for index, value in by_input(drifts, paths, "--drift").items()},
        {index: parse_clock(value) for index, value in by_input(clocks, paths, "--clock").items()},
        {index: parse_zone(value) for index, value in by_input(zones, paths, "--tz").items()},
        {index: parse_date(value) for index, value in by_input(dates, paths, "--date").items()},
    )


def by_input(texts: Sequence[str], paths: Sequence[str], option: str) -> dict[int, str]:
    """Return the values of a repeated option of the form FILE=VALUE, by the index of the input; cut at the last `=`.

    With one input, VALUE is enough.

    Raises:
        UsageError: a text is malformed, names no input, or an input is named twice.
    """
    values: dict[int, str] = {}
    if len(paths) == 1:
        texts = [text if "=" in text else f"{paths[0]}={text}" for text in texts]
    for name, value in pairs(texts, option).items():
        index = input_named(name, paths, option)
        if index in values:
            raise UsageError(f"{option} is given twice for {paths[index]!r}")
        values[index] = value
    return values


def pairs(texts: Sequence[str], option: str, *, first: bool = False) -> dict[str, str]:
    """Return the values of a repeated option of the form NAME=VALUE, cut at the last `=` or at the first one."""
    values: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=") if first else text.rpartition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r}: expected {_FORMS[option]}")
        if name in values:
            raise UsageError(f"{option} is given twice for {name!r}")
        values[name] = value
    return values


def input_named(name: str, paths: Sequence[str], option: str) -> int:
    """Return the index of the input with a name: its path as given, or its file name if that is unique."""
    name = "-" if name == "<stdin>" else name
    numbered = _NUMBERED.fullmatch(name)  # the name in messages of an input that is given more than once
    same = [index for index, path in enumerate(paths) if numbered and numbered[1] in (path, os.path.basename(path))]
    if numbered and int(numbered[2]) <= len(same):
        return same[int(numbered[2]) - 1]
    indices = [index for known, index in _names(paths) if known == name]
    if not indices:
        raise UsageError(f"{option}: {_no_input(name, paths)}", hint=f"the inputs: {listed(paths)}")
    return indices[0]


def _no_input(name: str, paths: Sequence[str]) -> str:
    """Return the reason why a name matches no input."""
    return f"{name!r} matches several inputs" if names_several(name, paths) else f"{name!r} is not one of the inputs"


def names_several(name: str, paths: Sequence[str]) -> bool:
    """Return whether several inputs have a path or a file name."""
    return max([*paths].count(name), [*map(os.path.basename, paths)].count(name)) > 1


def parse_drift(text: str) -> int:
    """Parse a drift such as "12ppm" or "-40ppb", and return it in units of DRIFT_UNIT."""
    match = _PPM.fullmatch(text)
    if match is None:
        raise UsageError(f"--drift: {text!r} is not a drift such as 12ppm, -3.5ppm or 40ppb")
    ppm = Decimal(match[1]) / (1 if match[2] == "ppm" else 1000)
    if abs(ppm) > _MOST_PPM:
        raise UsageError(f"--drift: {text!r} is more than {_MOST_PPM} ppm, and no clock drifts that much")
    return round(ppm / 10**6 / Decimal(DRIFT_UNIT))


def parse_clock(text: str) -> ClockConstraint:
    """Parse a clock such as "monotonic" or "monotonic@myhost"."""
    name, _, machine = text.partition("@")
    if name not in list(ClockKind):
        raise UsageError(f"--clock: {name!r} is not a known clock", hint=f"one of {listed(ClockKind)}")
    if text.endswith("@") or (machine and name == ClockKind.NONE):
        raise UsageError(f"--clock: {text!r}: expected CLOCK or CLOCK@HOST (none has no host)")
    if machine and not machine_name(machine):
        raise UsageError(f"--clock: {text!r}: {machine} does not name one machine", hint=f"leave it out: {name}")
    return ClockConstraint(ClockKind(name), machine)


def parse_zone(text: str) -> str:
    """Parse a time zone, and return it in the form of importer options: "+02:00" or "UTC"."""
    if text in ("UTC", "Z"):
        return "UTC"
    match = _ZONE.fullmatch(text)
    if match is None or int(match[2]) > 14:
        hint = "zone names are not supported: `date +%:z` prints the offset of the machine where it runs"
        hint = "no zone is more than 14 hours from UTC" if match else hint
        raise UsageError(f"--tz: {text!r} is not an offset such as +02:00 or UTC", hint=hint)
    return f"{match[1]}{match[2]}:{match[3]}"


def zone_ns(zone: str) -> int:
    """Return the offset from UTC (ns) of a zone that `parse_zone` returned."""
    if zone == "UTC":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[4:6])
    return (-minutes if zone[0] == "-" else minutes) * 60 * 10**9


def parse_date(text: str) -> date:
    """Parse a day such as 2018-10-26."""
    try:
        if _DATE.fullmatch(text):
            return date.fromisoformat(text)
    except ValueError:
        pass
    raise UsageError(f"--date: {text!r} is not a day such as 2018-10-26")


def parse_anchor(text: str, paths: Sequence[str]) -> Anchor:
    """Parse an anchor, such as a.json@1.5s=b.log@2s~5us or a.json:conv#1.start=b.log:conv#-1.end.

    Raises:
        UsageError: it is malformed, names no input, or is ambiguous.
    """
    anchors = [
        Anchor(point, last, within, text)
        for at in _places(text)
        for last, within in _last_points(text[at + 1 :], paths)
        for point in _points(text[:at], paths)
    ]
    if not anchors:
        reason, hint = _what_is_wrong(text, paths)
        raise UsageError(f"--anchor {text!r}: {reason}", hint=hint)
    anchor = anchors[0]
    if len(anchors) > 1:
        hint = 'put the names of events into double quotes: f:"a#1"'
        raise UsageError(f"--anchor {text!r}: it can be read in several ways", hint=hint)
    if any(isinstance(point, EventPoint) and not point.number for point in (anchor.point, anchor.other)):
        raise UsageError(f"--anchor {text!r}: #0 is not an occurrence", hint="the first is #1, the last is #-1")
    if anchor.point.input == anchor.other.input:
        raise UsageError(f"--anchor {text!r}: both sides are of {paths[anchor.point.input]}, expected two inputs")
    return anchor


def _places(text: str) -> list[int]:
    """Return the positions of the `=` in a text."""
    return [place for place, letter in enumerate(text) if letter == "="]


def _what_is_wrong(text: str, paths: Sequence[str]) -> tuple[str, str]:
    """Return the reason why a text is not an anchor, and a hint."""
    places, inputs = _places(text), f"the inputs: {listed(paths)}"
    forms = "FILE@TIME=FILE@TIME or FILE:NAME#K.start=FILE:NAME#K.end, optionally with ~TIME at the end"
    if not places or text == "=":
        return f"expected two points with `=` in between: {forms}", inputs
    second = [place for place in places if _file_of(text[place + 1 :], paths)]
    at = (second or places)[-1]
    other, tilde, within = text[at + 1 :].rpartition("~")
    if not tilde:
        other, within = within, ""
    wrong = _what_is_wrong_with(text[:at], paths) or _what_is_wrong_with(other, paths)
    if wrong is not None:
        return wrong
    if tilde and (_duration(within) or -1) < 0:
        reason = f"{within!r} after the `~` is not a time with a unit, 0 or more"
        return reason, "how far apart the points can be, such as ~5us"
    return f"expected {forms}", inputs


def _file_of(side: str, paths: Sequence[str]) -> str:
    """Return the name of the input at the start of a side; "" if there is none."""
    names = [name for name, _ in _names(paths) if side.startswith((f"{name}@", f"{name}:")) or side == name]
    return max(names, key=len, default="")


def _what_is_wrong_with(side: str, paths: Sequence[str]) -> tuple[str, str] | None:
    """Return the reason why a side of an anchor is not a point, and a hint; None if it is one."""
    if _points(side, paths):
        return None
    file = _file_of(side, paths)
    if not file:
        named = re.split(r"[@:]", side, maxsplit=1)[0]
        return _no_input(named, paths), f"the inputs: {listed(paths)}"
    kind, point = side[len(file) :][:1], side[len(file) + 1 :]
    if not kind:
        return f"no point follows {file!r}", f"expected {file}@TIME or {file}:NAME#1.start"
    if kind == "@":
        units = "units are ns, us, ms, s, min, h, such as 1.5ms"
        return f"{point!r} is not a time with a unit, or is beyond 146 years", units
    name, dot, end = point.rpartition(".")
    if not dot or end not in ("start", "end"):
        named = f"{file}:{point.rpartition('#')[0] or point}#1"
        return f"{point!r} ends in neither .start nor .end", f"expected {named}.start or {named}.end"
    named = f"{file}:{name.rpartition('#')[0] or name}#1"
    return f"{point!r} has no number", f"{named}.{end} is the first of that name, #-1 the last"


def _last_points(text: str, paths: Sequence[str]) -> Iterator[tuple[Point, int | None]]:
    """Yield the ways to read the text after the `=`, with the uncertainty if there is one."""
    yield from ((point, None) for point in _points(text, paths))
    side, tilde, uncertainty = text.rpartition("~")
    within = _duration(uncertainty) if tilde else None
    if within is not None and within >= 0:
        yield from ((point, within) for point in _points(side, paths))


def _points(text: str, paths: Sequence[str]) -> list[Point]:
    """Return the ways to read one side."""
    points = []
    for name, index in _names(paths):
        if text.startswith(name):
            point = _point(text[len(name) :], index)
            points += [point] if point is not None and point not in points else []
    return points


def _names(paths: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield all names of inputs, with their index."""
    for index, path in enumerate(paths):
        short = os.path.basename(path)
        names = {path, *(["<stdin>"] if path == "-" else [])}
        if [os.path.basename(other) for other in paths].count(short) == 1 and short not in paths:
            names.add(short)
        if list(paths).count(path) == 1:
            yield from ((name, index) for name in sorted(names))


def _point(text: str, index: int) -> Point | None:
    """Parse the part of a side behind the name of its file: "@1.5s" or ":NAME#3.start"."""
    event = _EVENT.fullmatch(text)
    if event is not None:
        name = re.sub(r"\\(.)", r"\1", event[1][1:-1], flags=re.DOTALL) if event[1].startswith('"') else event[1]
        return EventPoint(index, name, int(event[2]), event[3] == "end")
    ns = _duration(text[1:]) if text.startswith("@") else None
    return None if ns is None else TimePoint(index, ns, step_of(text[1:], ns))


def _duration(text: str) -> int | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None


# -- Map names of two traces to common kinds of work -----------------------------------------------------------------

#: Classes of work by the names of oneDNN, ONNX, PyTorch, MXNet, TVM, TensorFlow and OpenVINO. The order matters:
#: "conv_relu" is a convolution with something fused to it.
CLASSES: dict[str, tuple[str, ...]] = {
    name: tuple(patterns.split())
    for name, patterns in {
        "reorder": "reorder reordernd *to_mkldnn *to_dense layout_transform* *_layout_transform*",
        "deconvolution": "deconvolution* convtranspose* *conv_transpose* *conv2d_transpose*",
        "convolution": "*convolution* conv conv[0-9]d* *conv[0-9]d* nchwcconv fusedconv *linearconv",
        "matmul": (
            "*matmul* gemm* *gemm inner_product* fullyconnected* *addmm* aten::mm aten::bmm *mkldnn_linear "
            "aten::linear dot batch_dot *nn_dense* *nn_batch_matmul*"
        ),
        "pooling": "*pool*",
        "batch_normalization": "*batchnorm* *batch_norm*",
        "layer_normalization": "*layernorm* *layer_norm* layernormalization",
        "softmax": "*softmax*",
        "lrn": "lrn *local_response_norm*",
        "rnn": "rnn *lstm* *gru* vanilla_rnn *mkldnn_rnn_layer*",
        "concat": "concat* aten::cat *concatenate*",
        "sum": "sum aten::sum",
        "eltwise": "eltwise* *relu* *sigmoid* *tanh* *gelu* activation leakyrelu elu clip exp sqrt",
        "binary": "binary add mul sub div aten::add* aten::mul* elemwise_* broadcast_* *fused_add*",
        "reduction": "reduction* reduce* mean aten::mean",
        "resampling": "resampling* resize* upsampl* *interpolate* aten::upsample*",
        "shuffle": "shuffle channel_shuffle*",
    }.items()
}


class NameMap:
    """Maps names to classes.

    Args:
        extra: classes of the user with their patterns; they come before the others.
    """

    def __init__(self, extra: Mapping[str, Sequence[str]] | None = None) -> None:
        #: The classes of the user, with the patterns that they gave.
        self.extra = dict(extra or {})
        names = {**self.extra, **CLASSES}
        #: The patterns of each class, those of the user first.
        self._patterns = {name: (*self.extra.get(name, ()), *CLASSES.get(name, ())) for name in names}

    @cached_property
    def _class(self) -> re.Pattern[str]:
        """All patterns, with a group for each class; compiled on first use, as most merges need none."""
        groups = ("|".join(translate(pattern.lower()) for pattern in patterns) for patterns in self._patterns.values())
        return re.compile("|".join(f"({group})" for group in groups))

    def class_of(self, name: str) -> str | None:
        """Return the class of a name; None if no pattern takes it."""
        fitting = self._class.fullmatch(name.lower())
        if fitting is None:
            return name if name in self._patterns else None
        return list(self._patterns)[(fitting.lastindex or 1) - 1]

    def kind(self, name: str) -> str:
        """Return the class of a name, or the name itself."""
        return self.class_of(name) or name

    def check_extra(self, names: Sequence[AbstractSet[str]]) -> None:
        """Check that the classes of the user have an effect.

        Args:
            names: for each input all names of its events.

        Raises:
            UsageError: a class matches no name; or it is not a known class and matches no names of two inputs.
        """
        for kind, patterns in self.extra.items():
            option = f"--map {kind}={','.join(patterns)}"
            takes = [re.compile(translate(pattern.lower())).fullmatch for pattern in patterns]
            fitting = [[any(take(name.lower()) for name in of_input) for of_input in names] for take in takes]
            if not any(map(any, fitting)):
                raise UsageError(
                    f"{option}: no event has such a name",
                    hint="case does not matter, and * matches anything: convolution=*conv* matches all names with conv",
                )
            named = [kind in of_input for of_input in names]
            inputs = [any(columns) for columns in zip(*fitting, named, strict=True)]
            joins = sum(inputs) > 1 and (len(patterns) > 1 or any(named))
            if kind not in CLASSES and not joins:
                hint = (
                    f"known classes are {listed(CLASSES)}; for other work, list the names in both files: "
                    f"{kind}=NAME_IN_ONE,NAME_IN_THE_OTHER"
                )
                text = f"{kind} is not a known class, and its patterns relate no names of two files"
                raise UsageError(f"{option}: {text}", hint=hint)


def parse_map(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of `--map`, such as "convolution=Conv*,*FusedConv*".

    Raises:
        UsageError: a value is malformed.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, patterns = text.partition("=")
        parts = tuple(part.strip() for part in patterns.split(",") if part.strip())
        if not equals or not name.strip() or not parts:
            raise UsageError(f"--map {text!r}: expected CLASS=PATTERN,PATTERN, such as convolution=Conv*,*FusedConv*")
        found[name.strip()] = (*found.get(name.strip(), ()), *parts)
    return found
