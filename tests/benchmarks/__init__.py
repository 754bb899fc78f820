"""How fast and how small conversion is, on generated traces; run with `python -m tests.benchmarks`."""
