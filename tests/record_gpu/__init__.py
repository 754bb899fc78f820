"""Programs that record what PyTorch writes on a GPU, for the golden cases and the benchmarks of alignment.

The recordings in this repository were made on 2026-11-26 by programs that do the same as these, on a virtual machine
with 16 cores and one NVIDIA H100 80GB HBM3 (driver 580.159.04, CUDA 13.0), with torch 2.11.0+cu130, NCCL 2.28.9 and
Python 3.12. `cut.py` made the small ones.
"""
