
Ã/device:GPU:0IStream #22(NCCL)è"
€‰zàÆ["€’ôÀ„="8"€›îÀ„="8XLA Opsè"	€‰zN"]YIncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)*8*8"IEAncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"@<8ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"KG/%all-reduce-start.1 = f32[8] all-reduce-start()"all-reduce-start.1*
hlo_op*all-reduce-start.1*
hlo_module*	jit_train*all-gather-start.2*"collective-permute-start.3
eTask Environment*profile_start_time*profile_stop_time2€€ÌŸÂğÖë2€­®¤ÂğÖë"node7