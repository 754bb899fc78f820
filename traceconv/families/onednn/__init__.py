"""oneDNN: the verbose log."""
