"""Which kernels exchange data between ranks, by the names that public traces and sources give them."""

from __future__ import annotations

import re

import pytest

from traceconv.model.marks import COMMUNICATION

EXCHANGES = [
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_bf16",
    "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC",
    "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*, unsigned long)",
    "void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
    "void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(c10::BFloat16**)",
    "one_shot_all_reduce_kernel_optimized",
    "void inkling_two_shot_all_reduce_kernel<__nv_bfloat16, 8u>(void* const*, unsigned int, unsigned int)",
    "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)",
    "void sglang::cross_device_reduce_2stage<__half, 8>(sglang::RankData*, sglang::RankSignals)",
    "void aiter::cross_device_reduce_2stage<__hip_bfloat16, 8>(aiter::RankData*)",
    "aiter::allreduce_fusion_kernel_1stage",
    "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<__nv_bfloat16, 8, false>()",
    "moefinalize_allreduce_fusion_kernel_oneshot_lamport",
    "quickreduce::allreduce_prototype_twoshot",
    "userbuffers_fp16_sum_inplace_gpu_rw_ag",
    "kuserbuffers_pushsend",
    "mscclKernel_Sum_half_LL_false(ncclDevComm*, mscclAlgo*, mscclWork*)",
    "deep_ep::internode_ll::combine",
    "c10d::symmetric_memory::wait_signal_kernel(unsigned int**, int, int, int, int, unsigned long)",
    "c10d::symmetric_memory::multimem_barrier_kernel(unsigned int*, unsigned int*, int, int, int, unsigned long)",
    "void c10d::intra_node_comm::hybridCubeMeshAllReduceKernel<true>(c10::BFloat16*, unsigned long)",
    "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)",
    "void rdxn_on_stream_kernel<float, (rdxn_ops)4>(int, float*, float const*, unsigned long)",
]
COMPUTES = [
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>>>()",
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::TensorListMetadata<4>>()",
    "void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<float>>(float*)",
    "void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>>()",
    "void splitKreduce_kernel<32, 16, int, float, __half, float, __half>()",
    "nvjet_tst_64x8_64x16_2x4_h_bz_TNT",
    "void cutlass::reduction::kernel::ReduceSplitK<cutlass::MatrixShape<4, 128>>()",
    "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long)",
    "void at::native::_scatter_gather_elementwise_kernel<128, 8>()",
    "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0",
    "void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)",
    "triton_poi_fused_add_all_reduce_4",
    "_layer_norm_fwd_1pass_kernel",
    "void flash::flash_fwd_splitkv_combine_kernel<>()",
    "void c10d::checkForNaN<float>(float*, unsigned long)",
    "void c10d::cuda::detail::async_input_mm_out<cutlass::gemm::GemmShape<1>>()",
]


@pytest.mark.parametrize("name", EXCHANGES)
def test_exchange(name: str) -> None:
    assert re.search(COMMUNICATION, name)


@pytest.mark.parametrize("name", COMPUTES)
def test_computation(name: str) -> None:
    assert not re.search(COMMUNICATION, name)
