"""Logs whose lines bear a time."""
