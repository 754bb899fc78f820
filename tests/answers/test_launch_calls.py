"""The section `launches`: what calls that launch device work cost, and whether they came in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceconv
from tests.answers.test_sections import Events, event, kineto, launched
from tests.golden import ROOT
from traceconv.answers import Questions
from traceconv.answers.launch_calls import NO_LAUNCH, launches

CALLS = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch")


def named(call: str, number: int, at: tuple[float, float], work: tuple[float, float], **more: Any) -> Events:
    found = launched(number, at, work, **more)
    found[0]["name"] = call
    return found


def test_calls_by_hand(tmp_path: Path) -> None:
    graph = named("cudaGraphLaunch", 5, (60, 62), (70, 75))
    graph.append(graph[1] | {"ts": 75, "name": "second"})
    unknown = event("unknown", 90, 1, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7})
    events = [
        *named("cudaLaunchKernel", 1, (0, 5), (10, 20)),  # the first: nothing tells whether it was late
        *named("cudaLaunchKernel", 2, (6, 8), (20, 30)),  # the device was busy until 20
        *named("cudaLaunchKernel", 3, (40, 44), (50, 55)),  # idle since 30
        *named("cudaMemcpyAsync", 4, (45, 46), (55, 57), cat="gpu_memcpy"),
        *graph,  # idle since 57; its second kernel is of the same call
        unknown,
    ]
    kernel, of_graph, copy, without = launches(kineto(tmp_path / "a.json", events)).records()
    assert kernel == {
        "name": "cudaLaunchKernel",
        "count": 3,
        "host_ns": 11_000,
        "host_p50_ns": 4_000,
        "kernels": 3,
        "device_ns": 25_000,
        "latency_p50_ns": 10_000,
        "latency_max_ns": 14_000,
        "queue_p50_ns": 6_000,
        "queue_max_ns": 12_000,
        "ahead": 1,
        "late": 1,
        "late_share": 0.5,
    }
    assert (copy["name"], copy["ahead"], copy["late"], copy["late_share"]) == ("cudaMemcpyAsync", 1, 0, 0.0)
    assert (of_graph["count"], of_graph["kernels"], of_graph["ahead"], of_graph["late"]) == (1, 2, 0, 1)
    assert (of_graph["latency_p50_ns"], of_graph["latency_max_ns"]) == (10_000, 15_000)
    assert without == dict.fromkeys(kernel) | {"name": NO_LAUNCH, "kernels": 1, "device_ns": 1_000}


@pytest.mark.parametrize("case", ["cuda-graph", "cuda-streams", "cuda-stacks-memory", "nccl-rank0"])
def test_rows_add_up_to_all_kernels(case: str) -> None:
    path = ROOT / "pytorch-kineto" / case / "input.json"
    kernels, found = traceconv.report([path], Questions(["kernels", "launches"]))
    for of_kernels, of_calls in (("count", "kernels"), ("total_ns", "device_ns")):
        assert sum(row[of_kernels] for row in kernels.records()) == sum(row[of_calls] for row in found.records())


def test_without_launches_a_note_says_so(tmp_path: Path) -> None:
    work = [event("kernel", 0, 5, cat="kernel", pid=0, tid=7, args={"device": 0, "stream": 7})]
    unset = [event("kernel", 0, 0, cat="kernel", tid=7), event("cudaLaunchKernel", 5e9, 5, cat="cuda_runtime")]
    for events, said in (
        (work, "no launch of device work is recorded"),
        ([], "no work of a device is recorded"),
        (unset, "no work of a device is recorded with a time: those of 1 event were never set"),
    ):
        section = launches(kineto(tmp_path / "a.json", events))
        assert (section.rows, section.notes) == ([], [said])


@pytest.mark.parametrize(
    "category", ["cuda_runtime", "xpu_driver", "mtia_runtime", "privateuse1_driver", "mlu_runtime"]
)
@pytest.mark.parametrize("work", ["kernel", "mlu_memcpy"])
def test_launches_without_flows(category: str, work: str, tmp_path: Path) -> None:
    call, kernel, *_ = launched(1, (0, 5), (10, 20))
    found = launches(kineto(tmp_path / "a.json", [call | {"cat": category}, kernel | {"cat": work}]))
    assert [(row["count"], row["kernels"]) for row in found.records()] == [(1, 1)]


@given(
    st.lists(
        st.tuples(st.sampled_from(CALLS), st.integers(0, 60), st.integers(1, 5), st.integers(0, 40), st.integers(0, 9)),
        min_size=1,
        max_size=8,
    )
)
def test_calls_come_in_time_or_late(tmp_path_factory: pytest.TempPathFactory, drawn: list[Any]) -> None:
    """Work on streams of one device, whose launches may be in any order and overlap."""
    events, calls, works = Events(), [], []
    for number, (name, at, length, wait, lasts) in enumerate(drawn, 1):
        start = 100 * number + at + wait
        calls.append((name, 100 * number + at, start))
        works.append((start, start + 12 * lasts))
        call = (100 * number + at, 100 * number + at + length)
        events += named(
            name,
            number,
            call,
            works[-1],
            tid=number,
            pid=0,
            args={"device": 0, "stream": number} | {"correlation": number},
        )
    expected = dict.fromkeys(CALLS, (0, 0))
    for name, begin, start in calls:
        before = [end for other, end in works if other < start]
        ahead, late = expected[name]
        if before:
            expected[name] = (ahead + 1, late) if max(before) > begin else (ahead, late + 1)
    section = launches(kineto(tmp_path_factory.mktemp("calls") / "a.json", events))
    assert {row["name"]: (row["ahead"], row["late"]) for row in section.records()} == {
        name: expected[name] for name in {call[0] for call in drawn}
    }
