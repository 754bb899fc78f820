"""Tests of the package that relates clocks."""
