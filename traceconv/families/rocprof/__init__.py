"""What rocprofv3 and rocprof of AMD ROCm write."""
