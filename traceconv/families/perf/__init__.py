"""Linux perf: recordings, printed samples, counts and reports."""
