"""Map names of two traces to common kinds of work.

A framework names an operator `Conv`, `aten::conv2d` or `fused_nn_conv2d_add_relu`, and the library below it names the
primitive `convolution`. Patterns put names into classes; a name without a class is a class of its own. Patterns ignore
case, and the first matching class counts. Users add classes with `--map`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from fnmatch import translate
from functools import cached_property

from traceconv.align.wording import listed
from traceconv.errors import UsageError

#: Classes of work by the names of oneDNN, ONNX, PyTorch, MXNet, TVM, TensorFlow and OpenVINO. The order matters:
#: "conv_relu" is a convolution with something fused to it.
CLASSES: dict[str, tuple[str, ...]] = {
    name: tuple(patterns.split())
    for name, patterns in {
        "reorder": "reorder reordernd *to_mkldnn *to_dense layout_transform* *_layout_transform*",
        "deconvolution": "deconvolution* convtranspose* *conv_transpose* *conv2d_transpose*",
        "convolution": "*convolution* conv conv[0-9]d* *conv[0-9]d* nchwcconv fusedconv *linearconv",
        "matmul": (
            "*matmul* gemm* *gemm inner_product* fullyconnected* *addmm* aten::mm aten::bmm *mkldnn_linear "
            "aten::linear dot batch_dot *nn_dense* *nn_batch_matmul*"
        ),
        "pooling": "*pool*",
        "batch_normalization": "*batchnorm* *batch_norm*",
        "layer_normalization": "*layernorm* *layer_norm* layernormalization",
        "softmax": "*softmax*",
        "lrn": "lrn *local_response_norm*",
        "rnn": "rnn *lstm* *gru* vanilla_rnn *mkldnn_rnn_layer*",
        "concat": "concat* aten::cat *concatenate*",
        "sum": "sum aten::sum",
        "eltwise": "eltwise* *relu* *sigmoid* *tanh* *gelu* activation leakyrelu elu clip exp sqrt",
        "binary": "binary add mul sub div aten::add* aten::mul* elemwise_* broadcast_* *fused_add*",
        "reduction": "reduction* reduce* mean aten::mean",
        "resampling": "resampling* resize* upsampl* *interpolate* aten::upsample*",
        "shuffle": "shuffle channel_shuffle*",
    }.items()
}


class NameMap:
    """Maps names to classes.

    Args:
        extra: classes of the user with their patterns; they come before the others.
    """

    def __init__(self, extra: Mapping[str, Sequence[str]] | None = None) -> None:
        #: The classes of the user, with the patterns that they gave.
        self.extra = dict(extra or {})
        #: The patterns of each class, those of the user first.
        self._patterns = {
            name: (*self.extra.get(name, ()), *CLASSES.get(name, ())) for name in {**self.extra, **CLASSES}
        }

    @cached_property
    def _class(self) -> re.Pattern[str]:
        """All patterns, with a group for each class; compiled on first use, as most merges need none."""
        groups = ("|".join(translate(pattern.lower()) for pattern in patterns) for patterns in self._patterns.values())
        return re.compile("|".join(f"({group})" for group in groups))

    def class_of(self, name: str) -> str | None:
        """Return the class of a name; None if no pattern takes it."""
        fitting = self._class.fullmatch(name.lower())
        if fitting is None:
            return name if name in self._patterns else None
        return list(self._patterns)[(fitting.lastindex or 1) - 1]

    def kind(self, name: str) -> str:
        """Return the class of a name, or the name itself."""
        return self.class_of(name) or name

    def check_extra(self, names: Sequence[AbstractSet[str]]) -> None:
        """Check that the classes of the user have an effect.

        Args:
            names: for each input all names of its events.

        Raises:
            UsageError: a class matches no name; or it is not a known class and matches no names of two inputs.
        """
        for kind, patterns in self.extra.items():
            option = f"--map {kind}={','.join(patterns)}"
            takes = [re.compile(translate(pattern.lower())) for pattern in patterns]
            fitting = [
                [any(one.fullmatch(name.lower()) for name in of_input_names) for of_input_names in names]
                for one in takes
            ]
            if not any(map(any, fitting)):
                raise UsageError(
                    f"{option}: no event has such a name",
                    hint="case does not matter, and * matches anything: convolution=*conv* matches all names with conv",
                )
            inputs = [
                any(of_input) or kind in of_input_names
                for *of_input, of_input_names in zip(*fitting, names, strict=True)
            ]
            joins = sum(inputs) > 1 and (len(patterns) > 1 or any(kind in of_input_names for of_input_names in names))
            if kind not in CLASSES and not joins:
                hint = (
                    f"known classes are {listed(tuple(CLASSES))}; for other work, list the names in both files: "
                    f"{kind}=NAME_IN_ONE,NAME_IN_THE_OTHER"
                )
                raise UsageError(
                    f"{option}: {kind} is not a known class, and its patterns relate no names of two files", hint=hint
                )


def parse_map(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values of `--map`, such as "convolution=Conv*,*FusedConv*".

    Raises:
        UsageError: a value is malformed.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, equals, patterns = text.partition("=")
        parts = tuple(part.strip() for part in patterns.split(",") if part.strip())
        if not equals or not name.strip() or not parts:
            raise UsageError(f"--map {text!r}: expected CLASS=PATTERN,PATTERN, such as convolution=Conv*,*FusedConv*")
        found[name.strip()] = (*found.get(name.strip(), ()), *parts)
    return found
