"""`output_tensors.params` of the TVM debugger: names, shapes and dtypes of the outputs of all nodes.

    b7 9c 04 05 4f 8d e5 f7  00 00 00 00 00 00 00 00   magic of a list of tensors, reserved
    10 00 00 00 00 00 00 00  45 00 00 00 00 00 00 00   16 names, the first has 69 bytes
    "fused_nn_dense____topo-index:14____output-num:0"  since 0.9; in 0.8 `name____output`, before `name_output__seconds`

Files of parameters (`tvm.runtime.save_param_dict`, `mod.params`) have the same layout. The data of the tensors is
skipped and never kept. The importers of the debugger's table and of its execution trace join the file that lies beside
them. Described at https://tvm.apache.org/docs/v0.16.0/arch/debugger.html; `_tensors` has the layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from traceconv.families.importer import Match
from traceconv.families.tvm import _dump as dumps
from traceconv.families.tvm import _tensors as tensors
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME, ClockDomain
from traceconv.model.counted import TENSORS
from traceconv.model.diagnostics import lost

CUT_TENSORS = lost("tvm.cut_tensors", "the file ends before all of its tensors: the complete ones were listed")


@dataclass(frozen=True)
class TvmOutputTensors:
    """Importer of files of TVM tensors."""

    name: ClassVar[str] = "tvm-output-tensors"
    title: ClassVar[str] = "TVM debugger output tensors (output_tensors.params)"
    url: ClassVar[str] = "https://tvm.apache.org/docs/v0.16.0/arch/debugger.html"
    versions: ClassVar[str] = "0.5 to 0.19; any file of tvm.runtime.save_param_dict"
    clock: ClassVar[ClockDomain] = NO_TIME
    record: ClassVar[str] = "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("tensor", "row of a table without a timeline: node, output, shape, dtype, device, bytes"),
    )
    lost: ClassVar[tuple[str, ...]] = ("The data of the tensors is never read.", "The file has no times.")
    line_up: ClassVar[str] = (
        "Leave it in the folder of the debugger's table or execution trace: these read it themselves, if the "
        "graph is there."
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for the magic number."""
        if head.data.startswith(tensors.LIST_MAGIC):
            return Match.yes("magic number of a list of TVM tensors")
        return Match.no("no magic number of TVM tensors")

    def read(self, source: Source, out: Builder) -> None:
        """List the tensors. Raises MalformedInput when the file makes no sense."""
        out.info.unit = "tensor"
        out.balance.unit = TENSORS
        with source.open() as stream:
            listing = tensors.read_listing(stream, source.display)
        out.belongs_to(("tvm-debugger", "tvm-execution-trace"))
        track = out.tracks.totals("TVM output tensors", description="Outputs of nodes, parameters among them.")
        for number, tensor in enumerate(listing.tensors, 1):
            node, name = dumps.node_of(tensor.name)
            args: dict[str, Any] = {"tensor": tensor.name} if name != tensor.name else {}
            if isinstance(node, int):
                args["node"] = node
            args |= {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device, "bytes": tensor.size}
            out.totals(track, name, "tensor", args, number)
        out.balance.read = listing.names
        out.balance.written = len(listing.tensors)
        if listing.cut:
            missing = listing.names - len(listing.tensors)
            out.skip(CUT_TENSORS, f"{out.info.name}: {listing.cut}", count=missing)
        info = dumps.summary(listing.tensors)
        out.metadata["tvm_output_tensors"] = {"count": info["count"], "bytes": info["bytes"]}
