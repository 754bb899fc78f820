"""Helpers of importers of several families: numbers, tables, skipped lines, demangling, protobuf."""
