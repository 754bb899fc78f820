"""Apache TVM: debugger dumps, profiler tables and graphs."""
