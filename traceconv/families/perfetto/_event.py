"""Decode a track event of a Perfetto trace.

Source: protos/perfetto/trace/track_event/track_event.proto in github.com/google/perfetto; the numbers below are those
of the file.
"""

from __future__ import annotations

from typing import Any

from traceconv.families.common.wire_reader import (
    Message,
    Value,
    as_bytes,
    as_double,
    as_text,
    fields,
    signed,
    unpacked,
    unsigned,
)
from traceconv.families.perfetto._sequence import Sequence
from traceconv.model.args import join_args

_STEP_US, _CATEGORY_IID, _ANNOTATION, _LEGACY, _TYPE, _NAME_IID, _TRACK, _EXTRA, _TIME_US = (
    1,
    3,
    4,
    6,
    9,
    10,
    11,
    12,
    16,
)
_LOG, _CATEGORY, _NAME, _VALUE, _EXTRA_TRACKS, _LOCATION, _LOCATION_IID, _OLD_FLOW = 21, 22, 23, 30, 31, 33, 34, 36
_OLD_LAST_FLOW, _DOUBLE_VALUE, _DOUBLE_TRACKS, _DOUBLE_EXTRA, _FLOW, _LAST_FLOW = 42, 44, 45, 46, 47, 48
_CORRELATION, _CORRELATION_TEXT, _CORRELATION_IID, _STACK, _STACK_IID, _WEIGHT = 52, 53, 54, 55, 56, 57
_CONTEXT = (_LOCATION, _LOCATION_IID, _CORRELATION, _CORRELATION_TEXT, _CORRELATION_IID, _STACK, _STACK_IID, _WEIGHT)
#: Times of the thread's own clock, in events of old traces.
_THREAD_TIME = (2, 8, 17, 20)
_FLOWS = {_FLOW: False, _LAST_FLOW: True, _OLD_FLOW: False, _OLD_LAST_FLOW: True}
#: The fields of events whose meaning follows from their bytes alone.
_PLAIN = frozenset((_CATEGORY_IID, _TYPE, _NAME_IID, _TRACK))


class Event:
    """The fields of one TrackEvent; those that it does not have are empty.

    Attributes:
        type: 1 begin, 2 end, 3 instant, 4 counter, 5 state.
        track: the uuid of its track, None for the default of the sequence.
        value: the value of a counter.
        flows: ids, with whether the flow ends here.
        is_plain: whether it has only type, name, categories and track.
        unknown: the numbers of fields that need a schema.
    """

    type = 0
    track: int | None = None
    name = ""
    name_iid = 0
    value: float | None = None
    legacy: bytes | None = None
    log: Message | None = None
    step_us: int | None = None
    time_us: int | None = None
    is_plain = True

    def __init__(self, data: bytes) -> None:
        self.category_iids: list[int] = []
        self.categories: list[str] = []
        self.flows: list[tuple[int, bool]] = []
        self.extra: list[int] = []
        self.extra_tracks: list[int] = []
        self.double_extra: list[float] = []
        self.double_tracks: list[int] = []
        self.unknown: list[int] = []
        self._annotations: list[bytes] = []
        self._context: dict[int, Value] = {}
        for number, value in fields(data):
            if number == _ANNOTATION:
                self._annotations.append(as_bytes(value))
            elif number == _TYPE:
                self.type = unsigned(value)
            elif number == _TRACK:
                self.track = unsigned(value)
            elif number == _NAME_IID:
                self.name_iid = unsigned(value)
            elif number == _CATEGORY_IID:
                self.category_iids += _ids(value)
            elif number == _VALUE:
                self.value = signed(value)
            elif number == _DOUBLE_VALUE:
                self.value = as_double(value)
            elif number in _FLOWS:
                self.flows += [(id, _FLOWS[number]) for id in _ids(value)]
            else:
                self._rare(number, value)
            if number not in _PLAIN:
                self.is_plain = False

    def _rare(self, number: int, value: Value) -> None:
        if number == _NAME:
            self.name = as_text(value)
        elif number == _CATEGORY:
            self.categories.append(as_text(value))
        elif number == _EXTRA:
            self.extra += [signed(one) for one in _ids(value)]
        elif number == _EXTRA_TRACKS:
            self.extra_tracks += _ids(value)
        elif number == _DOUBLE_EXTRA:
            self.double_extra += _doubles(value)
        elif number == _DOUBLE_TRACKS:
            self.double_tracks += _ids(value)
        elif number == _LEGACY:
            self.legacy = as_bytes(value)
        elif number == _LOG:
            self.log = Message(value)
        elif number == _STEP_US:
            self.step_us = signed(value)
        elif number == _TIME_US:
            self.time_us = signed(value)
        elif number in _CONTEXT:
            self._context[number] = value
        elif number not in _THREAD_TIME:
            self.unknown.append(number)

    def args(self, sequence: Sequence) -> bytes:
        """Return the args as a JSON object, b"" without any."""
        annotation = sequence.annotation
        args = b"{" + b",".join([annotation(one) for one in self._annotations]) + b"}" if self._annotations else b""
        return join_args(args, self._context_args(sequence)) if self._context else args

    def location(self, sequence: Sequence) -> Message | None:
        """Return the source location of the event."""
        if _LOCATION in self._context:
            return Message(self._context[_LOCATION])
        iid = self._context.get(_LOCATION_IID)
        return sequence.location(unsigned(iid)) if iid is not None else None

    def _context_args(self, sequence: Sequence) -> dict[str, Any]:
        """Return source location, correlation id and call stack as args."""
        context = self._context
        args: dict[str, Any] = {}
        location = self.location(sequence) if self.log is None else None
        if location is not None:
            args["source_location"] = place_of(location)
        if _CORRELATION in context:
            args["correlation_id"] = unsigned(context[_CORRELATION])
        elif _CORRELATION_TEXT in context:
            args["correlation_id"] = as_text(context[_CORRELATION_TEXT])
        elif _CORRELATION_IID in context:
            args["correlation_id"] = sequence.correlation(unsigned(context[_CORRELATION_IID]))
        if _STACK in context:  # InlineCallstack: frames 1* {function_name 1}
            args["callstack"] = [Message(frame).text(1) for frame in Message(context[_STACK]).all(1)]
        elif _STACK_IID in context:
            args["callstack"] = sequence.stack_names(unsigned(context[_STACK_IID]))
        if _WEIGHT in context:
            args["callstack_weight"] = as_double(context[_WEIGHT])
        return args


def place_of(location: Message) -> str:
    """Read SourceLocation: file_name 2, function_name 3, line_number 4; return "file.cpp:77", or the known part."""
    file = location.text(2)
    return (f"{file}:{location.unsigned(4)}" if 4 in location else file) or location.text(3)


def _ids(value: Value) -> list[int]:
    """Return a repeated integer field, packed or not."""
    return [value] if isinstance(value, int) else unpacked(value)


def _doubles(value: Value) -> list[float]:
    """Return a repeated double field, packed or not."""
    if isinstance(value, int):
        return [as_double(value)]
    words = [int.from_bytes(value[at : at + 8], "little") for at in range(0, len(value) - 7, 8)]
    return [as_double(word) for word in words]
