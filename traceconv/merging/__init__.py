"""Merge aligned traces into one: attach tables of sums to their recording, and join shared processes and threads."""
