// The device of plain C++ shows what real ones do wrong in silence.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <vector>

namespace {

/// What 64 threads leave of their numbers after each has read its neighbour's, with or without a barrier between.
std::vector<int> shift_by_one(unsigned order, bool with_barrier) {
  std::vector<int> out(64);
  cuda_host::set_order(order);
  cuda_host::run_grid(1, 64, [&] {
    static thread_local int shared[64];
    shared[threadIdx.x] = -1;
    __syncthreads();
    shared[threadIdx.x] = static_cast<int>(threadIdx.x);
    if (with_barrier) __syncthreads();
    out[threadIdx.x] = shared[(threadIdx.x + 1) % 64];
  });
  return out;
}

TEST(cuda_host, a_missing_barrier_shows_as_results_that_depend_on_the_order) {
  std::set<std::vector<int>> with, without;
  for (unsigned order = 0; order < 4; ++order) {
    with.insert(shift_by_one(order, true));
    without.insert(shift_by_one(order, false));
  }
  EXPECT_EQ(with.size(), 1u);
  EXPECT_GT(without.size(), 1u);
}

TEST(cuda_host, lanes_exchange_what_they_show) {
  std::vector<int> out(64);
  cuda_host::run_grid(2, 32, [&] {
    const int mine = static_cast<int>(threadIdx.x + 100 * blockIdx.x);
    out[threadIdx.x + 32 * blockIdx.x] =
        __shfl_xor_sync(0xffffffffu, mine, 5) + 1000 * __shfl_sync(0xffffffffu, mine, 3);
  });
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(out[static_cast<std::size_t>(i)], ((i % 32) ^ 5) + i / 32 * 100 + 1000 * (3 + i / 32 * 100));
}

TEST(cuda_host, threads_that_wait_for_each_other_are_an_error) {
  EXPECT_THROW(cuda_host::run_grid(1, 64,
                                   [] {
                                     if (threadIdx.x == 40) __shfl_sync(0xffffffffu, 1, 0);
                                     __syncthreads();
                                   }),
               std::logic_error);
}

TEST(cuda_host, lanes_that_do_different_things_at_once_are_an_error) {
  EXPECT_THROW(cuda_host::run_grid(1, 32,
                                   [] {
                                     if (threadIdx.x % 2 == 0)
                                       __syncwarp();
                                     else
                                       __shfl_sync(0xffffffffu, 1, 0);
                                   }),
               std::logic_error);
}

TEST(cuda_host, copies_are_waited_for_or_may_be_missing) {
  alignas(16) const char from[] = "sixteen letters";
  const auto copied = [&](unsigned order, bool waits) {
    alignas(16) char to[16] = {};
    std::string seen;
    cuda_host::set_order(order);
    cuda_host::run_grid(1, 1, [&] {
      cuda_host::start_copy(to, from, 16);
      cuda_host::close_copy_group();
      if (waits) cuda_host::wait_for_copies(0);
      seen = to;
    });
    return seen;
  };
  EXPECT_EQ(copied(0, true), from);
  EXPECT_EQ(copied(1, true), from);
  EXPECT_NE(copied(0, false), copied(1, false));
}

TEST(cuda_host, copies_that_are_not_aligned_are_an_error) {
  alignas(16) char from[32] = {}, to[32] = {};
  const auto copy = [&](int to_offset, int from_offset) {
    cuda_host::run_grid(1, 1, [&] { cuda_host::start_copy(to + to_offset, from + from_offset, 16); });
  };
  EXPECT_NO_THROW(copy(0, 16));
  EXPECT_THROW(copy(0, 8), std::logic_error);
  EXPECT_THROW(copy(4, 0), std::logic_error);
}

}  // namespace
