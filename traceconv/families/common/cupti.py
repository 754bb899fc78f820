"""The enumerations of CUPTI, for the databases that store their numbers: nvprof and Nsight Systems.

The names are those that the tools print. Source: `cupti_activity.h` (CUDA 11.8 to 13.5). A number that is missing here
is newer: `named` shows it as "kind 17", so that nothing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from traceconv.model.numbers import is_digits


def _numbered(*names: str) -> dict[int, str]:
    return dict(enumerate(names))


#: CUpti_ActivityMemcpyKind; from 11 on only in Nsight Systems: copies of unified memory.
MEMCPY_KIND: Final = _numbered(
    *("unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"),
    *("unified HtoD", "unified DtoH", "unified DtoD"),
)

#: CUpti_ActivityMemoryKind: source and destination of copies, memory that is set, allocations in nvprof.
MEMORY_KIND: Final = _numbered(
    "unknown", "pageable", "pinned", "device", "array", "managed", "device static", "managed static"
)

#: CUpti_ActivityUnifiedMemoryMigrationCause.
MIGRATION_CAUSE: Final = _numbered("unknown", "user", "coherence", "prefetch", "eviction", "access counters")

#: CUpti_ActivityUnifiedMemoryAccessType, of page faults.
ACCESS_TYPE: Final = _numbered("unknown", "read", "write", "atomic", "prefetch")

#: CUpti_ActivitySynchronizationType.
SYNCHRONIZATION: Final = _numbered(
    "unknown", "event synchronize", "stream wait event", "stream synchronize", "context synchronize"
)

#: CUpti_ActivityOverheadKind.
OVERHEAD: Final = {
    0: "unknown",
    1: "driver compiler",
    1 << 16: "CUPTI buffer flush",
    2 << 16: "CUPTI instrumentation",
    3 << 16: "CUPTI resource",
    4 << 16: "runtime triggered module loading",
    5 << 16: "lazy function loading",
    6 << 16: "command buffer full",
    7 << 16: "activity buffer request",
    8 << 16: "UVM activity init",
}

#: CUpti_ActivityLaunchType, of kernels.
LAUNCH_TYPE: Final = _numbered("regular", "cooperative", "cooperative multi-device")

#: CUpti_ActivityStreamFlag.
STREAM_FLAG: Final = _numbered("unknown", "default", "non-blocking", "null stream")

#: CUpti_ActivityComputeApiKind, of contexts.
COMPUTE_API: Final = _numbered("unknown", "CUDA", "CUDA MPS")

#: Categories of the slices and flows that both databases hold: the same words, so that a filter works on either.
KERNEL: Final = "kernel"
MEMCPY: Final = "memcpy"
MEMSET: Final = "memset"
SYNC: Final = "cuda_sync"
RUNTIME_API: Final = "cuda_runtime"
DRIVER_API: Final = "cuda_driver"
LAUNCH_FLOW: Final = "launch"

#: The metrics of kernels that are averages, extremes, shares and ratios, so no counts: a pattern of their names.
NO_COUNTS: Final = r"\w+\.(?:avg|max|min|pct|ratio|sum\.).*"

#: The arg with the throughput of a copy, in 10**9 bytes per second.
THROUGHPUT: Final = "throughput_gb_per_s"


def named(names: Mapping[int, str], number: Any) -> str:
    """Return the name of a number of an enumeration; "kind 17" for an unknown number, "" for None."""
    if number is None:
        return ""
    return names.get(number) or f"kind {number}"


def throughput_gb_per_s(size: int, dur_ns: int) -> float | None:
    """Return the throughput in 10**9 bytes per second, rounded to four decimals; None for a duration of 0."""
    return round(size / dur_ns, 4) if dur_ns > 0 and size >= 0 else None


def display_api_name(name: str) -> str:
    """Return the name of a call in the source: cudaMemcpyAsync_v3020 -> cudaMemcpyAsync.

    The suffix is the CUDA version of the signature. `_ptsz` and `_ptds` (per-thread default stream) and the `_v2` of
    driver calls are part of the name, and stay.
    """
    head, mark, version = name.rpartition("_v")
    return head if mark and len(version) >= 4 and is_digits(version) else name


def _calls(prefix: str, text: str) -> dict[int, str]:
    """Return names by number: they count from 1, and a number in the text is that of the name after it."""
    names, number = {}, 1
    for word in text.split():
        if word.isdigit():
            number = int(word)
        else:
            names[number] = prefix + word
            number += 1
    return names


#: cuda*: what programs and libraries call, by the callback ids (cbid) under which nvprof stores them. Source: the
#: constants of `cupti_runtime_cbid.h` and `cupti_driver_cbid.h` of CUDA 11.8 and 12.9, without the version of the
#: signature (`_v3020`, `_v2`). An id never changes its function from one release to the next.
RUNTIME_CALLS: Final = _calls(
    "cuda",
    """
    DriverGetVersion RuntimeGetVersion GetDeviceCount GetDeviceProperties ChooseDevice GetChannelDesc CreateChannelDesc
    ConfigureCall SetupArgument GetLastError PeekAtLastError GetErrorString Launch FuncSetCacheConfig FuncGetAttributes
    SetDevice GetDevice SetValidDevices SetDeviceFlags Malloc MallocPitch Free MallocArray FreeArray MallocHost FreeHost
    HostAlloc HostGetDevicePointer HostGetFlags MemGetInfo Memcpy Memcpy2D MemcpyToArray Memcpy2DToArray MemcpyFromArray
    Memcpy2DFromArray MemcpyArrayToArray Memcpy2DArrayToArray MemcpyToSymbol MemcpyFromSymbol MemcpyAsync
    MemcpyToArrayAsync MemcpyFromArrayAsync Memcpy2DAsync Memcpy2DToArrayAsync Memcpy2DFromArrayAsync
    MemcpyToSymbolAsync MemcpyFromSymbolAsync Memset Memset2D MemsetAsync Memset2DAsync GetSymbolAddress GetSymbolSize
    BindTexture BindTexture2D BindTextureToArray UnbindTexture GetTextureAlignmentOffset GetTextureReference
    BindSurfaceToArray GetSurfaceReference GLSetGLDevice GLRegisterBufferObject GLMapBufferObject GLUnmapBufferObject
    GLUnregisterBufferObject GLSetBufferObjectMapFlags GLMapBufferObjectAsync GLUnmapBufferObjectAsync WGLGetDevice
    GraphicsGLRegisterImage GraphicsGLRegisterBuffer GraphicsUnregisterResource GraphicsResourceSetMapFlags
    GraphicsMapResources GraphicsUnmapResources GraphicsResourceGetMappedPointer GraphicsSubResourceGetMappedArray
    VDPAUGetDevice VDPAUSetVDPAUDevice GraphicsVDPAURegisterVideoSurface GraphicsVDPAURegisterOutputSurface
    D3D11GetDevice D3D11GetDevices D3D11SetDirect3DDevice GraphicsD3D11RegisterResource D3D10GetDevice D3D10GetDevices
    D3D10SetDirect3DDevice GraphicsD3D10RegisterResource D3D10RegisterResource D3D10UnregisterResource D3D10MapResources
    D3D10UnmapResources D3D10ResourceSetMapFlags D3D10ResourceGetSurfaceDimensions D3D10ResourceGetMappedArray
    D3D10ResourceGetMappedPointer D3D10ResourceGetMappedSize D3D10ResourceGetMappedPitch D3D9GetDevice D3D9GetDevices
    D3D9SetDirect3DDevice D3D9GetDirect3DDevice GraphicsD3D9RegisterResource D3D9RegisterResource D3D9UnregisterResource
    D3D9MapResources D3D9UnmapResources D3D9ResourceSetMapFlags D3D9ResourceGetSurfaceDimensions
    D3D9ResourceGetMappedArray D3D9ResourceGetMappedPointer D3D9ResourceGetMappedSize D3D9ResourceGetMappedPitch
    D3D9Begin D3D9End D3D9RegisterVertexBuffer D3D9UnregisterVertexBuffer D3D9MapVertexBuffer D3D9UnmapVertexBuffer
    ThreadExit SetDoubleForDevice SetDoubleForHost ThreadSynchronize ThreadGetLimit ThreadSetLimit StreamCreate
    StreamDestroy StreamSynchronize StreamQuery EventCreate EventCreateWithFlags EventRecord EventDestroy
    EventSynchronize EventQuery EventElapsedTime Malloc3D Malloc3DArray Memset3D Memset3DAsync Memcpy3D Memcpy3DAsync
    ThreadSetCacheConfig StreamWaitEvent D3D11GetDirect3DDevice D3D10GetDirect3DDevice ThreadGetCacheConfig
    PointerGetAttributes HostRegister HostUnregister DeviceCanAccessPeer DeviceEnablePeerAccess DeviceDisablePeerAccess
    PeerRegister PeerUnregister PeerGetDevicePointer MemcpyPeer MemcpyPeerAsync Memcpy3DPeer Memcpy3DPeerAsync
    DeviceReset DeviceSynchronize DeviceGetLimit DeviceSetLimit DeviceGetCacheConfig DeviceSetCacheConfig
    ProfilerInitialize ProfilerStart ProfilerStop DeviceGetByPCIBusId DeviceGetPCIBusId GLGetDevices IpcGetEventHandle
    IpcOpenEventHandle IpcGetMemHandle IpcOpenMemHandle IpcCloseMemHandle ArrayGetInfo FuncSetSharedMemConfig
    DeviceGetSharedMemConfig DeviceSetSharedMemConfig CreateTextureObject DestroyTextureObject
    GetTextureObjectResourceDesc GetTextureObjectTextureDesc CreateSurfaceObject DestroySurfaceObject
    GetSurfaceObjectResourceDesc MallocMipmappedArray GetMipmappedArrayLevel FreeMipmappedArray
    BindTextureToMipmappedArray GraphicsResourceGetMappedMipmappedArray StreamAddCallback StreamCreateWithFlags
    GetTextureObjectResourceViewDesc DeviceGetAttribute StreamDestroy StreamCreateWithPriority StreamGetPriority
    StreamGetFlags DeviceGetStreamPriorityRange MallocManaged OccupancyMaxActiveBlocksPerMultiprocessor
    StreamAttachMemAsync GetErrorName OccupancyMaxActiveBlocksPerMultiprocessor LaunchKernel GetDeviceFlags Launch_ptsz
    LaunchKernel_ptsz Memcpy_ptds Memcpy2D_ptds MemcpyToArray_ptds Memcpy2DToArray_ptds MemcpyFromArray_ptds
    Memcpy2DFromArray_ptds MemcpyArrayToArray_ptds Memcpy2DArrayToArray_ptds MemcpyToSymbol_ptds MemcpyFromSymbol_ptds
    MemcpyAsync_ptsz MemcpyToArrayAsync_ptsz MemcpyFromArrayAsync_ptsz Memcpy2DAsync_ptsz Memcpy2DToArrayAsync_ptsz
    Memcpy2DFromArrayAsync_ptsz MemcpyToSymbolAsync_ptsz MemcpyFromSymbolAsync_ptsz Memset_ptds Memset2D_ptds
    MemsetAsync_ptsz Memset2DAsync_ptsz StreamGetPriority_ptsz StreamGetFlags_ptsz StreamSynchronize_ptsz
    StreamQuery_ptsz StreamAttachMemAsync_ptsz EventRecord_ptsz Memset3D_ptds Memset3DAsync_ptsz Memcpy3D_ptds
    Memcpy3DAsync_ptsz StreamWaitEvent_ptsz StreamAddCallback_ptsz Memcpy3DPeer_ptds Memcpy3DPeerAsync_ptsz
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags MemPrefetchAsync MemPrefetchAsync_ptsz MemAdvise
    DeviceGetP2PAttribute GraphicsEGLRegisterImage EGLStreamConsumerConnect EGLStreamConsumerDisconnect
    EGLStreamConsumerAcquireFrame EGLStreamConsumerReleaseFrame EGLStreamProducerConnect EGLStreamProducerDisconnect
    EGLStreamProducerPresentFrame EGLStreamProducerReturnFrame GraphicsResourceGetMappedEglFrame MemRangeGetAttribute
    MemRangeGetAttributes EGLStreamConsumerConnectWithFlags LaunchCooperativeKernel LaunchCooperativeKernel_ptsz
    EventCreateFromEGLSync LaunchCooperativeKernelMultiDevice FuncSetAttribute ImportExternalMemory
    ExternalMemoryGetMappedBuffer ExternalMemoryGetMappedMipmappedArray DestroyExternalMemory ImportExternalSemaphore
    SignalExternalSemaphoresAsync SignalExternalSemaphoresAsync_ptsz WaitExternalSemaphoresAsync
    WaitExternalSemaphoresAsync_ptsz DestroyExternalSemaphore LaunchHostFunc LaunchHostFunc_ptsz GraphCreate
    GraphKernelNodeGetParams GraphKernelNodeSetParams GraphAddKernelNode GraphAddMemcpyNode GraphMemcpyNodeGetParams
    GraphMemcpyNodeSetParams GraphAddMemsetNode GraphMemsetNodeGetParams GraphMemsetNodeSetParams GraphAddHostNode
    GraphHostNodeGetParams GraphAddChildGraphNode GraphChildGraphNodeGetGraph GraphAddEmptyNode GraphClone
    GraphNodeFindInClone GraphNodeGetType GraphGetRootNodes GraphNodeGetDependencies GraphNodeGetDependentNodes
    GraphAddDependencies GraphRemoveDependencies GraphDestroyNode GraphInstantiate GraphLaunch GraphLaunch_ptsz
    GraphExecDestroy GraphDestroy StreamBeginCapture StreamBeginCapture_ptsz StreamIsCapturing StreamIsCapturing_ptsz
    StreamEndCapture StreamEndCapture_ptsz GraphHostNodeSetParams GraphGetNodes GraphGetEdges StreamGetCaptureInfo
    StreamGetCaptureInfo_ptsz GraphExecKernelNodeSetParams ThreadExchangeStreamCaptureMode DeviceGetNvSciSyncAttributes
    OccupancyAvailableDynamicSMemPerBlock StreamSetFlags StreamSetFlags_ptsz GraphExecMemcpyNodeSetParams
    GraphExecMemsetNodeSetParams GraphExecHostNodeSetParams GraphExecUpdate GetFuncBySymbol CtxResetPersistingL2Cache
    GraphKernelNodeCopyAttributes GraphKernelNodeGetAttribute GraphKernelNodeSetAttribute StreamCopyAttributes
    StreamCopyAttributes_ptsz StreamGetAttribute StreamGetAttribute_ptsz StreamSetAttribute StreamSetAttribute_ptsz
    DeviceGetTexture1DLinearMaxWidth GraphUpload GraphUpload_ptsz GraphAddMemcpyNodeToSymbol
    GraphAddMemcpyNodeFromSymbol GraphAddMemcpyNode1D GraphMemcpyNodeSetParamsToSymbol
    GraphMemcpyNodeSetParamsFromSymbol GraphMemcpyNodeSetParams1D GraphExecMemcpyNodeSetParamsToSymbol
    GraphExecMemcpyNodeSetParamsFromSymbol GraphExecMemcpyNodeSetParams1D ArrayGetSparseProperties
    MipmappedArrayGetSparseProperties GraphExecChildGraphNodeSetParams GraphAddEventRecordNode
    GraphEventRecordNodeGetEvent GraphEventRecordNodeSetEvent GraphAddEventWaitNode GraphEventWaitNodeGetEvent
    GraphEventWaitNodeSetEvent GraphExecEventRecordNodeSetEvent GraphExecEventWaitNodeSetEvent EventRecordWithFlags
    EventRecordWithFlags_ptsz DeviceGetDefaultMemPool MallocAsync MallocAsync_ptsz FreeAsync FreeAsync_ptsz
    MemPoolTrimTo MemPoolSetAttribute MemPoolGetAttribute MemPoolSetAccess ArrayGetPlane MemPoolGetAccess MemPoolCreate
    MemPoolDestroy DeviceSetMemPool DeviceGetMemPool MemPoolExportToShareableHandle MemPoolImportFromShareableHandle
    MemPoolExportPointer MemPoolImportPointer MallocFromPoolAsync MallocFromPoolAsync_ptsz
    SignalExternalSemaphoresAsync_v2 SignalExternalSemaphoresAsync_v2_ptsz WaitExternalSemaphoresAsync_v2
    WaitExternalSemaphoresAsync_v2_ptsz GraphAddExternalSemaphoresSignalNode GraphExternalSemaphoresSignalNodeGetParams
    GraphExternalSemaphoresSignalNodeSetParams GraphAddExternalSemaphoresWaitNode
    GraphExternalSemaphoresWaitNodeGetParams GraphExternalSemaphoresWaitNodeSetParams
    GraphExecExternalSemaphoresSignalNodeSetParams GraphExecExternalSemaphoresWaitNodeSetParams
    DeviceFlushGPUDirectRDMAWrites GetDriverEntryPoint GetDriverEntryPoint_ptsz GraphDebugDotPrint
    StreamGetCaptureInfo_v2 StreamGetCaptureInfo_v2_ptsz StreamUpdateCaptureDependencies
    StreamUpdateCaptureDependencies_ptsz UserObjectCreate UserObjectRetain UserObjectRelease GraphRetainUserObject
    GraphReleaseUserObject GraphInstantiateWithFlags GraphAddMemAllocNode GraphMemAllocNodeGetParams GraphAddMemFreeNode
    GraphMemFreeNodeGetParams DeviceGraphMemTrim DeviceGetGraphMemAttribute DeviceSetGraphMemAttribute
    GraphNodeSetEnabled GraphNodeGetEnabled ArrayGetMemoryRequirements MipmappedArrayGetMemoryRequirements
    LaunchKernelExC LaunchKernelExC_ptsz OccupancyMaxPotentialClusterSize OccupancyMaxActiveClusters
    CreateTextureObject_v2 GetTextureObjectTextureDesc_v2 GraphInstantiateWithParams GraphInstantiateWithParams_ptsz
    GraphExecGetFlags GetKernel GetDeviceProperties_v2 StreamGetId StreamGetId_ptsz GraphInstantiate InitDevice
    GraphAddNode GraphNodeSetParams GraphExecNodeSetParams MemAdvise_v2 MemPrefetchAsync_v2 MemPrefetchAsync_v2_ptsz
    FuncGetName StreamBeginCaptureToGraph StreamBeginCaptureToGraph_ptsz GraphConditionalHandleCreate GraphGetEdges_v2
    GraphNodeGetDependencies_v2 GraphNodeGetDependentNodes_v2 GraphAddDependencies_v2 GraphRemoveDependencies_v2
    GraphAddNode_v2 StreamGetCaptureInfo_v3 StreamGetCaptureInfo_v3_ptsz StreamUpdateCaptureDependencies_v2
    StreamUpdateCaptureDependencies_v2_ptsz DeviceRegisterAsyncNotification DeviceUnregisterAsyncNotification
    FuncGetParamInfo GetDriverEntryPointByVersion GetDriverEntryPointByVersion_ptsz LibraryLoadData LibraryLoadFromFile
    LibraryUnload LibraryGetKernel LibraryGetGlobal LibraryGetManaged LibraryGetUnifiedFunction LibraryGetKernelCount
    LibraryEnumerateKernels KernelSetAttributeForDevice StreamGetDevice StreamGetDevice_ptsz MemcpyBatchAsync
    MemcpyBatchAsync_ptsz Memcpy3DBatchAsync Memcpy3DBatchAsync_ptsz EventElapsedTime_v2
    """,
)

#: cu*: what the runtime, and a few programs, call.
DRIVER_CALLS: Final = _calls(
    "cu",
    """
    Init DriverGetVersion DeviceGet DeviceGetCount DeviceGetName DeviceComputeCapability DeviceTotalMem
    DeviceGetProperties DeviceGetAttribute CtxCreate CtxDestroy CtxAttach CtxDetach CtxPushCurrent CtxPopCurrent
    CtxGetDevice CtxSynchronize ModuleLoad ModuleLoadData ModuleLoadDataEx ModuleLoadFatBinary ModuleUnload
    ModuleGetFunction ModuleGetGlobal 64ModuleGetGlobal ModuleGetTexRef MemGetInfo 64MemGetInfo MemAlloc 64MemAlloc
    MemAllocPitch 64MemAllocPitch MemFree 64MemFree MemGetAddressRange 64MemGetAddressRange MemAllocHost MemFreeHost
    MemHostAlloc MemHostGetDevicePointer 64MemHostGetDevicePointer MemHostGetFlags MemcpyHtoD 64MemcpyHtoD MemcpyDtoH
    64MemcpyDtoH MemcpyDtoD 64MemcpyDtoD MemcpyDtoA 64MemcpyDtoA MemcpyAtoD 64MemcpyAtoD MemcpyHtoA MemcpyAtoH
    MemcpyAtoA Memcpy2D Memcpy2DUnaligned Memcpy3D 64Memcpy3D MemcpyHtoDAsync 64MemcpyHtoDAsync MemcpyDtoHAsync
    64MemcpyDtoHAsync MemcpyDtoDAsync 64MemcpyDtoDAsync MemcpyHtoAAsync MemcpyAtoHAsync Memcpy2DAsync Memcpy3DAsync
    64Memcpy3DAsync MemsetD8 64MemsetD8 MemsetD16 64MemsetD16 MemsetD32 64MemsetD32 MemsetD2D8 64MemsetD2D8 MemsetD2D16
    64MemsetD2D16 MemsetD2D32 64MemsetD2D32 FuncSetBlockShape FuncSetSharedSize FuncGetAttribute FuncSetCacheConfig
    ArrayCreate ArrayGetDescriptor ArrayDestroy Array3DCreate Array3DGetDescriptor TexRefCreate TexRefDestroy
    TexRefSetArray TexRefSetAddress 64TexRefSetAddress TexRefSetAddress2D 64TexRefSetAddress2D TexRefSetFormat
    TexRefSetAddressMode TexRefSetFilterMode TexRefSetFlags TexRefGetAddress 64TexRefGetAddress TexRefGetArray
    TexRefGetAddressMode TexRefGetFilterMode TexRefGetFormat TexRefGetFlags ParamSetSize ParamSeti ParamSetf ParamSetv
    ParamSetTexRef Launch LaunchGrid LaunchGridAsync EventCreate EventRecord EventQuery EventSynchronize EventDestroy
    EventElapsedTime StreamCreate StreamQuery StreamSynchronize StreamDestroy GraphicsUnregisterResource
    GraphicsSubResourceGetMappedArray GraphicsResourceGetMappedPointer 64GraphicsResourceGetMappedPointer
    GraphicsResourceSetMapFlags GraphicsMapResources GraphicsUnmapResources GetExportTable CtxSetLimit CtxGetLimit
    D3D10GetDevice D3D10CtxCreate GraphicsD3D10RegisterResource D3D10RegisterResource D3D10UnregisterResource
    D3D10MapResources D3D10UnmapResources D3D10ResourceSetMapFlags D3D10ResourceGetMappedArray
    D3D10ResourceGetMappedPointer D3D10ResourceGetMappedSize D3D10ResourceGetMappedPitch
    D3D10ResourceGetSurfaceDimensions D3D11GetDevice D3D11CtxCreate GraphicsD3D11RegisterResource D3D9GetDevice
    D3D9CtxCreate GraphicsD3D9RegisterResource D3D9GetDirect3DDevice D3D9RegisterResource D3D9UnregisterResource
    D3D9MapResources D3D9UnmapResources D3D9ResourceSetMapFlags D3D9ResourceGetSurfaceDimensions
    D3D9ResourceGetMappedArray D3D9ResourceGetMappedPointer D3D9ResourceGetMappedSize D3D9ResourceGetMappedPitch
    D3D9Begin D3D9End D3D9RegisterVertexBuffer D3D9MapVertexBuffer D3D9UnmapVertexBuffer D3D9UnregisterVertexBuffer
    GLCtxCreate GraphicsGLRegisterBuffer GraphicsGLRegisterImage WGLGetDevice GLInit GLRegisterBufferObject
    GLMapBufferObject GLUnmapBufferObject GLUnregisterBufferObject GLSetBufferObjectMapFlags GLMapBufferObjectAsync
    GLUnmapBufferObjectAsync VDPAUGetDevice VDPAUCtxCreate GraphicsVDPAURegisterVideoSurface
    GraphicsVDPAURegisterOutputSurface ModuleGetSurfRef SurfRefCreate SurfRefDestroy SurfRefSetFormat SurfRefSetArray
    SurfRefGetFormat SurfRefGetArray 64DeviceTotalMem 64D3D10ResourceGetMappedPointer 64D3D10ResourceGetMappedSize
    64D3D10ResourceGetMappedPitch 64D3D10ResourceGetSurfaceDimensions 64D3D9ResourceGetSurfaceDimensions
    64D3D9ResourceGetMappedPointer 64D3D9ResourceGetMappedSize 64D3D9ResourceGetMappedPitch 64D3D9MapVertexBuffer
    64GLMapBufferObject 64GLMapBufferObjectAsync D3D11GetDevices D3D11CtxCreateOnDevice D3D10GetDevices
    D3D10CtxCreateOnDevice D3D9GetDevices D3D9CtxCreateOnDevice 64MemHostAlloc MemsetD8Async 64MemsetD8Async
    MemsetD16Async 64MemsetD16Async MemsetD32Async 64MemsetD32Async MemsetD2D8Async 64MemsetD2D8Async MemsetD2D16Async
    64MemsetD2D16Async MemsetD2D32Async 64MemsetD2D32Async 64ArrayCreate 64ArrayGetDescriptor 64Array3DCreate
    64Array3DGetDescriptor 64Memcpy2D 64Memcpy2DUnaligned 64Memcpy2DAsync CtxCreate D3D10CtxCreate D3D11CtxCreate
    D3D9CtxCreate GLCtxCreate VDPAUCtxCreate ModuleGetGlobal MemGetInfo MemAlloc MemAllocPitch MemFree
    MemGetAddressRange MemHostGetDevicePointer Memcpy MemsetD8 MemsetD16 MemsetD32 MemsetD2D8 MemsetD2D16 MemsetD2D32
    TexRefSetAddress TexRefSetAddress2D TexRefGetAddress GraphicsResourceGetMappedPointer DeviceTotalMem
    D3D10ResourceGetMappedPointer D3D10ResourceGetMappedSize D3D10ResourceGetMappedPitch
    D3D10ResourceGetSurfaceDimensions D3D9ResourceGetSurfaceDimensions D3D9ResourceGetMappedPointer
    D3D9ResourceGetMappedSize D3D9ResourceGetMappedPitch D3D9MapVertexBuffer GLMapBufferObject GLMapBufferObjectAsync
    MemHostAlloc ArrayCreate ArrayGetDescriptor Array3DCreate Array3DGetDescriptor MemcpyHtoD MemcpyHtoDAsync MemcpyDtoH
    MemcpyDtoHAsync MemcpyDtoD MemcpyDtoDAsync MemcpyAtoH MemcpyAtoHAsync MemcpyAtoD MemcpyDtoA MemcpyAtoA Memcpy2D
    Memcpy2DUnaligned Memcpy2DAsync Memcpy3D Memcpy3DAsync MemcpyHtoA MemcpyHtoAAsync MemAllocHost StreamWaitEvent
    CtxGetApiVersion D3D10GetDirect3DDevice D3D11GetDirect3DDevice CtxGetCacheConfig CtxSetCacheConfig MemHostRegister
    MemHostUnregister CtxSetCurrent CtxGetCurrent Memcpy MemcpyAsync LaunchKernel ProfilerStart ProfilerStop
    PointerGetAttribute ProfilerInitialize DeviceCanAccessPeer CtxEnablePeerAccess CtxDisablePeerAccess MemPeerRegister
    MemPeerUnregister MemPeerGetDevicePointer MemcpyPeer MemcpyPeerAsync Memcpy3DPeer Memcpy3DPeerAsync CtxDestroy
    CtxPushCurrent CtxPopCurrent EventDestroy StreamDestroy TexRefSetAddress2D IpcGetMemHandle IpcOpenMemHandle
    IpcCloseMemHandle DeviceGetByPCIBusId DeviceGetPCIBusId GLGetDevices IpcGetEventHandle IpcOpenEventHandle
    CtxSetSharedMemConfig CtxGetSharedMemConfig FuncSetSharedMemConfig TexObjectCreate TexObjectDestroy
    TexObjectGetResourceDesc TexObjectGetTextureDesc SurfObjectCreate SurfObjectDestroy SurfObjectGetResourceDesc
    StreamAddCallback MipmappedArrayCreate MipmappedArrayGetLevel MipmappedArrayDestroy TexRefSetMipmappedArray
    TexRefSetMipmapFilterMode TexRefSetMipmapLevelBias TexRefSetMipmapLevelClamp TexRefSetMaxAnisotropy
    TexRefGetMipmappedArray TexRefGetMipmapFilterMode TexRefGetMipmapLevelBias TexRefGetMipmapLevelClamp
    TexRefGetMaxAnisotropy GraphicsResourceGetMappedMipmappedArray TexObjectGetResourceViewDesc LinkCreate LinkAddData
    LinkAddFile LinkComplete LinkDestroy StreamCreateWithPriority StreamGetPriority StreamGetFlags
    CtxGetStreamPriorityRange MemAllocManaged GetErrorString GetErrorName OccupancyMaxActiveBlocksPerMultiprocessor
    CompilePtx BinaryFree StreamAttachMemAsync PointerSetAttribute MemHostRegister GraphicsResourceSetMapFlags
    LinkCreate LinkAddData LinkAddFile OccupancyMaxPotentialBlockSize GLGetDevices DevicePrimaryCtxRetain
    DevicePrimaryCtxRelease DevicePrimaryCtxSetFlags DevicePrimaryCtxReset GraphicsEGLRegisterImage CtxGetFlags
    DevicePrimaryCtxGetState EGLStreamConsumerConnect EGLStreamConsumerDisconnect EGLStreamConsumerAcquireFrame
    EGLStreamConsumerReleaseFrame MemcpyHtoD_ptds MemcpyDtoH_ptds MemcpyDtoD_ptds MemcpyDtoA_ptds MemcpyAtoD_ptds
    MemcpyHtoA_ptds MemcpyAtoH_ptds MemcpyAtoA_ptds Memcpy2D_ptds Memcpy2DUnaligned_ptds Memcpy3D_ptds Memcpy_ptds
    MemcpyPeer_ptds Memcpy3DPeer_ptds MemsetD8_ptds MemsetD16_ptds MemsetD32_ptds MemsetD2D8_ptds MemsetD2D16_ptds
    MemsetD2D32_ptds GLMapBufferObject_ptds MemcpyAsync_ptsz MemcpyHtoAAsync_ptsz MemcpyAtoHAsync_ptsz
    MemcpyHtoDAsync_ptsz MemcpyDtoHAsync_ptsz MemcpyDtoDAsync_ptsz Memcpy2DAsync_ptsz Memcpy3DAsync_ptsz
    MemcpyPeerAsync_ptsz Memcpy3DPeerAsync_ptsz MemsetD8Async_ptsz MemsetD16Async_ptsz MemsetD32Async_ptsz
    MemsetD2D8Async_ptsz MemsetD2D16Async_ptsz MemsetD2D32Async_ptsz StreamGetPriority_ptsz StreamGetFlags_ptsz
    StreamWaitEvent_ptsz StreamAddCallback_ptsz StreamAttachMemAsync_ptsz StreamQuery_ptsz StreamSynchronize_ptsz
    EventRecord_ptsz LaunchKernel_ptsz GraphicsMapResources_ptsz GraphicsUnmapResources_ptsz GLMapBufferObjectAsync_ptsz
    EGLStreamProducerConnect EGLStreamProducerDisconnect EGLStreamProducerPresentFrame GraphicsResourceGetMappedEglFrame
    PointerGetAttributes OccupancyMaxActiveBlocksPerMultiprocessorWithFlags OccupancyMaxPotentialBlockSizeWithFlags
    EGLStreamProducerReturnFrame DeviceGetP2PAttribute TexRefSetBorderColor TexRefGetBorderColor MemAdvise
    StreamWaitValue32 StreamWaitValue32_ptsz StreamWriteValue32 StreamWriteValue32_ptsz StreamBatchMemOp
    StreamBatchMemOp_ptsz NVNbufferGetPointer NVNtextureGetArray NNSetAllocator MemPrefetchAsync MemPrefetchAsync_ptsz
    EventCreateFromNVNSync EGLStreamConsumerConnectWithFlags MemRangeGetAttribute MemRangeGetAttributes
    StreamWaitValue64 StreamWaitValue64_ptsz StreamWriteValue64 StreamWriteValue64_ptsz LaunchCooperativeKernel
    LaunchCooperativeKernel_ptsz EventCreateFromEGLSync LaunchCooperativeKernelMultiDevice FuncSetAttribute
    DeviceGetUuid StreamGetCtx StreamGetCtx_ptsz ImportExternalMemory ExternalMemoryGetMappedBuffer
    ExternalMemoryGetMappedMipmappedArray DestroyExternalMemory ImportExternalSemaphore SignalExternalSemaphoresAsync
    SignalExternalSemaphoresAsync_ptsz WaitExternalSemaphoresAsync WaitExternalSemaphoresAsync_ptsz
    DestroyExternalSemaphore StreamBeginCapture StreamBeginCapture_ptsz StreamEndCapture StreamEndCapture_ptsz
    StreamIsCapturing StreamIsCapturing_ptsz GraphCreate GraphAddKernelNode GraphKernelNodeGetParams GraphAddMemcpyNode
    GraphMemcpyNodeGetParams GraphAddMemsetNode GraphMemsetNodeGetParams GraphMemsetNodeSetParams GraphNodeGetType
    GraphGetRootNodes GraphNodeGetDependencies GraphNodeGetDependentNodes GraphInstantiate GraphLaunch GraphLaunch_ptsz
    GraphExecDestroy GraphDestroy GraphAddDependencies GraphRemoveDependencies GraphMemcpyNodeSetParams
    GraphKernelNodeSetParams GraphDestroyNode GraphClone GraphNodeFindInClone GraphAddChildGraphNode GraphAddEmptyNode
    LaunchHostFunc LaunchHostFunc_ptsz GraphChildGraphNodeGetGraph GraphAddHostNode GraphHostNodeGetParams DeviceGetLuid
    GraphHostNodeSetParams GraphGetNodes GraphGetEdges StreamGetCaptureInfo StreamGetCaptureInfo_ptsz
    GraphExecKernelNodeSetParams StreamBeginCapture StreamBeginCapture_ptsz ThreadExchangeStreamCaptureMode
    DeviceGetNvSciSyncAttributes OccupancyAvailableDynamicSMemPerBlock DevicePrimaryCtxRelease DevicePrimaryCtxReset
    DevicePrimaryCtxSetFlags MemAddressReserve MemAddressFree MemCreate MemRelease MemMap MemUnmap MemSetAccess
    MemExportToShareableHandle MemImportFromShareableHandle MemGetAllocationGranularity
    MemGetAllocationPropertiesFromHandle MemGetAccess StreamSetFlags StreamSetFlags_ptsz GraphExecUpdate
    GraphExecMemcpyNodeSetParams GraphExecMemsetNodeSetParams GraphExecHostNodeSetParams MemRetainAllocationHandle
    FuncGetModule IpcOpenMemHandle CtxResetPersistingL2Cache GraphKernelNodeCopyAttributes GraphKernelNodeGetAttribute
    GraphKernelNodeSetAttribute StreamCopyAttributes StreamCopyAttributes_ptsz StreamGetAttribute
    StreamGetAttribute_ptsz StreamSetAttribute StreamSetAttribute_ptsz GraphInstantiate DeviceGetTexture1DLinearMaxWidth
    GraphUpload GraphUpload_ptsz ArrayGetSparseProperties MipmappedArrayGetSparseProperties MemMapArrayAsync
    MemMapArrayAsync_ptsz GraphExecChildGraphNodeSetParams EventRecordWithFlags EventRecordWithFlags_ptsz
    GraphAddEventRecordNode GraphAddEventWaitNode GraphEventRecordNodeGetEvent GraphEventWaitNodeGetEvent
    GraphEventRecordNodeSetEvent GraphEventWaitNodeSetEvent GraphExecEventRecordNodeSetEvent
    GraphExecEventWaitNodeSetEvent ArrayGetPlane MemAllocAsync MemAllocAsync_ptsz MemFreeAsync MemFreeAsync_ptsz
    MemPoolTrimTo MemPoolSetAttribute MemPoolGetAttribute MemPoolSetAccess DeviceGetDefaultMemPool MemPoolCreate
    MemPoolDestroy DeviceSetMemPool DeviceGetMemPool MemAllocFromPoolAsync MemAllocFromPoolAsync_ptsz
    MemPoolExportToShareableHandle MemPoolImportFromShareableHandle MemPoolExportPointer MemPoolImportPointer
    MemPoolGetAccess GraphAddExternalSemaphoresSignalNode GraphExternalSemaphoresSignalNodeGetParams
    GraphExternalSemaphoresSignalNodeSetParams GraphAddExternalSemaphoresWaitNode
    GraphExternalSemaphoresWaitNodeGetParams GraphExternalSemaphoresWaitNodeSetParams
    GraphExecExternalSemaphoresSignalNodeSetParams GraphExecExternalSemaphoresWaitNodeSetParams GetProcAddress
    FlushGPUDirectRDMAWrites GraphDebugDotPrint StreamGetCaptureInfo StreamGetCaptureInfo_ptsz
    StreamUpdateCaptureDependencies StreamUpdateCaptureDependencies_ptsz UserObjectCreate UserObjectRetain
    UserObjectRelease GraphRetainUserObject GraphReleaseUserObject GraphAddMemAllocNode GraphAddMemFreeNode
    DeviceGraphMemTrim DeviceGetGraphMemAttribute DeviceSetGraphMemAttribute GraphInstantiateWithFlags
    DeviceGetExecAffinitySupport CtxCreate CtxGetExecAffinity DeviceGetUuid GraphMemAllocNodeGetParams
    GraphMemFreeNodeGetParams GraphNodeSetEnabled GraphNodeGetEnabled LaunchKernelEx LaunchKernelEx_ptsz
    ArrayGetMemoryRequirements MipmappedArrayGetMemoryRequirements GraphInstantiateWithParams
    GraphInstantiateWithParams_ptsz GraphExecGetFlags StreamWaitValue32 StreamWaitValue32_ptsz StreamWaitValue64
    StreamWaitValue64_ptsz StreamWriteValue32 StreamWriteValue32_ptsz StreamWriteValue64 StreamWriteValue64_ptsz
    StreamBatchMemOp StreamBatchMemOp_ptsz GraphAddBatchMemOpNode GraphBatchMemOpNodeGetParams
    GraphBatchMemOpNodeSetParams GraphExecBatchMemOpNodeSetParams ModuleGetLoadingMode MemGetHandleForAddressRange
    OccupancyMaxPotentialClusterSize OccupancyMaxActiveClusters GetProcAddress LibraryLoadData LibraryLoadFromFile
    LibraryUnload LibraryGetKernel LibraryGetModule KernelGetFunction LibraryGetGlobal LibraryGetManaged
    KernelGetAttribute KernelSetAttribute KernelSetCacheConfig GraphAddKernelNode GraphKernelNodeGetParams
    GraphKernelNodeSetParams GraphExecKernelNodeSetParams StreamGetId StreamGetId_ptsz CtxGetId GraphExecUpdate
    TensorMapEncodeTiled TensorMapEncodeIm2col TensorMapReplaceAddress LibraryGetUnifiedFunction CoredumpGetAttribute
    CoredumpGetAttributeGlobal CoredumpSetAttribute CoredumpSetAttributeGlobal CtxSetFlags MulticastCreate
    MulticastAddDevice MulticastBindMem MulticastBindAddr MulticastUnbind MulticastGetGranularity GraphAddNode
    GraphNodeSetParams GraphExecNodeSetParams MemAdvise MemPrefetchAsync MemPrefetchAsync_ptsz FuncGetName KernelGetName
    StreamBeginCaptureToGraph StreamBeginCaptureToGraph_ptsz GraphConditionalHandleCreate GraphAddNode GraphGetEdges
    GraphNodeGetDependencies GraphNodeGetDependentNodes GraphAddDependencies GraphRemoveDependencies
    StreamGetCaptureInfo StreamGetCaptureInfo_ptsz StreamUpdateCaptureDependencies StreamUpdateCaptureDependencies_ptsz
    FuncGetParamInfo KernelGetParamInfo DeviceRegisterAsyncNotification DeviceUnregisterAsyncNotification
    ModuleGetFunctionCount ModuleEnumerateFunctions LibraryGetKernelCount LibraryEnumerateKernels FuncIsLoaded FuncLoad
    GreenCtxCreate GreenCtxDestroy DeviceGetDevResource CtxGetDevResource GreenCtxGetDevResource DevResourceGenerateDesc
    GreenCtxRecordEvent GreenCtxWaitEvent DevSmResourceSplitByCount StreamGetGreenCtx CtxFromGreenCtx KernelGetLibrary
    CtxRecordEvent CtxWaitEvent CtxCreate GreenCtxStreamCreate StreamGetCtx StreamGetCtx_ptsz MemBatchDecompressAsync
    MemBatchDecompressAsync_ptsz LogsRegisterCallback LogsUnregisterCallback LogsCurrent LogsDumpToFile LogsDumpToMemory
    CheckpointProcessGetRestoreThreadId CheckpointProcessGetState CheckpointProcessLock CheckpointProcessCheckpoint
    CheckpointProcessRestore CheckpointProcessUnlock StreamGetDevice StreamGetDevice_ptsz MemcpyBatchAsync
    MemcpyBatchAsync_ptsz Memcpy3DBatchAsync Memcpy3DBatchAsync_ptsz EventElapsedTime TensorMapEncodeIm2colWide
    GreenCtxGetId StreamCreateForCaptureToCig
    """,
)
