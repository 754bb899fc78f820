"""Chrome Trace JSON: the reader that its dialects share, and the writer."""
