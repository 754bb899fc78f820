"""Opens a trace in the real Perfetto UI, reports what the UI made of it and saves a picture.

    python -m tests.ui.shot out.pftrace out.png --tall
    python -m tests.ui.shot out.pftrace out.png --span 1_000_000 4_000_000 --select conv2d --pin "GPU load"

As a command it prints the report as JSON; the exit code is 0 when the trace loaded without a dialog, an import
error or an exception in the page. It needs Chromium ($CHROMIUM, else `chromium` on the PATH) besides what the
oracle needs, and no network. Chromium draws in software: a picture of a million slices takes about 20 s.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests import HANG_S, oracle

HERE = Path(__file__).resolve().parent
TIMEOUT_S = HANG_S // 2
#: The most browsers that tests use at a time.
BROWSERS = 2


@contextlib.contextmanager
def browser() -> Iterator[str]:
    """Yield the Chromium to use, as soon as fewer than BROWSERS are in use on this machine.

    Twenty of them on two cores all run into their time limits.

    Raises:
        oracle.OracleMissing: there is none.
    """
    found = chromium_executable()
    places = [Path(tempfile.gettempdir(), f"traceconv-browser-{number}.lock") for number in range(BROWSERS)]
    while True:
        for place in places:
            with place.open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                yield found
                return
        time.sleep(0.1)


def chromium_executable() -> str:
    """The Chromium to use: $CHROMIUM, else `chromium` or a sibling of it on the PATH.

    Raises:
        oracle.OracleMissing: there is none.
    """
    for name in (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"):
        if name and (found := shutil.which(name)):
            return found
    raise oracle.OracleMissing("no Chromium: apt-get install chromium, or set CHROMIUM")


@dataclasses.dataclass(frozen=True)
class Track:
    """A line of the UI's tree of tracks."""

    name: str
    children: tuple[Track, ...]

    @classmethod
    def from_json(cls, node: dict[str, Any]) -> Track:
        return cls(node["name"], tuple(cls.from_json(child) for child in node["children"]))

    def outline(self, indent: str = "") -> Iterator[str]:
        """The names of this track and of those below it, indented by two spaces a level."""
        yield indent + self.name
        for child in self.children:
            yield from child.outline(indent + "  ")


@dataclasses.dataclass(frozen=True)
class Row:
    """A row in the window of the browser.

    Attributes:
        name: of its track behind those of the groups that it is in: "python 7 / thread 7".
        slices: how many of it and of the tracks below it are in the visible part of the timeline.
        covered, spanned: the shares of that part that they cover, and that lie from the first one to the last.
    """

    name: str
    slices: int
    covered: float
    spanned: float


@dataclasses.dataclass(frozen=True)
class Report:
    """What the UI made of a trace.

    Attributes:
        failure: why there is no picture, or None.
        dialog: the text of a dialog that covers the page, or None.
        import_errors: the number in the UI's badge of import errors.
        errors: the rows of `stats` behind that number.
        exceptions: JavaScript exceptions of the page.
        details: the text of the panel about what is selected.
        start, end: the bounds of the timeline in nanoseconds.
        tracks: the tree of tracks, from the top.
        window: the visible part of the timeline in nanoseconds.
        rows: what is in the window of the browser, from the top.
    """

    failure: str | None = None
    dialog: str | None = None
    import_errors: int = 0
    errors: tuple[dict[str, str], ...] = ()
    exceptions: tuple[str, ...] = ()
    details: str = ""
    start: int = 0
    end: int = 0
    tracks: tuple[Track, ...] = ()
    window: tuple[int, int] = (0, 0)
    rows: tuple[Row, ...] = ()

    @property
    def problems(self) -> list[str]:
        """Everything that a sound trace does not have."""
        found = [text for text in (self.failure, self.dialog, *self.exceptions) if text]
        found += [f"{row['name']}: {row['value']}" for row in self.errors]
        if self.import_errors and not self.errors:
            found.append(f"{self.import_errors} import errors")
        if not found and not self.tracks:
            found.append("no tracks")
        return found

    def outline(self) -> list[str]:
        """The tree of tracks as indented lines."""
        return [line for track in self.tracks for line in track.outline()]


