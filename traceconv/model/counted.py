"""What is counted, with the words for one of it and for several: events, files, and what becomes of lines and rows.

A count is never shown with a word whose singular is guessed: whoever counts something new adds it here.
"""

from __future__ import annotations

from traceconv.io.shown import Counted

# -- units of inputs and outputs

LINES = Counted("line", "lines")
ROWS = Counted("row", "rows")
EVENTS = Counted("event", "events")
RECORDS = Counted("record", "records")
CALLS = Counted("call", "calls")
NODES = Counted("node", "nodes")
TENSORS = Counted("tensor", "tensors")
LAYERS = Counted("layer", "layers")
OBJECTS = Counted("object", "objects")
SAMPLES = Counted("sample", "samples")
PACKETS = Counted("packet", "packets")
ENTRIES = Counted("entry", "entries")
READINGS = Counted("reading", "readings")
SLICES = Counted("slice", "slices")
INSTANTS = Counted("instant", "instants")
COUNTER_VALUES = Counted("counter value", "counter values")
FLOWS = Counted("flow", "flows")
LOG_ENTRIES = Counted("log entry", "log entries")
TRACKS = Counted("track", "tracks")
PRIMITIVES = Counted("primitive", "primitives")
NUMBERS = Counted("number", "numbers")
VALUES = Counted("value", "values")
FILES = Counted("file", "files")
RECORDINGS = Counted("recording", "recordings")
TABLES = Counted("table", "tables")
MORE_ROWS = Counted("more row", "more rows")
PROCESSES = Counted("process", "processes")
THREADS = Counted("thread", "threads")
COUNTERS = Counted("counter", "counters")
OTHERS = Counted("other", "others")
ASYNC_SLICES = Counted("async slice", "async slices")
STATES = Counted("state", "states")
LOGS = Counted("log", "logs")
SEQUENCES = Counted("sequence", "sequences")

# -- what became of parts of an input: the keys of its `Balance`

