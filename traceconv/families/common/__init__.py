"""What importers of several families share: numbers, tables, idle lines, demangling, protobuf."""
