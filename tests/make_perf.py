"""Synthetic perf.data files: what no small recording shows. Every assumed fact about the format is in this file.

Source: include/uapi/linux/perf_event.h and tools/perf/Documentation/perf.data-file-format.txt of Linux: the header
(magic, sizes, sections, bitmap of features), perf_event_attr, the records and the trailer that they have with
sample_id_all, the order of the fields of a sample. Files of either endianness are made from the same calls.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

IP, TID, TIME, READ, CALLCHAIN, CPU, PERIOD, RAW = 1, 2, 4, 16, 32, 128, 256, 1024
ADDR, ID, STREAM_ID, IDENTIFIER = 8, 64, 512, 1 << 16
MMAP, LOST, COMM, EXIT, THROTTLE, FORK, SAMPLE, MMAP2, LOST_SAMPLES, SWITCH = 1, 2, 3, 4, 5, 7, 9, 10, 13, 14
KSYMBOL, FINISHED_ROUND = 17, 68
KERNEL_MODE, USER_MODE, MISC_EXEC, MISC_SWITCH_OUT, MISC_PREEMPTED = 1, 2, 1 << 13, 1 << 13, 1 << 14
CONTEXT_KERNEL, CONTEXT_USER = 2**64 - 128, 2**64 - 512
SAMPLE_ID_ALL, USE_CLOCKID = 18, 25
HOSTNAME, CPUDESC, CMDLINE, EVENT_DESC, CLOCK_DATA, TRACING_DATA = 3, 8, 11, 12, 29, 1
_ATTR_BYTES = 112

SWITCH_FORMAT = """name: sched_switch
ID: 316
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: "prev_state=%s%s", __print_flags(REC->prev_state, "|", { 0x0001, "S" }, { 0x0002, "D" }, { 0x0080, "I" })
"""
OPEN_FORMAT = """name: file_open
ID: 400
format:
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;

\tfield:__data_loc char[] path;\toffset:8;\tsize:4;\tsigned:0;
\tfield:unsigned long where;\toffset:16;\tsize:8;\tsigned:0;
\tfield:u8 key[3];\toffset:24;\tsize:3;\tsigned:0;

