"""NVIDIA Nsight: databases of Nsight Systems, tables of Nsight Compute."""
