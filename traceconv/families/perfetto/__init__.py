"""Perfetto protobuf traces: the reader and the writer."""
