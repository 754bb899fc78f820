"""OpenVINO: tables of performance counters."""
