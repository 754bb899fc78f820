"""The inputs of a call: expand folders and archives, open the recordings, assign options, read all of them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from traceconv.align.constraints import NO_CONSTRAINTS, Constraints
from traceconv.align.statements import importer_options
from traceconv.errors import SeveralErrors, TraceconvError, UnrecognizedFormat, UnrecognizedInput, UsageError
from traceconv.families.importer import Importer
from traceconv.families.registry import OptionValue, option_names, option_texts
from traceconv.io.folders import AnyPath
from traceconv.io.limits import DEFAULT_LIMITS, Limits
from traceconv.io.source import Source, digests, fingerprint
from traceconv.io.spill import Memory
from traceconv.model.trace import Trace
from traceconv.reading import Expanded, Recognised, expand, read_recognised, recognise

if TYPE_CHECKING:
    from traceconv.align import Policy


class Input(Struct, frozen=True):
    """One input of a merge.

    Attributes:
        path: a file, a folder or archive of recordings, or "-" for standard input.
        format: the name of the importer; by default it is recognised.
        options: options of the importer: texts as on the command line, or the numbers and booleans that they stand for.
        offset_ns: ns to add to each of its times, on top of the offsets that the file states.
        offset_within_ns: how wrong this offset can be, ns.

    Raises:
        UsageError: the path is none, or an offset is not an integer.
    """

    path: AnyPath
    format: str | None = None
    options: Mapping[str, OptionValue] = {}
    offset_ns: int | None = None
    offset_within_ns: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise UsageError(f"{self.path!r} is not a path")
        for name in ("offset_ns", "offset_within_ns"):
            value = getattr(self, name)
            if not isinstance(value, Integral) and (name, value) != ("offset_ns", None):
                raise UsageError(f"{name}={value!r} is not an integer", hint="times are whole ns")


class MergeArguments(TypedDict, total=False):
    """The arguments of `traceconv.merge` that other functions take, too: see there."""

    options: Mapping[str, OptionValue] | None
    constraints: Constraints
    policy: Policy | None
    memory: int | None
    limits: Limits


class Settings(Struct, frozen=True):
    """What a call says about its inputs besides their names: the arguments of `traceconv.merge` of the same names."""

    options: Mapping[str, OptionValue] | None = None
    constraints: Constraints = NO_CONSTRAINTS
    policy: Policy | None = None
    memory: int | None = None
    limits: Limits = DEFAULT_LIMITS

    def refuse(self, reason: str, hint: str) -> None:
        """Raise UsageError if anything is set, since it would change nothing."""
        given = [name for name in self.__struct_fields__ if getattr(self, name) not in (getattr(Settings(), name), {})]
        if given:
            raise UsageError(f"{reason}: {', '.join(given)} would change nothing", hint=hint)


class Opened:
    """The recordings behind the inputs of a call, each opened once.

    Args:
        expanded: the recordings, and the files that were left out.
        inputs: the `Input` of each recording, with its format, options and offset.
        settings: what the call says about all of them.

    Attributes:
        sources: the recordings.
        constraints: those of the settings, with the offsets of the inputs.

    Raises:
        InputError: one cannot be opened.
        UsageError: an input has an offset of its own and one in the constraints.
    """

    def __init__(self, expanded: Expanded, inputs: Sequence[Input], settings: Settings) -> None:
        self.expanded, self.inputs, self.settings = expanded, inputs, settings
        self.constraints = _with_offsets(settings.constraints, inputs)
        self.sources = [
            recording.recognition.source if recording.recognition else Source(recording.path, limits=settings.limits)
            for recording in expanded.recordings
        ]

    @property
    def paths(self) -> list[AnyPath]:
        """The files."""
        return self.expanded.paths


def _with_offsets(constraints: Constraints, inputs: Sequence[Input]) -> Constraints:
    """Return the constraints, also on the offsets of the inputs. Raises UsageError if one is there already."""
    with_offset = {index: item for index, item in enumerate(inputs) if item.offset_ns is not None}
    for index in with_offset.keys() & constraints.offsets.keys():
        path = with_offset[index].path
        raise UsageError(f"{path}: the input has an offset, and the constraints have one", hint="give one")
    offsets = {index: item.offset_ns for index, item in with_offset.items() if item.offset_ns is not None}
    within = {index: item.offset_within_ns for index, item in with_offset.items()}
    return replace(
        constraints,
        offsets={**constraints.offsets, **offsets},
        offsets_within={**constraints.offsets_within, **within},
    )


#: The inputs of a call: paths, `Input`s, or recordings that an earlier call has opened.
Inputs = Sequence[AnyPath | Input] | Opened


def opened(inputs: Inputs, settings: Settings, output: AnyPath = "") -> Opened:
    """Open the recordings behind inputs. `output`: the file to be written, which no folder contributes.

    Raises:
        UsageError: there are constraints, which number the inputs, and an input is a folder or an archive. Or the
            inputs are none, a single path instead of a list, or not paths, or were opened with other settings.
        InputError: an input cannot be opened, or holds no recording.
    """
    if isinstance(inputs, Opened):
        settings.refuse("the recordings were opened with their settings", "give them where they are opened")
        return inputs
    if isinstance(inputs, str | os.PathLike | Input):
        raise UsageError("the inputs are a single path: a list of paths is expected", hint="[path]")
    if not isinstance(inputs, Iterable):
        raise UsageError(f"the inputs are of type {type(inputs).__name__}: a list of paths is expected")
    items = [item if isinstance(item, Input) else Input(item) for item in inputs]
    if not items:
        raise UsageError("there are no inputs: a list of paths is expected", hint="[path]")
    expansion = expand([item.path for item in items], output=output, limits=settings.limits)
    numbers = [item.input for item in expansion.recordings]
    if numbers != list(range(len(items))) and replace(settings.constraints, same_machine=False) != NO_CONSTRAINTS:
        raise UsageError(
            "the constraints are about inputs by number, and one is a folder or an archive",
            hint="traceconv.expand(paths).paths has the recordings in it",
        )
    return Opened(expansion, [replace(items[item.input], path=item.path) for item in expansion.recordings], settings)


def read_all(opened: Opened, memory: Memory) -> list[Trace]:
    """Read all inputs. A failure does not stop the others from being tried: one run names all errors."""
    inputs, sources, options = opened.inputs, opened.sources, option_texts(opened.settings.options)
    names = _names(sources)
    recognised: list[Recognised] = []
    errors: list[TraceconvError] = []
    for item, source, recording in zip(inputs, sources, opened.expanded.recordings, strict=True):
        try:
            known = None if item.format else recording.recognition
            recognised.append(known or recognise(source, item.format))
        except UnrecognizedFormat as error:
            one_of_several = UnrecognizedInput(error.reason, hint=error.hint, at=source.display)
            is_optional = len(sources) > 1 and source.path is not None  # a stream is never left out
            errors.append(one_of_several if is_optional else error)
        except TraceconvError as error:
            errors.append(error)
    for source in sources:
        memory.add_input(partial(getattr, source, "size"))
    traces: list[Trace] = []
    if not errors:
        shared = _assign_options(options, names, [recording_format.cls for recording_format in recognised])
        for index, (item, recording_format, name) in enumerate(zip(inputs, recognised, names, strict=True)):
            try:
                stated = importer_options(opened.constraints, index, recording_format.cls)
                wanted = _with_constraints(shared[index] | option_texts(item.options), stated, name)
                traces.append(read_recognised(recording_format, wanted, name, memory))
            except TraceconvError as error:
                errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else SeveralErrors(errors)
    for trace, source, digest in zip(traces, sources, digests(sources), strict=True):
        trace.sources[0].digest, trace.sources[0].fingerprint = digest, fingerprint(source)
    if traces:
        traces[0].left_out = opened.expanded.left_out
    return traces


def _with_constraints(options: dict[str, str], stated: dict[str, str], name: str) -> dict[str, str]:
    """Return the options of an importer, joined with the `stated` ones that follow from --tz and --date."""
    for key in options.keys() & stated.keys():
        if options[key] != stated[key]:
            raise UsageError(f"{name}: -O {key}={options[key]} and {stated[key]} (--tz, --date) contradict each other")
    return stated | options


def _names(sources: Sequence[Source]) -> list[str]:
    """Return distinct names for the inputs: the file name, else the path, else the path with a number."""
    names: dict[str, None] = {}
    base = Counter(source.name for source in sources)
    numbers = Counter[str]()
    for source in sources:
        name = wanted = source.name if base[source.name] == 1 else source.display
        while name in names:
            numbers[wanted] += 1
            name = f"{wanted} ({numbers[wanted] + 1})"
        names[name] = None
    return list(names)


def _assign_options(
    options: Mapping[str, str], names: Sequence[str], classes: Sequence[type[Importer]]
) -> list[dict[str, str]]:
    """Return, for each input, its share of the options that name no file; each option must fit exactly one input."""
    if len(classes) == 1:
        return [dict(options)]
    shared: list[dict[str, str]] = [{} for _ in classes]
    for key, value in options.items():
        fitting_inputs = [index for index, cls in enumerate(classes) if key in option_names(cls)]
        if not fitting_inputs:
            known = ", ".join(sorted({cls.name for cls in classes}))
            raise UsageError(f"no input has an option {key!r}", hint=f"see `traceconv formats NAME` for {known}")
        if len(fitting_inputs) > 1:
            fitting = " and ".join(names[index] for index in fitting_inputs)
            raise UsageError(
                f"option {key!r} fits {fitting}", hint=f"name the file: -O {names[fitting_inputs[0]]}:{key}={value}"
            )
        shared[fitting_inputs[0]][key] = value
    return shared
