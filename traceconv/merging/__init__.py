"""Merging: traces that are aligned become one trace, tables find their recording, processes that are one are joined."""
