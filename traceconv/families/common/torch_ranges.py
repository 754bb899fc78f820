"""Names of the NVTX ranges that PyTorch pushes for its operators inside of `torch.autograd.profiler.emit_nvtx`.

    aten::addmm, seq = 45328, op_id = 990724, sizes = [[3], [2, 4], [4, 3]], input_op_ids = [(0,-1), (12,0), (13,0)]

Source: `getNvtxStr` in torch/csrc/profiler/util.cpp: after the name, the sequence number of the autograd function that
the operator makes or is (not for others), the number of the call (torch 1.8 and later), and with `record_shapes` the
sizes of inputs, and the calls that made them with the number of their output. A name can hold commas.

`enterNVTX` in torch/csrc/profiler/standalone/nvtx_observer.cpp writes the ranges of `record_function` in the same form,
and not which they are. They have neither a sequence number nor inputs. So a range without both is one of the program,
unless its name is in a namespace (`aten::view`) or that of the collectives.
"""

from __future__ import annotations

import re
from typing import Any, Final

from traceconv.model.marks import BackwardMarks
from traceconv.model.numbers import read_json, whole

#: The category of these, of all other ranges, and the args of the sequence number and of the shapes as in Kineto.
OPERATOR: Final = "cpu_op"
RANGE: Final = "nvtx"
SEQUENCE, SHAPES = "Sequence number", "Input Dims"
#: Kineto states the thread of the forward operator. The engine of autograd calls backward functions in such slices.
BACKWARD: Final = BackwardMarks(SEQUENCE, "Fwd thread id", "autograd::engine::evaluate_function: .*")
#: What a format with such ranges declares.
MARKS: Final[dict[str, Any]] = {
    "operators": (OPERATOR,),
    "ranges": (RANGE,),
    "shapes": (SHAPES,),
    "backward": BACKWARD,
}
#: What such formats do not tell.
LOST: Final = (
    "Of emit_nvtx of PyTorch, ranges without a sequence number, sizes and '::' in their name count as ranges of the "
    "program."
)

_FORM: Final = re.compile(
    r"(?P<name>.+?)(?:, seq = (?P<seq>\d{1,18}))?(?:, op_id = (?P<op>\d{1,18}))?"
    r"(?:, sizes = (?P<sizes>\[[\[\]\d, -]*\]))?(?:, input_op_ids = (?P<inputs>\[[(), \d-]*\]))?",
    re.DOTALL,
)
#: In the names of operators since torch 1.7; and that of collectives (kParamCommsCallName), which lacks it.
_NAMESPACE, _COLLECTIVE = "::", "record_param_comms"
#: No range of PyTorch lacks all of these.
_PARTS: Final = (", seq = ", ", op_id = ", ", sizes = ")


def described(text: str) -> tuple[str, str, dict[str, Any]]:
    """Return name, category and args of a range from its text, which is the name if it has not the form of PyTorch.

    What PyTorch writes for the program is in the category of ranges.
    """
    found = _FORM.fullmatch(text) if any(part in text for part in _PARTS) else None
    if found is None or found["name"] == text:
        return text, RANGE, {}
    args: dict[str, Any] = {SEQUENCE: whole(found["seq"])} if found["seq"] else {}
    args |= {"op_id": whole(found["op"])} if found["op"] else {}
    args |= {SHAPES: _sizes(found["sizes"])} if found["sizes"] else {}
    args |= {"input_op_ids": found["inputs"]} if found["inputs"] else {}
    is_operator = found["seq"] or found["sizes"] or _NAMESPACE in found["name"] or found["name"] == _COLLECTIVE
    return found["name"], OPERATOR if is_operator else RANGE, args


def _sizes(text: str) -> Any:
    """Return sizes as lists, or the text if it is cut."""
    try:
        return read_json(text.encode())
    except ValueError:
        return text
