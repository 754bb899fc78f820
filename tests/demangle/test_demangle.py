"""Names of C++ functions: as the compiler wrote them, as c++filt shows them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from traceconv.demangle import demangle

#: Made with g++ 12 from functions that look like kernels, shown with c++filt 2.40.
NAMES = dict(
    line.split("\t") for line in (Path(__file__).parent / "demangle_names.txt").read_text(encoding="utf-8").splitlines()
)


def test_names() -> None:
    assert {mangled: demangle(mangled) for mangled in NAMES} == NAMES


def test_names_without_parameters() -> None:
    """As `c++filt -p` prints them, but for clones, which are functions of their own."""
    for mangled, name in {
        "_ZN2at6native4gemmIfLi4EEEvPT_i": "at::native::gemm<float, 4>",
        "_ZN3c106SymInt8release_Ev.isra.0": "c10::SymInt::release_ [clone .isra.0]",
        "_ZZN1A1fEiENKUlvE_clEv": "A::f(int)::{lambda()#1}::operator()",
        "_ZNK3fooclEi": "foo::operator()",
        "_ZdlPvm": "operator delete",
        "main": "main",
    }.items():
        assert demangle(mangled, parameters=False) == name


@pytest.mark.parametrize("name", ["", "_Z", "main", "__nv_static_12_foo", "?f@@YAXH@Z", "_ZN", "_Z3foo9", "_Z1fS5_"])
def test_what_is_no_such_name_stays(name: str) -> None:
    assert demangle(name) == name


def test_damaged_names_stay_or_give_a_text() -> None:
    """Nothing is raised, and nothing takes long or grows without end."""
    rng = random.Random(5)
    known = list(NAMES)
    for _ in range(4000):
        name = rng.choice(known)
        at = rng.randrange(2, len(name))
        chunk = rng.choice(known)[rng.randrange(4) : rng.randrange(4, 30)]
        assert len(demangle(name[:at] + chunk + name[at + rng.randrange(3) :])) < 1 << 17


@pytest.mark.parametrize(
    "name",
    [
        "_Z1fP" + "P" * 30_000 + "i",
        "_Z1f" + "".join(f"St4pairIS{n}_S{n}_E" for n in ("", *range(9))) * 50,
        "_Z1fI" + "J" * 5000 + "E",
        "_Z1fIiEvT_" + "PFS1_S1_E" * 200,
        "_Z1fIJiiEEvDpSt4pairIT_S2_E" + "Dp" * 30 + "T_",
        "_Z" + "N1a" * 5000,
    ],
)
def test_hostile_names(name: str) -> None:
    assert len(demangle(name)) < 1 << 17
