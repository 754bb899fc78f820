"""Graphs of TVM: `_tvmdbg_graph_dump.json` of the debugger, and what `lib.get_graph_json()` returns.

    {"nodes": [{"op": "param", "name": "data", "inputs": [], "attrs": {"T": "type: float32"}, "shape": [1, 3, 32, 32]},
               {"op": "fused_nn_dense", "name": "fused_nn_dense", "inputs": ["data", "p0"],
                "attrs": {"func_name": "fused_nn_dense", "num_outputs": "1", ...}}],
     "arg_nodes": [0], "node_row_ptr": [0, 1, 2], "heads": [[1, 0, 0]],
     "attrs": {"storage_id": ["list_int", [0, 1]], "dltype": ["list_str", ["float32", "float32"]],
               "shape": ["list_shape", [[1, 3, 32, 32], [1, 10]]]}}

A graph has no times. The importers of the debugger's table and of its execution trace join the graph that lies beside
them; by itself it becomes a table of its nodes. Described at https://tvm.apache.org/docs/v0.16.0/arch/debugger.html;
`_dump` has the versions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from traceconv.families.importer import Match
from traceconv.families.tvm import _dump as dumps
from traceconv.io.source import Head, Source
from traceconv.model.builder import Builder
from traceconv.model.clocks import NO_TIME, ClockDomain
from traceconv.model.counted import NODES


@dataclass(frozen=True)
class TvmGraph:
    """Importer of TVM graphs."""

    name: ClassVar[str] = "tvm-graph"
    title: ClassVar[str] = "TVM graph (_tvmdbg_graph_dump.json)"
    url: ClassVar[str] = "https://tvm.apache.org/docs/v0.16.0/arch/debugger.html"
    versions: ClassVar[str] = "0.5 to 0.19: as an object, and as JSON in a JSON string"
    clock: ClassVar[ClockDomain] = NO_TIME
    record: ClassVar[str] = "debug_executor.create(lib.get_graph_json(), lib, dev, dump_root='dump').run()"
    becomes: ClassVar[tuple[tuple[str, str], ...]] = (
        ("node", "row of a table without a timeline: function, inputs, shape, dtype, storage_id, attributes"),
    )
    lost: ClassVar[tuple[str, ...]] = ("A graph has no times.",)
    line_up: ClassVar[str] = (
        "Leave it in the folder of the debugger's table or execution trace: these read it themselves, and show flows."
    )

    def sniff(self, head: Head) -> Match:
        """Return YES for nodes with the names of TVM; MXNet writes graphs with the same outline."""
        mark = dumps.mark_of_graph(head)
        return Match.yes(f"a graph with {mark}") if mark else Match.no("no nodes with func_name, tvm_op or TVM's types")

    def read(self, source: Source, out: Builder) -> None:
        """Read the whole graph. Raises MalformedInput when it makes no sense."""
        out.info.unit = "node"
        out.balance.unit = NODES
        with source.open() as stream:
            data = stream.read()
        try:
            graph = dumps.parse_graph(data.removeprefix(b"\xef\xbb\xbf"))
        except ValueError as error:
            raise source.malformed(
                f"not a graph of TVM: {error}",
                hint="was the file cut? The debugger writes it when it is created",
            ) from None
        if graph.unknown_inputs:
            out.problem(dumps.UNKNOWN_INPUT, out.info.name, count=graph.unknown_inputs)
        out.belongs_to(("tvm-debugger", "tvm-execution-trace"))
        track = out.tracks.totals("TVM graph", description="Nodes in order of execution.")
        for node in graph.nodes:
            out.balance.read += 1
            out.balance.written += 1
            category = "parameter" if node.is_parameter else "operator"
            out.totals(track, node.name, category, {"node": node.index} | graph.args_of(node), node.index + 1)
        parameters = sum(node.is_parameter for node in graph.nodes)
        out.metadata["tvm_graph"] = {"operators": len(graph.nodes) - parameters, "parameters": parameters}
