"""The trace in memory: tables, clocks, times, diagnostics, and the builder that importers fill."""
