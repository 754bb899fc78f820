"""The tests of traceconv, and tools for its developers."""

import os

# An error of an importer shall end a test, and not pass for a refusal of the input.
os.environ.setdefault("TRACECONV_DEBUG", "1")

#: After so many seconds, a process or a thread that a test waits for hangs: on one core, beside forty other processes,
#: what takes 20 s of CPU time still ends before. pytest ends a test that hangs otherwise after twice as long.
HANG_S = 1800
#: A test of growth fails above so many seconds of CPU time. What is linear takes a few on a free core, and what is not
#: takes minutes.
GROWTH_S = 60
