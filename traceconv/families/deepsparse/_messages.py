"""Read the messages of DeepSparse engines."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from traceconv.families.deepsparse._position import Blocks, Position
from traceconv.families.deepsparse._thread import Open, Thread
from traceconv.model.builder import Builder
from traceconv.model.numbers import number_of, whole_or_text
from traceconv.model.trace import TrackId

_PHASE = re.compile(r"== (?P<end>End )?(?P<name>NMExecutionProvider::\w+) ==$")
_TRANSLATE = re.compile(r"== Translating subgraph (?P<name>\S+) to NM intake graph")
_COMPILE = re.compile(r"== Compiling (?P<name>\S+) with batch size (?P<batch>\d+) using (?P<count>\d+) (?P<what>\w+)")
_UNSUPPORTED = re.compile(r"Unsupported (?P<op>\w+) (?P<node>.*?) ?, *(?P<reason>.*)$")
_SUPPORTS = re.compile(r"== NM Execution Provider supports (?P<percent>[\d.]+)% of the network")
_CREATED = re.compile(r"Created (?P<count>\d+) compiled subgraphs")
_INPUT = re.compile(r" ++(?P<name>.+) \(required\)$")
_LAUNCHER = re.compile(r"(?<!\w)(\w++) ++= ++([0-9]+)")
_BUFFER = re.compile(r"compiler: total buffer size = (\d+)/(\d+)")
_NEW_SUBGRAPH = "== Beginning new subgraph =="
FAILED = "FAILED TO COMPILE"


class Engine(msgspec.Struct):
    """An engine: the process of one banner."""

    process: TrackId
    info: dict[str, Any] = msgspec.field(default_factory=dict)
    percents: list[str] = msgspec.field(default_factory=list)
    unsupported: list[str] = msgspec.field(default_factory=list)
    calls: int = 0
    total_ns: int = 0
    threads: dict[str, Thread] = msgspec.field(default_factory=dict)
    output: Thread | None = None

    def describe(self) -> dict[str, Any]:
        """Return the members for metadata."""
        args = dict(self.info, compute_func_calls=self.calls, compute_func_total_ns=self.total_ns)
        if self.percents:
            args["supported_percent"] = [number_in(percent) for percent in self.percents]
        if self.unsupported:
            args["unsupported"] = self.unsupported
        return args


class Messages:
    """Reads messages.

    Args:
        out: the builder.
        at: the position of the current message.
        blocks: the blocks that threads are printing.
        engine: the current engine.
    """

    def __init__(self, out: Builder, at: Position, blocks: Blocks, engine: Callable[[], Engine]) -> None:
        self._out = out
        self._at = at
        self._blocks = blocks
        self._engine = engine

    def read(self, thread: Thread, number: int, text: str) -> None:
        """Read a message of a thread: the start or end of a slice, or a statement."""
        phase = _PHASE.match(text)
        if phase:
            self._phase(thread, number, phase["name"], ended=bool(phase["end"]))
        elif text.startswith(_NEW_SUBGRAPH):
            thread.close_down_to("subgraph")
            thread.open.append(Open("subgraph", "subgraph", self._at.now, number))
        elif text.startswith("( L1 graph"):
            self._blocks.enter(thread, "dump")
        elif text.startswith("Printing subgraph:"):
            if thread.open:
                self._blocks.enter(thread, "subgraph")
        elif text.startswith("== PATTERNS MATCHED =="):
            self._blocks.enter(thread, "patterns")
        elif FAILED in text:
            self._out.instant(thread.track, self._at.now, FAILED, "error", b"", number)
        elif not self._step(thread, number, text):
            self._statement(thread, number, text)

    def _phase(self, thread: Thread, number: int, name: str, ended: bool) -> None:
        if not ended:
            thread.close_down_to("phase")
            thread.open.append(Open(name, "phase", self._at.now, number))
        elif any(one.name == name for one in thread.open):
            while thread.open[-1].name != name:
                thread.close()
            thread.close()
        else:
            self._out.instant(thread.track, self._at.now, f"End {name}", "phase", b"", number)

    def _step(self, thread: Thread, number: int, text: str) -> bool:
        """Read a step of the compilation of a subgraph; return whether the line is one."""
        translate, compile_ = _TRANSLATE.match(text), _COMPILE.match(text)
        if translate:
            thread.close_down_to("translate")
            if thread.open and thread.open[-1].category == "subgraph":
                thread.open[-1].name = f"subgraph {translate['name']}"
                self._of_subgraph(thread, translate["name"])
            thread.open.append(Open(f"translate {translate['name']}", "translate", self._at.now, number))
        elif compile_:
            thread.close_down_to("translate")
            args = {"batch_size": whole_or_text(compile_["batch"]), compile_["what"]: whole_or_text(compile_["count"])}
            thread.open.append(Open(f"compile {compile_['name']}", "compile", self._at.now, number, args))
        return bool(translate or compile_)

    def _statement(self, thread: Thread, number: int, text: str) -> None:
        """Read a statement about an open slice, the graph, or the engine."""
        unsupported, supports, created = _UNSUPPORTED.match(text), _SUPPORTS.match(text), _CREATED.match(text)
        inputs = _INPUT.match(text)
        inner = thread.open[-1] if thread.open else None
        if unsupported:
            self._unsupported(thread, number, unsupported)
        elif supports:
            self._supports(thread, number, supports["percent"])
        elif created:
            thread.close_down_to("subgraph")
            args = {"subgraphs": whole_or_text(created["count"])}
            self._out.instant(thread.track, self._at.now, text.rstrip("."), "compile", args, number)
        elif inner is not None and inner.category == "subgraph" and inputs:
            inner.args.setdefault("inputs", []).append(inputs["name"])
        elif inner is not None and inner.category == "subgraph" and "subgraph was empty" in text:
            inner.name = "subgraph (empty, ignored)"
        elif inner is not None and inner.category == "compile":
            self._compile_info(inner, text)

    def _compile_info(self, inner: Open, text: str) -> None:
        buffer = _BUFFER.match(text)
        if text.startswith("Kernel launcher params:"):
            inner.args |= {key: whole_or_text(value) for key, value in _LAUNCHER.findall(text)}
        elif buffer:
            inner.args |= {
                "total_buffer_size": whole_or_text(buffer[1]),
                "total_buffer_size_of": whole_or_text(buffer[2]),
            }

    def _unsupported(self, thread: Thread, number: int, match: re.Match[str]) -> None:
        op, node, reason = match["op"], match["node"], match["reason"]
        args = {"op": op, "node": node, "reason": reason}
        same = [one for one in thread.nodes if (one.args["op"], one.args["name"]) == (op, node)]
        if len(same) == 1:
            same[0].args["unsupported"] = reason
            args["node_index"] = same[0].args["node"]
        self._engine().unsupported.append(f"{op} {node}".strip() + f": {reason}")
        self._out.instant(thread.track, self._at.now, f"unsupported {op}", "unsupported", args, number)

    def _of_subgraph(self, thread: Thread, name: str) -> None:
        """Note the subgraph on the nodes of the whole graph."""
        inside = {node.partition(":")[0] for node in thread.open[-1].args.get("nodes", ())}
        for node in thread.nodes:
            if str(node.args["node"]) in inside:
                node.args["subgraph"] = name

    def _supports(self, thread: Thread, number: int, percent: str) -> None:
        """Add the share of supported nodes; the rest of the graph runs in ONNX Runtime."""
        args: dict[str, Any] = {"supported_percent": number_in(percent)}
        if thread.nodes:
            rest = [node.args for node in thread.nodes if "subgraph" not in node.args]
            args["nodes"] = len(thread.nodes)
            args["onnxruntime_nodes"] = [f"{node['node']}: {node['op']} {node['name']}".rstrip() for node in rest]
            for node in rest:
                node["runs_in"] = "ONNX Runtime"
        self._engine().percents.append(percent)
        self._out.instant(thread.track, self._at.now, f"supports {percent}% of the network", "supported", args, number)
        thread.write_nodes()


def number_in(text: str) -> int | float | str:
    """Return a number of the log; its text if JSON cannot hold it."""
    number = number_of(text)
    return text if number is None else number
