// Copies and kernels on three streams, unified memory, NVTX ranges and a CUDA graph: a small program to record.
//
//     nvcc -O2 -lineinfo -o streams streams.cu
//     nsys profile -t cuda,nvtx,osrt -s none --cpuctxsw=none -o report streams
//     nsys export -t sqlite -o report.sqlite report.nsys-rep
//     ncu --csv --log-file kernels.csv --launch-count 4 streams
//
// A real recording of golden/nsight-systems and golden/nsight-compute was made with it.
#include <cstdio>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

__global__ void scale(float *x, float a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int k = 0; k < 200; k++) x[i] = x[i] * a + 0.5f;
}

template <typename T, int N>
__global__ void reduce_block(const T *x, T *out, int n) {
  __shared__ T s[N];
  int t = threadIdx.x;
  T v = 0;
  for (int i = blockIdx.x * N + t; i < n; i += gridDim.x * N) v += x[i];
  s[t] = v;
  __syncthreads();
  for (int h = N / 2; h; h /= 2) {
    if (t < h) s[t] += s[t + h];
    __syncthreads();
  }
  if (!t) out[blockIdx.x] = s[0];
}

int main() {
  const int n = 1 << 20;
  float *host, *device[3], *managed, *out;
  cudaStream_t stream[3];
  cudaEvent_t event;
  cudaMallocHost(&host, n * 4);
  cudaMallocManaged(&managed, n * 4);
  cudaMalloc(&out, 4096);
  cudaEventCreate(&event);
  for (int k = 0; k < 3; k++) {
    cudaMalloc(&device[k], n * 4);
    cudaStreamCreate(&stream[k]);
  }
  for (int i = 0; i < n; i++) {
    host[i] = i;
    managed[i] = 1;
  }
  nvtxRangePushA("all rounds");
  for (int r = 0; r < 5; r++) {
    char name[32];
    snprintf(name, 32, "round %d", r);
    nvtxRangePushA(name);
    for (int k = 0; k < 3; k++) {
      cudaMemcpyAsync(device[k], host, n * 4, cudaMemcpyHostToDevice, stream[k]);
      scale<<<n / 256, 256, 0, stream[k]>>>(device[k], 0.5f, n);
      reduce_block<float, 256><<<64, 256, 0, stream[k]>>>(device[k], out, n);
      cudaMemcpyAsync(host, device[k], n * 4, cudaMemcpyDeviceToHost, stream[k]);
    }
    cudaEventRecord(event, stream[0]);
    cudaStreamWaitEvent(stream[1], event);
    cudaMemsetAsync(device[2], 0, n * 4, stream[2]);
    scale<<<n / 256, 256>>>(managed, 0.5f, n);
    cudaDeviceSynchronize();
    managed[0] = 2;
    nvtxRangePop();
  }
  nvtxRangePop();
  cudaGraph_t graph;
  cudaGraphExec_t launched;
  cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeGlobal);
  scale<<<n / 256, 256, 0, stream[0]>>>(device[0], 0.5f, n);
  cudaMemcpyAsync(device[1], device[0], n * 4, cudaMemcpyDeviceToDevice, stream[0]);
  scale<<<n / 256, 256, 0, stream[0]>>>(device[1], 0.5f, n);
  cudaStreamEndCapture(stream[0], &graph);
  cudaGraphInstantiate(&launched, graph, 0);
  for (int i = 0; i < 3; i++) cudaGraphLaunch(launched, stream[0]);
  cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  return 0;
}
