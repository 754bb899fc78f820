"""Runs of all commands over damaged golden inputs; `python -m tests.fuzz --help` says how."""
