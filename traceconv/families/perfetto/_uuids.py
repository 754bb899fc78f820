"""A number for each track of a Perfetto trace."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from traceconv.families.perfetto import _wire as wire
from traceconv.model.trace import NO_TRACK, Trace, Track

ROOT_UUID = 0
_LONG_PATH = 1000


def track_uuids(trace: Trace) -> Sequence[int]:
    """A number for each track that depends on what it is, so that files put together do not mix their tracks up."""
    paths = _Paths(trace)
    firsts = array("q", (hash_of([*paths.of(index), "0"]) for index in range(len(trace.tracks))))
    numbers = np.sort(np.frombuffer(firsts, np.int64))
    if not (len(numbers) and (numbers[0] == ROOT_UUID or np.any(numbers[1:] == numbers[:-1]))):
        return firsts
    del numbers
    repeated: dict[int, int] = defaultdict(int)
    uuids = array("q")
    used = {ROOT_UUID}
    for index, uuid in enumerate(firsts):
        if uuid in used:  # another one of that path
            repeated[uuid] += 1
            uuid = hash_of([*paths.of(index), str(repeated[uuid])])
        while uuid in used:
            uuid += 1
        used.add(uuid)
        uuids.append(uuid)
    return uuids


class _Paths:
    """What tells the tracks of a trace apart: what each is, and what it is inside of."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._has_children = np.zeros(len(trace.tracks), bool)
        for track in trace.tracks:
            if track.parent != NO_TRACK:
                self._has_children[track.parent] = True
        self._kept: dict[int, list[str]] = {}  # of tracks inside of others, with children

    def of(self, index: int) -> list[str]:
        """The path of a track, once those of the tracks around it were asked for."""
        track = self._trace.tracks[index]
        above = [_origin(self._trace, track)] if track.parent == NO_TRACK else self._above(track.parent)
        path = [*above, track.kind.name, track.name, str(track.pid), str(track.tid)]
        if track.parent != NO_TRACK and self._has_children[index]:
            self._kept[index] = _short(path)
        return path

    def _above(self, index: int) -> list[str]:
        """The path that those of children begin with."""
        return self._kept[index] if index in self._kept else _short(self.of(index))


def _short(path: list[str]) -> list[str]:
    """What lies deep needs no longer path than what lies at the top."""
    return path if sum(map(len, path)) <= _LONG_PATH else [str(hash_of(path))]


def _origin(trace: Trace, track: Track) -> str:
    return trace.sources[track.source].name if track.source < len(trace.sources) else ""


def hash_of(parts: list[str]) -> int:
    """62 bits, so that it stays positive everywhere and takes nine bytes."""
    data = wire.utf8(json.dumps(parts))
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 2
