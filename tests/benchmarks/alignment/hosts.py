"""Simulated jobs."""