def shot(
    trace: str | os.PathLike[str],
    png: str | os.PathLike[str],
    *,
    size: tuple[int, int] = (1600, 900),
    tall: bool = False,
    span_ns: tuple[int, int] | None = None,
    select: str | None = None,
    area: Sequence[str] = (),
    collapse: Sequence[str] = (),
    pin: Sequence[str] = (),
    link: str | None = None,
    hosts: Mapping[str, str] | None = None,
) -> Report:
    """Opens a trace with all groups expanded and saves a picture.

    Args:
        size: width and height of the window in pixels.
        tall: make the window as high as all the tracks.
        span_ns: the part of the timeline to show, in nanoseconds after its start; all of it if None.
        select: select the first slice of that name, which opens its details.
        area: names of tracks on which all that is shown is selected: of call stacks, that opens their flame graph.
        collapse: names of tracks that stay collapsed.
        pin: names of tracks to pin at the top.
        link: open this instead, and leave all as it was opened.
        hosts: where other hosts than 127.0.0.1 are, by name: 127.0.0.1:PORT.
    """
    width, height = size
    start, end = span_ns or (None, None)
    options = {
        "width": width,
        "height": height,
        "tall": tall,
        "start": start,
        "end": end,
        "select": select,
        "area": list(area),
        "collapse": list(collapse),
        "pin": list(pin),
        "link": link,
        "hosts": dict(hosts or {}),
        "timeout": TIMEOUT_S,
    }
    ui_root = oracle.ui_dir().parent  # its index.html loads the version below it
    command = [oracle.node_executable(), HERE / "ui_shot.mjs", ui_root, chromium_executable()]
    command += [json.dumps(options), trace, png]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=2 * TIMEOUT_S, check=True)
    return _report(json.loads(done.stdout))


def _report(found: dict[str, Any]) -> Report:
    return Report(
        failure=found["failure"],
        dialog=found.get("dialog"),
        import_errors=found.get("importErrors", 0),
        errors=tuple(found.get("errors", ())),
        exceptions=tuple(found["exceptions"]),
        details=found.get("details", ""),
        start=int(found.get("start", 0)),
        end=int(found.get("end", 0)),
        tracks=tuple(Track.from_json(node) for node in found.get("tracks", ())),
        window=(int(found.get("window", (0, 0))[0]), int(found.get("window", (0, 0))[1])),
        rows=tuple(Row(**row) for row in found.get("rows", ())),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("png", type=Path)
    parser.add_argument("--size", type=int, nargs=2, metavar=("WIDTH", "HEIGHT"), default=(1600, 900))
    parser.add_argument("--tall", action="store_true", help="as high as all the tracks")
    parser.add_argument("--span", type=int, nargs=2, metavar=("START_NS", "END_NS"), help="the part to show")
    parser.add_argument("--select", metavar="NAME", help="select the first slice of that name")
    parser.add_argument("--area", metavar="TRACK", action="append", default=[], help="select all of it that is shown")
    parser.add_argument("--collapse", metavar="TRACK", action="append", default=[])
    parser.add_argument("--link", help="open this, which serves the trace, and leave all as it was opened")
    parser.add_argument("--pin", metavar="TRACK", action="append", default=[])
    args = parser.parse_args()
    report = shot(
        args.trace,
        args.png,
        size=tuple(args.size),
        tall=args.tall,
        span_ns=tuple(args.span) if args.span else None,
        select=args.select,
        area=args.area,
        collapse=args.collapse,
        pin=args.pin,
        link=args.link,
    )
    shown = dataclasses.asdict(report) | {"tracks": report.outline(), "problems": report.problems}
    print(json.dumps(shown, indent=1, ensure_ascii=False))
    return 1 if report.problems else 0


if __name__ == "__main__":
    sys.exit(main())
