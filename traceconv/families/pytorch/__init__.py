"""PyTorch: Kineto traces and printed tables of the profiler."""
