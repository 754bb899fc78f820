"""Run eleven PyTorch kernels inside NVTX ranges, to be recorded by Nsight Compute or Nsight Systems.

ncu --target-processes all --nvtx --set basic -o kernels python kernels.py
ncu -i kernels.ncu-rep --csv --page raw > raw.csv
"""

import torch

left, right = (torch.randn(256, 256, device="cuda") for _ in range(2))
torch.cuda.nvtx.range_push("outer")
for i in range(2):
    torch.cuda.nvtx.range_push(f"iter {i}")
    product = torch.softmax(torch.relu(left @ right), 1)
    torch.cuda.nvtx.range_pop()
torch.cuda.nvtx.range_pop()
with torch.cuda.stream(torch.cuda.Stream()):
    total = product.sum()
torch.cuda.synchronize()
print(float(total))
