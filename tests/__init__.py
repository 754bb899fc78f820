"""The tests of traceconv, and tools for its developers."""

import os

# An error of an importer shall end a test, and not pass for a refusal of the input.
os.environ.setdefault("TRACECONV_DEBUG", "1")
