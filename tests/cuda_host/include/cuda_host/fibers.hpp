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

/// Runs all blocks of a grid. Throws std::logic_error if threads wait for something that never comes.
void run_grid(extent3 grid, extent3 block, const std::function<void()>& kernel);

// What a running thread sees.
inline thread_local constinit index3 threadIdx, blockIdx, blockDim;

/// Waits for all threads of the block that have not ended.
void block_barrier();

constexpr std::size_t most_dynamic_bytes = 227 << 10;  ///< of shared memory, as on an H100

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

}  // namespace cuda_host
