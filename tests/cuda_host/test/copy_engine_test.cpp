// Boxes of memory in shared memory, as tensor cores want them.
#include "model/ops/cuda/copy_engine.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "model/ops/cuda/wgmma.hpp"

namespace troupe::cuda {
namespace {

constexpr int row_stride = 176, block_stride = 176 * 12;
constexpr box sizes{150, 11, 3}, copied{swizzled_row_bytes, 8, 2};
constexpr int box_bytes = swizzled_row_bytes * 8 * 2;

/// Three blocks of 11 rows of 150 bytes that tell where they are, and of 255 between them.
struct memory_of_boxes {
  alignas(16) std::byte bytes[3 * block_stride];

  memory_of_boxes() {
    std::memset(bytes, 255, sizeof(bytes));
    for (int block = 0; block < sizes.blocks; ++block)
      for (int row = 0; row < sizes.rows; ++row)
        for (int i = 0; i < sizes.bytes; ++i) bytes[block * block_stride + row * row_stride + i] = at({i, row, block});
  }
  boxes_map map() const { return map_boxes(bytes, sizes, row_stride, block_stride, copied, box_order::swizzled); }

  static std::byte at(const box& place) {
    const auto is_within = [](int i, int size) { return i >= 0 && i < size; };
    const bool is_there = is_within(place.bytes, sizes.bytes) && is_within(place.rows, sizes.rows) &&
                          is_within(place.blocks, sizes.blocks);
    return static_cast<std::byte>(is_there ? 1 + (place.bytes + place.rows * 7 + place.blocks * 50) % 250 : 0);
  }
};

struct memory_of_block {
  alignas(1024) std::byte first[box_bytes], second[box_bytes];
  gate arrived;
};
memory_of_block& shared() {
  return *reinterpret_cast<memory_of_block*>(dynamic_shared());
}

void expect_box(const std::byte* got, const box& first) {
  for (int line = 0; line < 16; ++line)
    for (int i = 0; i < swizzled_row_bytes; ++i) {
      const std::byte byte = got[swizzled_piece(line, i / 16) * 16 + i % 16];
      ASSERT_EQ(byte, memory_of_boxes::at({first.bytes + i, first.rows + line % 8, first.blocks + line / 8}))
          << "line " << line << ", byte " << i;
    }
}

/// f(its rank) of a thread in each of some blocks, with a gate that expects bytes of one arrival.
template <class F>
void in_cluster(unsigned order, unsigned blocks, F f) {
  cuda_host::set_order(order);
  cuda_host::run_grid({blocks, 1, blocks, sizeof(memory_of_block)}, [&] {
    shared().arrived.set(1);
    show_gates();
    meet_cluster<meeting::to_wait>();
    f(static_cast<int>(blockIdx.x));
    meet_cluster<meeting::to_wait>();
  });
}

TEST(cuda_host_copy_engine, boxes_come_swizzled_and_with_zeros_for_what_lies_outside) {
  const memory_of_boxes memory;
  const boxes_map map = memory.map();
  for (const box first : {box{0, 0, 0}, box{16, 2, 1}, box{128, 8, 2}, box{-24, -3, -1}, box{160, 0, 0}, box{5, 11, 0}})
    for (unsigned order = 0; order < 3; ++order)
      in_cluster(order, 1, [&](int) {
        shared().arrived.expect(box_bytes);
        copy_box(shared().second, map, first, shared().arrived, {0, true});
        shared().arrived.wait(false);
        expect_box(shared().second, first);
        EXPECT_EQ(shared().first[0], std::byte{255});
      });
}

TEST(cuda_host_copy_engine, a_box_is_for_one_block_or_several) {
  const memory_of_boxes memory;
  const boxes_map map = memory.map();
  for (unsigned order = 0; order < 4; ++order)
    in_cluster(order, 3, [&](int rank) {
      receivers to{0, false};
      to.add(0);
      to.add(2);
      shared().arrived.expect(rank == 1 ? 0 : 2 * box_bytes);
      if (rank == 1) copy_box(shared().first, map, {0, 1, 0}, shared().arrived, to);
      if (rank != 1) copy_box(shared().second, map, {0, 2, rank / 2}, shared().arrived, {0, true});
      shared().arrived.wait(false);
      if (rank == 1) {
        EXPECT_EQ(shared().first[0], std::byte{255});
      } else {
        expect_box(shared().first, {0, 1, 0});
        expect_box(shared().second, {0, 2, rank / 2});
      }
    });
}

TEST(cuda_host_copy_engine, plain_boxes_lie_as_they_are) {
  const memory_of_boxes memory;
  const boxes_map map =
      map_boxes(memory.bytes, sizes, row_stride, block_stride, {2 * swizzled_row_bytes, 3, 1}, box_order::plain);
  in_cluster(0, 1, [&](int) {
    shared().arrived.expect(3 * 2 * swizzled_row_bytes);
    copy_box(shared().first + 128, map, {32, 4, 1}, shared().arrived, {0, true});
    shared().arrived.wait(false);
    for (int row = 0; row < 3; ++row)
      for (int i = 0; i < 256; ++i)
        ASSERT_EQ(shared().first[128 + row * 256 + i], memory_of_boxes::at({32 + i, 4 + row, 1}));
  });
}

/// What memory has after a box that lies half outside was stored, with waits in between or without.
std::vector<std::byte> stored(unsigned order, bool waits_until_read, bool waits_until_stored) {
  memory_of_boxes memory;
  const boxes_map map = memory.map();
  std::vector<std::byte> seen;
  in_cluster(order, 1, [&](int) {
    std::memset(shared().first, 254, box_bytes);
    store_box(map, {64, 6, 2}, shared().first);
    close_boxes();
    if (waits_until_read) wait_until_read();
    std::memset(shared().first, 253, box_bytes);
    if (waits_until_stored) wait_until_stored();
    seen.assign(std::begin(memory.bytes), std::end(memory.bytes));
    wait_until_stored();
  });
  return seen;
}

TEST(cuda_host_copy_engine, what_lies_outside_is_not_stored) {
  memory_of_boxes memory;
  for (int row = 6; row < sizes.rows; ++row)
    std::memset(memory.bytes + 2 * block_stride + row * row_stride + 64, 254, sizes.bytes - 64);
  const std::vector<std::byte> expected(std::begin(memory.bytes), std::end(memory.bytes));
  for (unsigned order = 0; order < 4; ++order) EXPECT_EQ(stored(order, true, true), expected);
}

TEST(cuda_host_copy_engine, stores_are_waited_for_or_may_be_missing) {
  EXPECT_NE(stored(0, false, true), stored(1, false, true));
  EXPECT_NE(stored(0, true, false), stored(1, true, false));
}

TEST(cuda_host_copy_engine, a_thread_that_ends_before_its_boxes_are_read_is_an_error) {
  const auto end = [](bool closes, bool waits) {
    memory_of_boxes memory;
    const boxes_map map = memory.map();
    in_cluster(0, 1, [&](int) {
      store_box(map, {0, 0, 0}, shared().first);
      if (closes) close_boxes();
      if (waits) wait_until_read();
    });
    return memory.bytes[0];
  };
  EXPECT_EQ(end(true, true), std::byte{255});
  EXPECT_THROW(end(true, false), std::logic_error);
  EXPECT_THROW(end(false, true), std::logic_error);
}

TEST(cuda_host_copy_engine, swizzled_memory_is_aligned) {
  const memory_of_boxes memory;
  const boxes_map map = memory.map();
  EXPECT_THROW(in_cluster(0, 1,
                          [&](int) {
                            copy_box(shared().first + 128, map, {0, 0, 0}, shared().arrived, {0, true});
                          }),
               std::logic_error);
}

TEST(cuda_host_copy_engine, only_some_memory_can_be_copied) {
  const memory_of_boxes memory;
  const auto describe = [&](int offset, std::int64_t stride, const box& copied) {
    map_boxes(memory.bytes + offset, sizes, stride, block_stride, copied, box_order::swizzled);
  };
  EXPECT_NO_THROW(describe(16, row_stride, {128, 256, 256}));
  EXPECT_THROW(describe(8, row_stride, copied), std::runtime_error);
  EXPECT_THROW(describe(0, row_stride + 8, copied), std::runtime_error);
  EXPECT_THROW(describe(0, row_stride, {64, 8, 1}), std::runtime_error);
  EXPECT_THROW(describe(0, row_stride, {128, 257, 1}), std::runtime_error);
  EXPECT_THROW(describe(0, row_stride, {128, 8, 0}), std::runtime_error);
  EXPECT_THROW(map_boxes(memory.bytes, sizes, row_stride, block_stride, {24, 8, 1}, box_order::plain),
               std::runtime_error);
}

}  // namespace
}  // namespace troupe::cuda
