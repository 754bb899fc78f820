"""Tracks in columns are what was put in, whatever they have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from traceconv.model.trace import ClockId, Track, TrackId, TrackKind
from traceconv.model.tracks import Tracks

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
    tracks.own(1).name = "worker"
    tracks.own(1).rank = 3
    assert [(track.name, track.rank) for track in tracks] == [("", None), ("worker", 3)]
    assert tracks != [Track(TrackKind.THREAD, "", tid=1)]
