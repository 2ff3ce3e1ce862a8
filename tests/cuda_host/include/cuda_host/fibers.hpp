// Runs the threads of a grid one at a time, each as a fiber that stops only where a kernel waits for other threads.
// Tests choose which thread and which block comes next: so a missing barrier shows as a wrong result.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

namespace cuda_host {

struct index3 {
  unsigned x = 0, y = 0, z = 0;
};
struct extent3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr extent3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  std::size_t count() const { return std::size_t{x} * y * z; }
};

/// The order in which threads and blocks run: 0 forward, 1 backward, any other number a shuffle of its own that changes
/// at every barrier. Applies to the calling host thread.
void set_order(unsigned order);

struct grid_shape {
  extent3 grid, block;
  extent3 cluster = {};           ///< blocks that run at the same time, of which the grid is a multiple
  std::size_t dynamic_bytes = 0;  ///< of shared memory that each block has for itself
};

/// Runs all blocks of a grid. Throws std::logic_error if threads wait for something that never comes.
///
/// Blocks of a cluster have dynamic shared memory alone: __shared__ variables would be the same for all of them.
void run_grid(const grid_shape& shape, const std::function<void()>& kernel);
inline void run_grid(extent3 grid, extent3 block, const std::function<void()>& kernel) {
  run_grid({grid, block}, kernel);
}

// What a running thread sees.
inline thread_local constinit index3 threadIdx, blockIdx, blockDim;

/// Waits for all threads of the block that have not ended.
void block_barrier();

constexpr std::size_t most_dynamic_bytes = 227 << 10;  ///< of shared memory, as on an H100
constexpr std::size_t dynamic_alignment = 1024;
/// The block's dynamic shared memory: full of NaN at first, and again when its last thread has ended.
std::byte* dynamic_memory();

constexpr int warp_lanes = 32;
constexpr std::size_t lane_bytes = 64;
/// Waits for all lanes of the warp. Each lane gives some bytes under the same name. Returns the bytes of all,
/// [warp_lanes][lane_bytes], valid until the lane's next exchange.
const std::byte* warp_exchange(const char* what, const void* mine, std::size_t bytes);

/// An address that is no multiple of `bytes` ends the grid.
void demand_aligned(const char* what, const void* place, std::size_t bytes);

/// Starts a copy in the background. It is done at once in odd orders, and only when the thread waits for it in even
/// ones.
void start_copy(void* to, const void* from, std::size_t bytes);
void close_copy_group();
void wait_for_copies(std::size_t groups_left);

// ---- clusters: blocks are told apart by their rank ----

constexpr std::size_t most_cluster_blocks = 8;

int block_rank();
/// Waits for all threads of the cluster that have not ended.
void cluster_barrier();
/// The same place in the dynamic shared memory of another block, some of whose threads have not ended.
void* place_in_block(const void* shared, int rank);

// ---- gates: eight bytes of shared memory, where threads wait for arrivals and for what copies bring ----
//
// A gate opens when all that it expects has come, and expects as much again. One arrival too many is an error while
// bytes are on their way; otherwise it counts for the next time, and the gate is found half open at the block's end,
// which is an error as well.

void set_gate(void* gate, int arrivals);
/// An arrival, and so many bytes to come.
void arrive_at_gate(void* gate, int bytes);
/// Until it has opened for the first, third … time, or the second, fourth … (`odd`). Who waits is told these apart
/// alone: at a new gate nobody waits for an odd time.
void wait_at_gate(const void* gate, bool odd);

/// `copy(to)` brings bytes in the background to that place in some blocks (bit i: of rank i), and tells the gate that
/// lies there where `gate` lies here. As late as may be, in even orders, is when no thread can go on: so who reads
/// before waiting at the gate gets what was there before. Blocks may not end while copies to them are on their way.
struct cluster_copy {
  void *to, *gate;
  std::size_t bytes;
  unsigned ranks;
  std::function<void(std::byte* to)> copy;
};
void start_cluster_copy(const cluster_copy& order);

/// The way back: `store(bytes)` takes what lies at `from` to memory, in odd orders at once. In even ones it is read and
/// stored when the thread waits for that, and it is an error if that thread ends before it is read.
struct shared_store {
  const std::byte* from;
  std::size_t bytes;
  std::function<void(const std::byte* bytes)> store;
};
void start_store(const shared_store& order);
void close_store_group();
void wait_until_stores_are_read();
void wait_until_stored();

}  // namespace cuda_host
