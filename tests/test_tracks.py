"""Tracks in columns are what was put in, whatever they have."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from traceconv.model.builder import Builder
from traceconv.model.clocks import REALTIME
from traceconv.model.source_info import SourceInfo
from traceconv.model.track_table import BEYOND, NO_NUMBER, NO_TRACK, ClockId, Track, TrackId, TrackKind, Tracks

NUMBERS = st.none() | st.integers(-(2**70), 2**70) | st.sampled_from([0, -1, 2**63, -(2**63), 2**63 - 1])
TRACKS = st.builds(
    Track,
    st.sampled_from(TrackKind),
    st.text(max_size=3),
    st.integers(-1, 9).map(TrackId),
    pid=NUMBERS,
    tid=NUMBERS,
    unit=st.sampled_from(["", "bytes"]),
    description=st.sampled_from(["", "what it is"]),
    rank=st.none() | st.integers(-5, 5),
    labels=st.sampled_from([(), ("one",)]),
    clock=st.integers(0, 3).map(ClockId),
    source=st.integers(0, 3),
    lane_of=st.integers(-1, 3).map(TrackId),
    shares_lanes=st.booleans(),
    unknown=st.booleans(),
    shown=st.sampled_from(["", "one"]),
    doubts=st.sampled_from([(), ("not aligned",)]),
)


@given(st.lists(TRACKS, max_size=9))
def test_tracks_are_what_was_put_in(given_tracks: list[Track]) -> None:
    tracks = Tracks(given_tracks)
    assert tracks == given_tracks
    assert list(tracks) == given_tracks
    assert [tracks[number] for number in range(len(tracks))] == given_tracks
    assert [tracks[-1 - number] for number in range(len(tracks))] == given_tracks[::-1]
    assert tracks[1:7:2] == given_tracks[1:7:2]


def test_an_own_track_can_be_changed() -> None:
    tracks = Tracks([Track(TrackKind.THREAD, "", tid=1), Track(TrackKind.THREAD, "", tid=2)])
    tracks.changeable(1).name = "worker"
    tracks.changeable(1).rank = 3
    assert [(track.name, track.rank) for track in tracks] == [("", None), ("worker", 3)]
    assert tracks != [Track(TrackKind.THREAD, "", tid=1)]


def number_of(track: Track) -> int:
    number = track.pid if track.kind is TrackKind.PROCESS else track.tid
    return NO_NUMBER if number is None else number if BEYOND < number < 2**63 else BEYOND


@given(st.lists(TRACKS, max_size=9))
def test_columns_are_those_of_the_tracks(given_tracks: list[Track]) -> None:
    tracks = Tracks(given_tracks)
    for number in range(0, len(tracks), 2):
        tracks.changeable(number).name += "!"
        tracks.changeable(number).source = 7
    changed = list(tracks)
    for one in (tracks, Tracks(tracks)):
        for attribute in ("kind", "shares_lanes", "parent", "clock", "source", "lane_of"):
            assert one.column(attribute).tolist() == [getattr(track, attribute) for track in changed]  # type: ignore[arg-type]
        assert one.texts("name") == [track.name for track in changed]
        assert one.numbers().tolist() == [number_of(track) for track in changed]
        one.settle()
        assert list(one) == changed
        assert dict(one.special()).items() <= dict(enumerate(changed)).items()


@given(st.lists(TRACKS, max_size=9))
def test_replaced_and_joined_tracks_have_all_else(given_tracks: list[Track]) -> None:
    tracks, count = Tracks(given_tracks), len(given_tracks)
    names, clocks = [f"{number}" for number in range(count)], np.arange(count)
    assert list(tracks.replaced(name=names, clock=clocks)) == [
        replace(track, name=name, clock=ClockId(at))
        for at, (track, name) in enumerate(zip(given_tracks, names, strict=True))
    ]
    assert list(tracks) == given_tracks

    def moved(number: int) -> TrackId:
        return NO_TRACK if number == NO_TRACK else TrackId(number + count)

    tracks.extend(Tracks(given_tracks))
    behind = [replace(track, parent=moved(track.parent), lane_of=moved(track.lane_of)) for track in given_tracks]
    assert list(tracks) == given_tracks + behind


@given(st.lists(TRACKS, max_size=9), st.randoms())
def test_taken_tracks_refer_to_the_same_tracks(given_tracks: list[Track], random: Random) -> None:
    count = len(given_tracks)
    whole = [
        replace(track, parent=TrackId(min(track.parent, count - 1)), lane_of=TrackId(min(track.lane_of, count - 1)))
        for track in given_tracks
    ]
    rows = list(range(count))
    random.shuffle(rows)
    place = {row: TrackId(at) for at, row in enumerate(rows)} | {-1: NO_TRACK}
    assert list(Tracks(whole).taken(np.array(rows, np.int64))) == [
        replace(whole[row], parent=place[whole[row].parent], lane_of=place[whole[row].lane_of]) for row in rows
    ]


def test_a_new_name_leaves_all_else() -> None:
    plain, ranked = Track(TrackKind.THREAD, "", tid=1), Track(TrackKind.THREAD, "", tid=2, rank=3)
    tracks = Tracks([plain, ranked])
    for number in range(2):
        tracks.rename(number, "worker")
    tracks.settle()
    assert list(tracks) == [replace(plain, name="worker"), replace(ranked, name="worker")]


@pytest.mark.parametrize("number", [None, 0, 7, -(2**63), -(2**63) + 1, -(2**63) + 2, 2**63 - 1, 2**63, 2**64])
def test_declared_tracks_keep_their_numbers(number: int | None) -> None:
    out = Builder(SourceInfo("a", "test"), REALTIME)
    process = out.tracks.process("p", pid=number)
    out.tracks.thread(process, number, "t")
    out.tracks.add("q", process, description="d", shares_lanes=True)
    out.tracks.counter("c", process)
    assert list(out.tables.tracks) == [
        Track(TrackKind.PROCESS, "p", pid=number),
        Track(TrackKind.THREAD, "t", process, tid=number),
        Track(TrackKind.TRACK, "q", process, description="d", shares_lanes=True),
        Track(TrackKind.COUNTER, "c", process),
    ]
    if number is None:
        assert not list(out.tables.tracks.special())  # an object takes as much memory as all else of a track
