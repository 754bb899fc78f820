"""The tracks of what rocprof has recorded."""

from __future__ import annotations

import msgspec

from traceconv.model.builder import Builder
from traceconv.model.diagnostics import lost
from traceconv.model.trace import SliceId, TrackId

BAD_ROW = lost("rocprof.bad_row", "a row or record is cut, or has a time that is not a number: it was left out")


class Tracks(msgspec.Struct):
    """The tracks of processes, threads, devices and queues, and the flows from calls to what they started."""

    out: Builder
    known: dict[tuple[str, ...], TrackId] = msgspec.field(default_factory=dict)
    calls: dict[int, SliceId] = msgspec.field(default_factory=dict)
    started: list[tuple[int, SliceId, int]] = msgspec.field(default_factory=list)

    def thread(self, pid: int | None, tid: int | None) -> TrackId:
        """Return a thread; what is not known is None."""
        key = ("thread", str(pid), str(tid))
        if key not in self.known:
            self.known[key] = self.out.tracks.thread(self.process(pid), tid)
        return self.known[key]

    def process(self, pid: int | None) -> TrackId:
        """Return a process."""
        key = ("process", str(pid))
        if key not in self.known:
            self.known[key] = self.out.tracks.process("" if pid is not None else "ROCm program", pid=pid)
        return self.known[key]

    def queue(self, agent: str, queue: str) -> TrackId:
        """Return a queue of a device."""
        key = ("queue", agent, queue)
        if key not in self.known:
            device = self.known.get(("agent", agent))
            if device is None:
                device = self.known["agent", agent] = self.out.tracks.add(agent)
            self.known[key] = self.out.tracks.add(queue, device)
        return self.known[key]

    def flows(self) -> None:
        """Draw what calls started."""
        for correlation, slice_id, at in self.started:
            if correlation in self.calls:
                self.out.flow(self.calls[correlation], slice_id, "launch", at=at)