print fmt: "%s", __get_str(path)
"""


@dataclass
class Maker:
    """Collects records and features, and writes the file.

    Attributes:
        order: "<" or ">", as in `struct`.
        sample_types: of each event.
    """

    order: str = "<"
    sample_types: tuple[int, ...] = (IP | TID | TIME | CPU | PERIOD | IDENTIFIER,)
    types: tuple[tuple[int, int], ...] = ((1, 0),)
    read_format: int = 0
    clockid: int | None = 1
    records: list[bytes] = field(default_factory=list)
    features: dict[int, bytes] = field(default_factory=dict)

    def pack(self, code: str, *values: int) -> bytes:
        return struct.pack(self.order + code, *values)

    def attr(self, number: int) -> bytes:
        flags = 1 << SAMPLE_ID_ALL | (0 if self.clockid is None else 1 << USE_CLOCKID)
        if self.order == ">":  # bit fields begin at the highest bit there
            flags = int(f"{flags:064b}"[::-1], 2)
        kind, config = self.types[number]
        attr = self.pack("IIQQQQQ", kind, _ATTR_BYTES, config, 1000, self.sample_types[number], self.read_format, flags)
        attr = attr.ljust(92, b"\0") + self.pack("i", self.clockid or 0)
        return attr.ljust(_ATTR_BYTES, b"\0")

    def record(self, kind: int, body: bytes, misc: int = USER_MODE) -> None:
        self.records.append(self.pack("IHH", kind, misc, 8 + len(body)) + body)

    def trailer(self, ts: int, pid: int = 7, tid: int = 7, cpu: int = 0, event: int = 0) -> bytes:
        kind, parts = self.sample_types[event], b""
        parts += self.pack("ii", pid, tid) if kind & TID else b""
        parts += self.pack("Q", ts) if kind & TIME else b""
        parts += self.pack("Q", self.id_of(event)) if kind & ID else b""
        parts += self.pack("Q", 1) if kind & STREAM_ID else b""
        parts += self.pack("iI", cpu, 0) if kind & CPU else b""
        return parts + (self.pack("Q", self.id_of(event)) if kind & IDENTIFIER else b"")

    def id_of(self, event: int) -> int:
        return 100 + event

    def sample(
        self,
        ts: int,
        ip: int,
        *,
        pid: int = 7,
        tid: int = 7,
        cpu: int = 0,
        period: int = 1000,
        event: int = 0,
        chain: tuple[int, ...] = (),
        raw: bytes = b"",
        reading: bytes = b"",
        misc: int = USER_MODE,
    ) -> None:
        kind = self.sample_types[event]
        parts = self.pack("Q", self.id_of(event)) if kind & IDENTIFIER else b""
        parts += self.pack("Q", ip) if kind & IP else b""
        parts += self.pack("ii", pid, tid) if kind & TID else b""
        parts += self.pack("Q", ts) if kind & TIME else b""
        parts += self.pack("Q", 0xADD4) if kind & ADDR else b""
        parts += self.pack("Q", self.id_of(event)) if kind & ID else b""
        parts += self.pack("Q", 1) if kind & STREAM_ID else b""
        parts += self.pack("iI", cpu, 0) if kind & CPU else b""
        parts += self.pack("Q", period) if kind & PERIOD else b""
        parts += reading
        parts += self.pack(f"{1 + len(chain)}Q", len(chain), *chain) if kind & CALLCHAIN else b""
        parts += self.pack("I", len(raw)) + raw if kind & RAW else b""
        self.record(SAMPLE, parts, misc)

    def comm(self, ts: int, name: str, pid: int = 7, tid: int = 7, misc: int = USER_MODE) -> None:
        self.record(COMM, self.pack("ii", pid, tid) + _padded(name) + self.trailer(ts, pid, tid), misc)

    def mmap(self, ts: int, start: int, size: int, offset: int, name: str, pid: int = 7, mode: int = USER_MODE) -> None:
        body = self.pack("iiQQQ", pid, pid, start, size, offset) + _padded(name)
        self.record(MMAP, body + self.trailer(ts, pid, pid), mode)

    def mmap2(self, ts: int, start: int, size: int, offset: int, name: str, pid: int = 7) -> None:
        body = self.pack("iiQQQIIQQII", pid, pid, start, size, offset, 8, 1, 99, 0, 5, 2) + _padded(name)
        self.record(MMAP2, body + self.trailer(ts, pid, pid))

    def fork(self, ts: int, pid: int, parent: int, tid: int, parent_tid: int, kind: int = FORK) -> None:
        body = self.pack("4iQ", pid, parent, tid, parent_tid, ts)
        self.record(kind, body + self.trailer(ts, parent, parent_tid))

    def switch(self, ts: int, out: bool, preempted: bool = False, tid: int = 7) -> None:
        misc = (MISC_SWITCH_OUT if out else 0) | (MISC_PREEMPTED if preempted else 0)
        self.record(SWITCH, self.trailer(ts, 7, tid), misc)

    def text(self, text: str) -> bytes:
        padded = _padded(text)
        return self.pack("I", len(padded)) + padded

    def name_events(self, *names: str) -> None:
        body = self.pack("II", len(names), _ATTR_BYTES)
        for number, name in enumerate(names):
            body += self.attr(number) + self.pack("I", 1) + self.text(name) + self.pack("Q", self.id_of(number))
        self.features[EVENT_DESC] = body

    def tracing_data(self, *formats: tuple[str, str]) -> None:
        body = b"\x17\x08\x44tracing0.6\0" + (b"\1" if self.order == ">" else b"\0") + b"\x08" + self.pack("I", 4096)
        body += b"header_page\0" + self.pack("Q", 0) + b"header_event\0" + self.pack("Q", 0) + self.pack("I", 0)
        body += self.pack("I", len(formats))
        for system, text in formats:
            body += system.encode() + b"\0" + self.pack("I", 1) + self.pack("Q", len(text)) + text.encode()
        self.features[TRACING_DATA] = body + self.pack("IIQ", 0, 0, 0)

    def clock_pair(self, wall: int, here: int) -> None:
        self.features[CLOCK_DATA] = self.pack("IIQQ", 1, self.clockid or 0, wall, here)

    def switch_raw(self, prev: tuple[str, int, int, int], following: tuple[str, int, int]) -> bytes:
        comm, tid, prio, state = prev
        raw = self.pack("HBBi", 316, 0, 0, tid) + comm.encode().ljust(16, b"\0") + self.pack("iiq", tid, prio, state)
        return raw + following[0].encode().ljust(16, b"\0") + self.pack("ii", *following[1:])

    def open_raw(self, path: str, where: int) -> bytes:
        located = self.pack("I", (len(path) + 1) << 16 | 32)
        head = self.pack("HBBi", 400, 0, 0, 7) + located + b"\0" * 4 + self.pack("Q", where) + b"\x01\x02\xff"
        return head.ljust(32, b"\0") + path.encode() + b"\0"

    def data(self) -> bytes:
        """The file."""
        count = len(self.sample_types)
        entry = _ATTR_BYTES + 16
        attrs_at = 104 + 8 * count
        data_at = attrs_at + entry * count
        records = b"".join(self.records)
        ids = self.pack(f"{count}Q", *map(self.id_of, range(count)))
        attrs = b"".join(self.attr(i) + self.pack("QQ", 104 + 8 * i, 8) for i in range(count))
        bitmap = sum(1 << number for number in self.features)
        at = data_at + len(records) + 16 * len(self.features)
        table, bodies = b"", b""
        for _, body in sorted(self.features.items()):
            table += self.pack("QQ", at + len(bodies), len(body))
            bodies += body
        magic = b"PERFILE2" if self.order == "<" else b"2ELIFREP"
        header = (
            magic
            + self.pack("QQ", 104, entry)
            + self.pack("QQQQQQ", attrs_at, entry * count, data_at, len(records), 0, 0)
        )
        header += self.pack("4Q", *(bitmap >> 64 * word & (1 << 64) - 1 for word in range(4)))
        return header + ids + attrs + records + table + bodies


def _padded(text: str) -> bytes:
    raw = text.encode() + b"\0"
    return raw.ljust((len(raw) + 7) // 8 * 8, b"\0")


def oddities(order: str) -> bytes:
    """A recording with one of each: three events, both kinds of tracepoints, losses, a record of a later version."""
    base = IP | TID | TIME | CPU | IDENTIFIER
    maker = Maker(order, (base | PERIOD | CALLCHAIN, base | RAW, base | RAW), ((0, 0), (2, 316), (2, 400)))
    maker.name_events("cycles:u", "sched:sched_switch", "fs:file_open")
    maker.tracing_data(("sched", SWITCH_FORMAT), ("fs", OPEN_FORMAT))
    maker.features[HOSTNAME] = maker.text("bigiron")
    maker.features[CMDLINE] = maker.pack("I", 2) + maker.text("perf") + maker.text("record")
    maker.clock_pair(1_795_245_452_000_000_000, 3_000_000_000)
    maker.mmap(0, 0xFFFFFFFF81000000, 0x1000000, 0, "[kernel.kallsyms]_text", pid=-1, mode=KERNEL_MODE)
    maker.mmap(0, 0xFFFFFFFFC0000000, 0x4000, 0, "/lib/modules/6.1/kernel/fs/ext4/ext4.ko", pid=-1, mode=KERNEL_MODE)
    maker.comm(0, "shell")
    maker.comm(1_000, "app", misc=USER_MODE | MISC_EXEC)
    maker.mmap2(1_100, 0x400000, 0x10000, 0x1000, "/opt/app/bin/app")
    maker.mmap2(1_200, 0x404000, 0x1000, 0x0, "/opt/app/lib/libover.so")  # covers a part of the one before
    kernel_chain = (CONTEXT_KERNEL, 0xFFFFFFFF81000010, 0xFFFFFFFFC0000123, CONTEXT_USER, 0x400010, 0x404020, 0x9)
    maker.sample(5_000, 0xFFFFFFFF81000010, chain=kernel_chain, misc=KERNEL_MODE, period=12345)
    maker.sample(4_000, 0x405008, chain=(CONTEXT_USER, 0x405008))  # from another CPU: earlier than the one before
    maker.sample(5_500, 0x400999, chain=())
    maker.fork(6_000, 8, 7, 8, 7)
    maker.sample(6_500, 0x400020, pid=8, tid=8, chain=(CONTEXT_USER, 0x400020), cpu=1)
    maker.comm(6_600, "kid \u00e9", pid=8, tid=8)
    maker.sample(6_700, 0x400020, pid=8, tid=8, chain=(CONTEXT_USER, 0x400020), cpu=1, period=2**64 - 1)
    maker.sample(7_000, 1, event=1, raw=maker.switch_raw(("app", 7, 120, 1), ("kid", 8, 120)), misc=KERNEL_MODE)
    maker.sample(8_000, 1, pid=8, tid=8, event=1, raw=maker.switch_raw(("kid", 8, 120, 256), ("app", 7, 120)))
    maker.sample(8_500, 1, event=2, raw=maker.open_raw("/etc/h\u00f6sts", 2**64 - 1))
    maker.sample(8_600, 1, event=2, raw=b"\x01")  # cut by the kernel
    maker.record(LOST, maker.pack("QQ", 100, 12) + maker.trailer(9_000))
    maker.record(LOST_SAMPLES, maker.pack("Q", 3) + maker.trailer(9_100))
    maker.record(THROTTLE, maker.pack("QQQ", 9_200, 100, 1) + maker.trailer(9_200))
    maker.record(
        KSYMBOL, maker.pack("QIHH", 0xFFFFFFFFC0005000, 0x100, 1, 0) + _padded("bpf_prog_1") + maker.trailer(9_300)
    )
    maker.sample(9_400, 0xFFFFFFFFC0005010, chain=(CONTEXT_KERNEL, 0xFFFFFFFFC0005010), misc=KERNEL_MODE)
    maker.record(39, b"\0" * 16 + maker.trailer(9_500))  # a later version of the kernel
    maker.record(FINISHED_ROUND, b"")
    maker.record(200, b"\0" * 8)  # a later version of perf
    maker.fork(9_900, 8, 7, 8, 7, kind=EXIT)
    return maker.data()
