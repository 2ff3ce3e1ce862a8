// Blocks of threads that share memory, and the gates where they wait for each other.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace cuda_host {
namespace {

constexpr int no_number = -1;  // what fresh memory has: bits of a NaN

int& number_in_memory() {
  return *reinterpret_cast<int*>(dynamic_memory());
}
/// A gate in dynamic shared memory.
void* gate_at(int place) {
  return dynamic_memory() + 64 + 8 * place;
}

/// One cluster with some threads a block.
void run_cluster(unsigned order, unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  set_order(order);
  run_grid({blocks, threads, blocks, 128}, kernel);
}

std::string fault_of(unsigned order, unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  try {
    run_cluster(order, blocks, threads, kernel);
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "none";
}

TEST(cuda_host_cluster, each_block_knows_its_place) {
  std::vector<int> ranks(2 * 6 * 4, no_number);
  run_grid({{2, 6, 4}, 3, {2, 3, 1}}, [&] {
    ranks[blockIdx.x + 2 * (blockIdx.y + 6 * blockIdx.z)] = block_rank();
    EXPECT_EQ(block_rank(), static_cast<int>(blockIdx.x + 2 * (blockIdx.y % 3)));
  });
  EXPECT_EQ(std::count(ranks.begin(), ranks.end(), no_number), 0);
}

TEST(cuda_host_cluster, each_block_has_memory_of_its_own_that_is_new_to_it) {
  for (unsigned order = 0; order < 4; ++order) {
    std::set<const void*> memory;
    set_order(order);
    run_grid({6, 2, 3, 64}, [&] {
      memory.insert(dynamic_memory());
      if (threadIdx.x == 0) {
        EXPECT_EQ(number_in_memory(), no_number);
        number_in_memory() = block_rank();
      }
      cluster_barrier();
      EXPECT_EQ(number_in_memory(), block_rank());
      cluster_barrier();
    });
    EXPECT_EQ(memory.size(), 3u);
    for (const void* each : memory) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(each) % 1024, 0u);
  }
}

TEST(cuda_host_cluster, grids_are_multiples_of_clusters) {
  EXPECT_THROW(run_grid({3, 1, 2}, [] {}), std::logic_error);
}

TEST(cuda_host_cluster, a_barrier_of_a_block_is_not_one_of_the_cluster) {
  run_cluster(0, 2, 4, [] {
    if (blockIdx.x == 1) block_barrier();
  });
  EXPECT_EQ(fault_of(0, 2, 4, [] { blockIdx.x == 1 ? block_barrier() : cluster_barrier(); }), "none")
      << "threads that have ended are not waited for";
  EXPECT_EQ(fault_of(0, 2, 4, [] { threadIdx.x == 1 ? block_barrier() : cluster_barrier(); }),
            "the threads of a block wait for each other");
}

/// What each of four blocks reads of the next one's number.
std::vector<int> read_next(unsigned order, bool meet_before, bool meet_after) {
  std::vector<int> seen(4);
  run_cluster(order, 4, 1, [&] {
    number_in_memory() = block_rank();
    if (meet_before) cluster_barrier();
    seen[blockIdx.x] = *static_cast<int*>(place_in_block(&number_in_memory(), (block_rank() + 1) % 4));
    if (meet_after) cluster_barrier();
  });
  return seen;
}

TEST(cuda_host_cluster, blocks_that_do_not_meet_before_they_read_each_others_memory_get_what_was_there) {
  std::set<std::vector<int>> without;
  for (unsigned order = 0; order < 4; ++order) {
    EXPECT_EQ(read_next(order, true, true), (std::vector{1, 2, 3, 0}));
    without.insert(read_next(order, false, true));
  }
  EXPECT_GT(without.size(), 1u);
}

TEST(cuda_host_cluster, a_block_that_ends_before_others_have_read_its_memory_is_an_error) {
  for (unsigned order = 0; order < 4; ++order) EXPECT_THROW(read_next(order, true, false), std::logic_error);
}

TEST(cuda_host_cluster, only_dynamic_memory_of_blocks_that_are_there_is_shared) {
  int elsewhere = 0;
  EXPECT_EQ(fault_of(0, 2, 1, [&] { place_in_block(&elsewhere, 1 - block_rank()); }),
            "what another block is to have lies outside of dynamic shared memory");
  for (const int rank : {-1, 2})
    EXPECT_EQ(fault_of(0, 2, 1, [&] { place_in_block(dynamic_memory(), rank); }), "no block has this rank");
}

// ---- gates ----

/// Thread 0 sets a gate, and all see it.
void set_for_all(int place, int arrivals) {
  if (threadIdx.x == 0) set_gate(gate_at(place), arrivals);
  cluster_barrier();
}

TEST(cuda_host_gate, nobody_waits_at_a_new_gate_for_an_odd_time) {
  EXPECT_EQ(fault_of(0, 1, 1,
                     [] {
                       set_gate(gate_at(0), 1);
                       wait_at_gate(gate_at(0), true);
                     }),
            "none");
}

TEST(cuda_host_gate, who_waits_is_told_even_times_from_odd_ones) {
  for (const bool first : {false, true})
    EXPECT_EQ(fault_of(0, 1, 1,
                       [&] {
                         set_gate(gate_at(0), 1);
                         for (int i = 0; i < 4; ++i) {
                           arrive_at_gate(gate_at(0), 0);
                           wait_at_gate(gate_at(0), (i % 2 == 1) != first);
                         }
                       }),
              first ? "the threads of a block wait for each other" : "none");
}

/// Block 0 hands four numbers to both blocks, in two places that are filled again once they were read.
std::vector<int> hand_over(unsigned order, bool waits_until_full, bool waits_until_free) {
  std::vector<int> seen;
  run_cluster(order, 2, 2, [&] {
    set_for_all(0, 1);  // full
    set_for_all(1, 1);
    set_for_all(2, 2);  // free
    set_for_all(3, 2);
    const auto number = [](int place, int rank) -> int& {
      return static_cast<int*>(place_in_block(dynamic_memory(), rank))[place];
    };
    for (int i = 0; i < 4; ++i) {
      const int place = i % 2;
      const bool odd = i / 2 == 1;
      if (threadIdx.x == 1) {
        if (waits_until_full) wait_at_gate(gate_at(place), odd);
        seen.push_back(number(place, block_rank()));
        arrive_at_gate(place_in_block(gate_at(2 + place), 0), 0);
      } else if (block_rank() == 0) {
        if (waits_until_free) wait_at_gate(gate_at(2 + place), !odd);
        for (int rank = 0; rank < 2; ++rank) {
          number(place, rank) = i;
          arrive_at_gate(place_in_block(gate_at(place), rank), 0);
        }
      }
    }
    cluster_barrier();
  });
  std::sort(seen.begin(), seen.end());
  return seen;
}

TEST(cuda_host_gate, numbers_are_handed_over_in_every_order) {
  for (unsigned order = 0; order < 6; ++order)
    EXPECT_EQ(hand_over(order, true, true), (std::vector{0, 0, 1, 1, 2, 2, 3, 3}));
}

TEST(cuda_host_gate, a_missing_wait_shows_in_some_order) {
  const auto differs = [](bool until_full, bool until_free) {
    std::set<std::vector<int>> seen;
    for (unsigned order = 0; order < 6; ++order) try {
        seen.insert(hand_over(order, until_full, until_free));
      } catch (const std::logic_error&) {
        return true;  // times that nobody waited for are mistaken for others
      }
    return seen.size() > 1;
  };
  EXPECT_TRUE(differs(false, true));
  EXPECT_TRUE(differs(true, false));
}

TEST(cuda_host_gate, a_missing_arrival_is_an_error) {
  for (unsigned order = 0; order < 4; ++order)
    EXPECT_EQ(fault_of(order, 2, 4,
                       [] {
                         set_for_all(0, 4);
                         if (threadIdx.x > 0) arrive_at_gate(place_in_block(gate_at(0), 1 - block_rank()), 0);
                         wait_at_gate(gate_at(0), false);
                       }),
              "the threads of a block wait for each other");
}

TEST(cuda_host_gate, an_arrival_too_many_is_an_error) {
  const auto fault = [](int bytes) {
    return fault_of(0, 1, 3, [=] {
      set_for_all(0, 2);
      arrive_at_gate(gate_at(0), bytes);
    });
  };
  EXPECT_EQ(fault(0), "a block ends whose gate has had some arrivals, or bytes");
  EXPECT_EQ(fault(16), "more arrivals at a gate than it expects");
}

TEST(cuda_host_gate, only_a_gate_is_one) {
  EXPECT_EQ(fault_of(0, 1, 1, [] { arrive_at_gate(gate_at(0), 0); }), "a gate that nobody has set");
  EXPECT_EQ(fault_of(0, 1, 1, [] { wait_at_gate(gate_at(0), true); }), "a gate that nobody has set");
  EXPECT_EQ(fault_of(0, 1, 1, [] { set_gate(dynamic_memory() + 4, 1); }), "a gate is not aligned");
  EXPECT_EQ(fault_of(0, 1, 1, [] { set_gate(gate_at(0), 0); }), "a gate expects too few or too many arrivals");
}

// ---- copies to several blocks ----

/// A copy of one number by block 1, after which both blocks read it.
struct copy_to_both {
  int from = 7, announced = 4;
  bool waits = true;

