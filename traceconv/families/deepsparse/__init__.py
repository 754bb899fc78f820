"""DeepSparse: logs and reports of the engine."""
