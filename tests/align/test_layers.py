"""Which of two formats is the outer one, and work that runs in no call of the other one at all."""

from __future__ import annotations

import pytest

from tests.align.pairs import recordings
from tests.benchmarks.alignment.trials import late_trial
from tests.golden import ROOT, Case
from traceconv.align.constraints import NameMap
from traceconv.align.estimate import stated_outer
from traceconv.align.evidence import estimate_pair
from traceconv.align.inputs import ClockInput
from traceconv.api import read
from traceconv.families.registry import importers
from traceconv.model.clocks import Verdict
from traceconv.model.source_info import Layer


@pytest.mark.parametrize("seed", [1002, 1004, 1005, 1006])
def test_work_a_while_after_its_calls_is_not_put_inside_of_anything(seed: int) -> None:
    """Calls are shorter than their work, or vary by themselves; some are of formats that say what they are."""
    assert not late_trial(seed, queue=False).accepted


def sides(outer: Layer | None, inner: Layer | None) -> tuple[ClockInput, ClockInput]:
    """What a framework and the library below it wrote down of one run."""
    framework, library = recordings()
    framework.sources[0].layer, library.sources[0].layer = outer, inner
    return ClockInput(0, 0, framework), ClockInput(1, 0, library)


def test_formats_say_which_is_outer() -> None:
    framework, library = sides(Layer.FRAMEWORK, Layer.LIBRARY)
    assert stated_outer(framework, library) is stated_outer(library, framework) is framework
    framework, library = sides(Layer.LIBRARY, Layer.FRAMEWORK)
    assert stated_outer(framework, library) is stated_outer(library, framework) is library
    for one, other in ((None, None), (Layer.FRAMEWORK, None), (Layer.LIBRARY, Layer.LIBRARY)):
        assert stated_outer(*sides(one, other)) is None


def test_what_formats_say_decides_and_not_durations() -> None:
    """The framework's events are the longer ones, but a format that says it is below stays below."""
    framework, library = sides(Layer.FRAMEWORK, Layer.LIBRARY)
    found = estimate_pair(library, framework, None, NameMap())
    assert found is not None
    assert (found.estimate.verdict, found.swapped) == (Verdict.OK, True)
    against = estimate_pair(*sides(Layer.LIBRARY, Layer.FRAMEWORK), None, NameMap())
    assert against is not None
    assert against.estimate.verdict.unusable


def test_work_of_a_device_lies_in_no_call() -> None:
    found = estimate_pair(*sides(Layer.FRAMEWORK, Layer.DEVICE), None, NameMap())
    assert found is not None
    assert found.estimate.verdict is Verdict.INSUFFICIENT
    assert "launch ids in both files" in str(found.estimate.reason)


def test_importers_say_where_their_slices_are_written_down() -> None:
    stated = {name: getattr(cls, "layer", None) for name, cls in importers().items()}
    assert stated["pytorch-kineto"] is stated["onnxruntime"] is stated["mxnet"] is Layer.FRAMEWORK
    assert stated["onednn-verbose"] is Layer.LIBRARY
    assert stated["nvprof"] is Layer.DEVICE
    assert stated["timed-log"] is stated["chrome-trace"] is None
    for case, layer in (("all-ts", Layer.LIBRARY), ("gpu", Layer.DEVICE)):
        trace = read(Case(ROOT / "onednn-verbose" / case).input)
        assert trace.sources[0].layer is layer
