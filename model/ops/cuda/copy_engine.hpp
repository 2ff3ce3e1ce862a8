// For kernel sources alone: Hopper's copy engine, which brings whole pieces of memory into the shared memory of one or
// several blocks of threads while their threads do something else, and the gates where those wait for it. Blocks that
// share copies are a cluster. Where the sources are compiled for the host, tests/cuda_host gives the same functions.
#pragma once
#include "model/ops/cuda/kernel.hpp"

#if defined(__CUDACC__)
#include <cuda.h>

namespace troupe::cuda {

/// A part of memory that is made of blocks of rows of bytes: its sizes, or where something in it begins.
struct box {
  int bytes, rows, blocks;
};
/// Memory as the copy engine finds it. It copies boxes of one size, and zeros for what lies outside.
struct boxes_map {
  CUtensorMap map;
};
/// How a box's rows lie in shared memory, one after the other: as they are, or, if they have 128 bytes, as tensor cores
/// want them (wgmma.hpp).
enum class box_order { plain, swizzled };
/// Strides and the memory's address are multiples of 16.
boxes_map map_boxes(const void* memory, const box& sizes, std::int64_t row_stride, std::int64_t block_stride,
                    const box& copied, box_order order);

inline __device__ unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

/// Opens when all that it expects has arrived, and is then closed for the next time. Lies in shared memory.
class gate {
 public:
  /// By one thread; all others see it after show_gates() and meeting.
  __device__ void set(int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals) : "memory");
  }
  /// An arrival, and so many bytes that copies are to bring.
  __device__ void expect(int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                 : "memory");
  }
  __device__ void arrive() {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
  }
  /// An arrival at the gate that lies here in another block of the cluster, or in this one.
  __device__ void arrive(int rank) {
    asm volatile(
        "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n}\n" ::"r"(shared_address(this)),
        "r"(rank)
        : "memory");
  }
  /// Until it has been open for the first, second, third … time: `odd` is false, true, false …
  __device__ void wait(bool odd) {
    asm volatile(
        "{\n.reg .pred open;\nagain:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 open, [%0], %1;\n"
        "@open bra ready;\nbra again;\nready:\n}\n" ::"r"(shared_address(this)),
        "r"(int{odd})
        : "memory");
  }

 private:
  std::uint64_t state_;
};

/// The same for all threads of a warp, which the compiler knows of it.
inline __device__ int whole_warp_number() {
  return __shfl_sync(whole_warp, static_cast<int>(threadIdx.x) / 32, 0);
}

inline __device__ void show_gates() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
enum class meeting { to_wait, to_read };
/// All threads of the cluster are here; to read, they also see what the others have written to shared memory.
template <meeting Why>
__device__ void meet_cluster() {
  if constexpr (Why == meeting::to_read)
    asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
  else
    asm volatile("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;" ::: "memory");
}
/// The same place of shared memory in another block of the cluster.
template <class T>
__device__ const T* of_rank(const T* shared, int rank) {
#if __CUDA_ARCH__ >= 900
  return static_cast<const T*>(__cluster_map_shared_rank(shared, static_cast<unsigned>(rank)));
#else
  return shared;
#endif
}

/// A warpgroup that needs few registers leaves them to others, all of whose threads call the second.
template <int Count>
__device__ void give_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}
template <int Count>
__device__ void take_registers() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count));
#endif
}

/// Who gets a copy: bit i is the block of rank i in the cluster. Each gets it at the same place, and its own gate there
/// gets the bytes.
struct receivers {
  std::uint16_t ranks;
  bool is_one;  ///< this block alone

  __device__ void add(int rank) { ranks = static_cast<std::uint16_t>(ranks | 1u << rank); }
};

/// The box that begins there.
inline __device__ void copy_box(void* shared, const boxes_map& from, const box& first, gate& arrived, receivers to) {
  if (to.is_one)
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], "
        "[%5];" ::"r"(shared_address(shared)),
        "l"(&from.map), "r"(first.bytes), "r"(first.rows), "r"(first.blocks), "r"(shared_address(&arrived))
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
        "[%1, {%2, %3, %4}], [%5], %6;" ::"r"(shared_address(shared)),
        "l"(&from.map), "r"(first.bytes), "r"(first.rows), "r"(first.blocks), "r"(shared_address(&arrived)),
        "h"(to.ranks)
        : "memory");
}

/// The way back: what lies outside the memory is left out. The thread's boxes since the last call of close_boxes() are
/// a group. Threads have shown what they wrote (show_to_tensor_cores()) and met.
inline __device__ void store_box(const boxes_map& to, const box& first, const void* shared) {
  asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&to.map),
               "r"(first.bytes), "r"(first.rows), "r"(first.blocks), "r"(shared_address(shared))
               : "memory");
}
inline __device__ void close_boxes() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until the thread's stored boxes can be written over.
inline __device__ void wait_until_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// Until they are in memory.
inline __device__ void wait_until_stored() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

}  // namespace troupe::cuda
#else
#include <cuda_host/copy_engine.hpp>
#endif