  void operator()(std::vector<int>& seen) const {
    set_for_all(0, 1);
    arrive_at_gate(gate_at(0), announced);
    const auto put = [from = from](std::byte* to) { std::memcpy(to, &from, 4); };
    if (block_rank() == 1) start_cluster_copy({dynamic_memory(), gate_at(0), 4, 3, put});
    if (waits) wait_at_gate(gate_at(0), false);
    seen[blockIdx.x] = number_in_memory();
    cluster_barrier();
    wait_at_gate(gate_at(0), false);
  }
  std::vector<int> seen_in(unsigned order) const {
    std::vector<int> seen(2);
    run_cluster(order, 2, 1, [&] { (*this)(seen); });
    return seen;
  }
};

TEST(cuda_host_gate, copies_to_several_blocks_are_waited_for_or_may_be_missing) {
  const copy_to_both copy, hasty{7, 4, false};
  for (unsigned order = 0; order < 4; ++order) EXPECT_EQ(copy.seen_in(order), (std::vector{7, 7}));
  EXPECT_EQ(hasty.seen_in(0), (std::vector{no_number, no_number}));
  EXPECT_EQ(hasty.seen_in(1)[1], 7);
}

TEST(cuda_host_gate, all_bytes_and_no_others_are_announced) {
  for (unsigned order = 0; order < 4; ++order) {
    EXPECT_THROW((copy_to_both{7, 3}.seen_in(order)), std::logic_error);
    EXPECT_THROW((copy_to_both{7, 5}.seen_in(order)), std::logic_error);
  }
}

TEST(cuda_host_gate, a_block_that_ends_before_its_copies_have_come_is_an_error) {
  const auto start = [] {
    set_gate(gate_at(0), 1);
    arrive_at_gate(gate_at(0), 4);
    start_cluster_copy({dynamic_memory(), gate_at(0), 4, 1, [](std::byte*) {}});
  };
  EXPECT_EQ(fault_of(0, 1, 1, start), "a block ends to which a copy is on its way");
}

}  // namespace
}  // namespace cuda_host
