"""A number for each track of a Perfetto trace."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import defaultdict
from collections.abc import Sequence

from traceconv.families.perfetto import _wire as wire
from traceconv.model.trace import NO_TRACK, Trace, Track

ROOT_UUID = 0
_LONG_PATH = 1000


def track_uuids(trace: Trace) -> Sequence[int]:
    """A number for each track that depends on what it is, so that files put together do not mix their tracks up."""
    parents = {track.parent for track in trace.tracks}
    paths: dict[int, list[str]] = {}
    repeated: dict[int, int] = defaultdict(int)
    uuids = array("q")
    used = {ROOT_UUID}
    for index, track in enumerate(trace.tracks):
        own = [track.kind.name, track.name, str(track.pid), str(track.tid)]
        path = (paths[track.parent] if track.parent != NO_TRACK else [_origin(trace, track)]) + own
        if index in parents:  # what lies deep needs no longer path than what lies at the top
            paths[index] = path if sum(map(len, path)) <= _LONG_PATH else [str(hash_of(path))]
        uuid = hash_of([*path, "0"])
        if uuid in used:  # another one of that path
            repeated[uuid] += 1
            uuid = hash_of([*path, str(repeated[uuid])])
        while uuid in used:
            uuid += 1
        used.add(uuid)
        uuids.append(uuid)
    return uuids


def _origin(trace: Trace, track: Track) -> str:
    return trace.sources[track.source].name if track.source < len(trace.sources) else ""


def hash_of(parts: list[str]) -> int:
    """62 bits, so that it stays positive everywhere and takes nine bytes."""
    data = wire.utf8(json.dumps(parts))
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") >> 2