METADATA = Counted("metadata", "metadata")
JOINED_ENDS = Counted("end joined to its start", "ends joined to their start")
HEADINGS = Counted("heading", "headings")
TABLE_HEADINGS = Counted("heading of tables", "headings of tables")
KEPT_HEADINGS = Counted("heading kept as metadata", "headings kept as metadata")
KEPT_LINES = Counted("line kept as metadata", "lines kept as metadata")
UNMARKED_LINES = Counted("line without a oneDNN marker", "lines without a oneDNN marker")
BLANK_LINES = Counted("blank line", "blank lines")
EMPTY_LINES = Counted("empty line", "empty lines")
ROWS_OF_KERNELS = Counted("row joined to its kernel", "rows joined to their kernel")
PROPERTY_ROWS = Counted("row of names and properties", "rows of names and properties")
MESSAGES_OF_OTHER_CLOCKS = Counted(
    "row of messages with a time of another clock, kept as metadata",
    "rows of messages with a time of another clock, kept as metadata",
)
FIRST_TOTALS = Counted("first row of a running total", "first rows of running totals")
MEASUREMENT_LINES = Counted("measurement line joined to the table", "measurement lines joined to the table")
REPEATED_ROWS = Counted("row that repeats one of the first run", "rows that repeat those of the first run")
LINES_OUTSIDE = Counted("line outside of tables", "lines outside of tables")
TABLE_LINES = Counted("table line without values", "table lines without values")
CONFIGURATION_LINES = Counted(
    "line of the configuration kept as metadata", "lines of the configuration kept as metadata"
)
TOTAL_ROWS = Counted("total row kept as metadata", "total rows kept as metadata")
SINGLE_MEASUREMENTS = Counted("single measurement joined to its op", "single measurements joined to their op")
OUTPUT_ROWS = Counted("row of a further output of a node", "rows of further outputs of a node")
COUNTERS_OF_KERNELS = Counted("counter joined to its kernel", "counters joined to their kernel")
FURTHER_COUNTERS = Counted("further counter of a kernel", "further counters of a kernel")
INFERENCE_COUNTS = Counted("count of inferences", "counts of inferences")
CHECKED_TOTALS = Counted("total, checked against the rows", "totals, checked against the rows")
READINGS_BY_TWO_NAMES = Counted("reading of one clock by two names", "readings of one clock by two names")
KEPT_READINGS = Counted("reading kept as clock snapshot", "readings kept as clock snapshots")
TITLES = Counted("title or message", "titles and messages")
HEADER_ROWS = Counted("header row", "header rows")
PROGRAM_LINES = Counted("line of the program", "lines of the program")
DESCRIBING_ROWS = Counted(
    "row that describes a device, context, stream or thread",
    "rows that describe devices, contexts, streams and threads",
)
FURTHER_LINES = Counted(
    "line without a time, in the entry that it belongs to", "lines without a time, in the entry that they belong to"
)
DUMPS_AND_MARKS = Counted("memory dump or clock mark kept as metadata", "memory dumps and clock marks kept as metadata")
STACK_LINES = Counted("line of a call stack", "lines of call stacks")
FOOTERS = Counted("footer kept as metadata", "footers kept as metadata")
JSON_LINES = Counted("line of JSON around the numbers", "lines of JSON around the numbers")
OPERATOR_COPIES = Counted("copy of an operator dropped", "copies of operators dropped")
REPEATED_VALUES = Counted("repeated counter value", "repeated counter values")
RUN_LINES = Counted("heading or total of the run", "headings and totals of the run")
RUN_COUNTS = Counted("count of the whole run, kept as its arg", "counts of the whole run, kept as its args")
FURTHER_METRICS = Counted("further metric of a count", "further metrics of counts")
UNSUPPORTED_EVENTS = Counted("event not supported, kept as an arg", "events not supported, kept as args")
KEPT_HEADER_LINES = Counted(
    "header line kept as metadata, or also as a row of a table",
    "header lines kept as metadata, some also as rows of a table",
)
EARLY_RECORDS = Counted(
    "record made up by perf before its first event (time 0)", "records made up by perf before its first event (time 0)"
)
STACK_FRAMES = Counted("frame of call stacks", "frames of call stacks")
STACK_ENDS = Counted("end of call stacks", "ends of call stacks")
HEADER_LINES = Counted("header line kept as metadata", "header lines kept as metadata")
RECORDS_WITHOUT_PLACE = Counted(
    "record without anything to draw (tables of ids and CPUs, marks of perf)",
    "records without anything to draw (tables of ids and CPUs, marks of perf)",
)
RECORDS_FROM_BEFORE = Counted(
    "record of processes that ran before the recording (no time)",
    "records of processes that ran before the recording (no time)",
)
UNPACKED_RECORDS = Counted("compressed record unpacked", "compressed records unpacked")
MAPPED_FILES = Counted("mapped file (names of frames)", "mapped files (names of frames)")
KERNEL_SYMBOLS = Counted("symbol that the kernel added", "symbols that the kernel added")
SWITCHES_TWICE = Counted(
    "context switch that sched:sched_switch has, too", "context switches that sched:sched_switch has, too"
)
HEADER_PARTS = Counted("part of the header", "parts of the header")
MESSAGE_LINES = Counted("line of the message before it", "lines of the message before them")
DECLARATIONS = Counted("declaration of a track, clock or text", "declarations of tracks, clocks and texts")
UNPACKED_PACKETS = Counted("compressed packet unpacked", "compressed packets unpacked")
STATE_ENDS = Counted("end of a state", "ends of states")
CONTINUED_ROWS = Counted("line that goes on with a row", "lines that go on with a row")
SUMMARY_LINES = Counted("line of a summary", "lines of a summary")
UNREAD_LINES = Counted("line of a writer that could not be read", "lines of a writer that could not be read")
OTHER_LINES = Counted("line that is not of OpenVINO", "lines that are not of OpenVINO")
TRACEPOINT_FIELDS = Counted("field of tracepoints", "fields of tracepoints")
