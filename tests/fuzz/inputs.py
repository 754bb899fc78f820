"""The inputs of a run: golden cases, with damage to their bytes and to what they hold."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random

from tests import damage
from tests.damage import Edit, Mutation, OddValue
from tests.fuzz import structure
from tests.golden import ROOT, Case, cases
from traceconv.io.sqlite import MAGIC

#: What the formats of these commands' inputs are; other commands take all of them.
CHECKED = ["chrome-trace", "perfetto", "pytorch-kineto", "viztracer", "onnxruntime"]
#: The formats with operations, which comparisons of runs are about.
COMPARED = [
    *("chrome-trace", "deepsparse", "furiosa", "mxnet", "nsight-systems", "nvprof", "onednn-verbose", "onnxruntime"),
    *("openvino", "perfetto", "pytorch-kineto", "rocprof", "tensorflow-profiler", "tensorrt", "tvm-debugger"),
    *("tvm-profile", "viztracer", "vtune", "xplane"),
]
_SHARE = 10**6
#: A change that changes nothing, as in an empty table, is followed by another one.
_TRIES = 6
_TEXT = [structure.rows, structure.names, structure.numbers]


@cache
def by_format() -> dict[str, list[Case]]:
    """The cases of each format, without those that merge."""
    found: dict[str, list[Case]] = {}
    for case in cases():
        if case.format != "merge":
            found.setdefault(case.format, []).append(case)
    return found


@cache
def merges() -> list[Case]:
    """The cases that merge."""
    return [case for case in cases() if case.format == "merge"]


def drawn(rng: Random, formats: list[str] | None = None) -> Case:
    """A case: rare formats as often as those that have many."""
    return rng.choice(by_format()[rng.choice(formats or list(by_format()))])


def parts(case: Case) -> list[Case]:
    """The cases that a case merges."""
    return [Case(ROOT / name) for name in case.about["inputs"]]


def damaged(rng: Random, data: bytes) -> bytes:
    """The input with up to three changes; one in ten stays whole."""
    for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 1, 2, 2, 3])):
        for _ in range(_TRIES):
            changed = _change(rng, data)(data)
            if changed != data:
                break
        data = changed
    return data


def _change(rng: Random, data: bytes) -> Callable[[bytes], bytes]:
    kind = rng.random()
    if data.startswith(MAGIC) and kind < 0.7:
        cells = rng.choice([damage.CELLS, damage.ODD_CELLS])
        edit = Edit(rng.choice(damage.EDIT_KINDS), *_places(rng), rng.choice(damage.ROWS), rng.choice(cells))
        return edit.apply
    if kind < 0.3:
        junk = rng.choice([*damage.JUNK, rng.randbytes(rng.randrange(1, 9))])
        return Mutation(rng.choice(damage.KINDS), *_places(rng), junk).apply
    if kind < 0.5 and b"\x00" not in data:
        find, odd = rng.choice([(damage.fields, damage.ODD_NUMBERS), (damage.members, damage.ODD_VALUES)])
        return OddValue(*_places(rng), rng.random() < 0.5, rng.choice(odd), find).apply
    if data[:1] in (b"{", b"["):
        form = rng.choice([structure.values] * 4 + _TEXT)
    elif b"\x00" in data:
        form = rng.choice([structure.words, structure.fields, structure.fields, structure.names])
    else:
        form = rng.choice(_TEXT)
    return lambda data: form(rng, data)


def _places(rng: Random) -> tuple[int, int]:
    return rng.randrange(_SHARE), rng.randrange(_SHARE)


def laid(rng: Random, case: Case, folder: Path) -> Path:
    """The path of the damaged input of a case in a folder, beside what lies beside it."""
    folder.mkdir(parents=True)
    beside = case.folder / "beside"
    for path in beside.rglob("*") if beside.is_dir() else ():
        if path.is_file():
            target = folder / path.relative_to(beside)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes() if rng.random() < 0.8 else damaged(rng, path.read_bytes()))
    name = case.about.get("file_name", f"{case.folder.name}{case.input.suffix}")
    data = damaged(rng, case.input.read_bytes())
    if rng.random() < 0.03:
        name, data = f"{name}.gz", gzip.compress(data, 1, mtime=0)
        data = damaged(rng, data) if rng.random() < 0.5 else data
    path = folder / name
    path.write_bytes(data)
    return path
