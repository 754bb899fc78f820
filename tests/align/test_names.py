"""Names that the user says are the same work: only what has an effect is accepted."""

from __future__ import annotations

import pytest

from tests.align.pairs import recordings
from traceconv.align import Policy, align
from traceconv.align.constraints import CLASSES, NameMap, parse_map
from traceconv.errors import UsageError

NAMES = [{"aten::conv2d", "MyOp", "aten::relu"}, {"convolution", "my_kernel", "eltwise"}]


@pytest.mark.parametrize(
    "text",
    ["convolution=*conv2d", "mine=MyOp,my_kernel", "my_kernel=myop", "mine=my*,other", "convolution=nothing,MYOP"],
)
def test_what_joins_names_is_accepted(text: str) -> None:
    NameMap(parse_map([text])).check_extra(NAMES)


@pytest.mark.parametrize("text", ["convolution=Nix*", "mine=nothing,at all", "MyOp=nothing"])
def test_patterns_that_take_nothing_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"--map {text.replace('*', '[*]')}: no event has such a name"):
        NameMap(parse_map([text])).check_extra(NAMES)


@pytest.mark.parametrize("text", ["foo=*conv*", "foo=MyOp", "foo=aten::conv2d,MyOp", "foo=aten::*,nothing"])
def test_a_class_that_there_is_not_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(UsageError, match="foo is not a known class") as raised:
        NameMap(parse_map([text])).check_extra(NAMES)
    assert all(kind in raised.value.hint for kind in CLASSES)


def test_an_alignment_refuses_a_name_map_without_effect() -> None:
    policy = Policy(NameMap(parse_map(["convolutoin=Conv*"])))
    with pytest.raises(UsageError, match="convolutoin is not a known class"):
        align(recordings(), policy=policy)
