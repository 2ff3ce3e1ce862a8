// What model/ops/cuda/copy_engine.hpp gives kernels, in plain C++: gates and copies of cuda_host/fibers.hpp.
#pragma once
#include <cuda_host/fibers.hpp>

#include <algorithm>
#include <cstring>

#include "model/ops/cuda/copy_engine.hpp"
#include "model/ops/cuda/wgmma.hpp"

namespace troupe::cuda {

struct box {
  int bytes, rows, blocks;
};
enum class box_order { plain, swizzled };
struct boxes_map {
  std::byte* memory;
  box sizes;
  std::int64_t row_stride, block_stride;
  box copied;
  box_order order;

  std::size_t copied_bytes() const { return static_cast<std::size_t>(copied.bytes * copied.rows * copied.blocks); }
};

inline bool can_be_copied(const boxes_map& map) {
  const box &all = map.sizes, &one = map.copied;
  const auto whole_pieces = [](std::int64_t n) { return n % 16 == 0; };
  return whole_pieces(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(map.memory))) &&
         whole_pieces(map.row_stride) && whole_pieces(map.block_stride) && whole_pieces(one.bytes) &&
         std::min({all.bytes, all.rows, all.blocks, one.bytes, one.rows, one.blocks}) > 0 &&
         std::max({one.bytes, one.rows, one.blocks}) <= 256 &&
         (map.order == box_order::plain || one.bytes == swizzled_row_bytes);
}
inline boxes_map map_boxes(const void* memory, const box& sizes, std::int64_t row_stride, std::int64_t block_stride,
                           const box& copied, box_order order) {
  auto* first = static_cast<std::byte*>(const_cast<void*>(memory));
  const boxes_map map{first, sizes, row_stride, block_stride, copied, order};
  check(can_be_copied(map) ? cudaSuccess : cudaErrorInvalidValue, "describing memory to the copy engine");
  return map;
}

/// f(offset in shared memory, where it is in memory) for all pieces of 16 bytes of a box.
template <class F>
void for_pieces(const boxes_map& map, const box& first, F f) {
  const auto [bytes, rows, blocks] = map.copied;
  const int pieces = bytes / 16;
  for (int row = 0; row < rows * blocks; ++row)
    for (int piece = 0; piece < pieces; ++piece) {
      const int at = map.order == box_order::plain ? row * pieces + piece : swizzled_piece(row, piece);
      f(at * 16, box{first.bytes + piece * 16, first.rows + row % rows, first.blocks + row / rows});
    }
}
/// f(its offset in the piece, its place in memory, their count) for the bytes of a piece that are not outside, if any.
template <class F>
void for_bytes_inside(const boxes_map& map, const box& piece, F f) {
  const auto is_inside = [](int at, int size) { return at >= 0 && at < size; };
  if (!is_inside(piece.rows, map.sizes.rows) || !is_inside(piece.blocks, map.sizes.blocks)) return;
  const int begin = std::clamp(-piece.bytes, 0, 16), end = std::clamp(map.sizes.bytes - piece.bytes, begin, 16);
  std::byte* row = map.memory + piece.blocks * map.block_stride + piece.rows * map.row_stride;
  if (begin < end) f(begin, row + piece.bytes + begin, static_cast<std::size_t>(end - begin));
}

class gate {
 public:
  void set(int arrivals) { cuda_host::set_gate(&state_, arrivals); }
  void expect(int bytes) { cuda_host::arrive_at_gate(&state_, bytes); }
  void arrive() { cuda_host::arrive_at_gate(&state_, 0); }
  void arrive(int rank) { cuda_host::arrive_at_gate(cuda_host::place_in_block(&state_, rank), 0); }
  void wait(bool odd) { cuda_host::wait_at_gate(&state_, odd); }

 private:
  std::uint64_t state_;
};

inline int whole_warp_number() {
  return __shfl_sync(whole_warp, static_cast<int>(threadIdx.x) / 32, 0);
}

inline void show_gates() {}
enum class meeting { to_wait, to_read };
template <meeting>
void meet_cluster() {
  cuda_host::cluster_barrier();
}
template <class T>
const T* of_rank(const T* shared, int rank) {
  return static_cast<const T*>(cuda_host::place_in_block(shared, rank));
}

template <int>
void give_registers() {}
template <int>
void take_registers() {}

struct receivers {
  std::uint16_t ranks;
  bool is_one;

  void add(int rank) { ranks = static_cast<std::uint16_t>(ranks | 1u << rank); }
};

/// Swizzling goes by addresses.
inline void demand_aligned_box(const boxes_map& map, const void* shared) {
  cuda_host::demand_aligned("a box in shared memory", shared, map.order == box_order::plain ? 128 : 1024);
}
inline void copy_box(void* shared, const boxes_map& from, const box& first, gate& arrived, receivers to) {
  demand_aligned_box(from, shared);
  const unsigned ranks = to.is_one ? 1u << cuda_host::block_rank() : to.ranks;
  const auto copy = [map = from, first](std::byte* there) {
    std::memset(there, 0, map.copied_bytes());
    for_pieces(map, first, [&](int offset, const box& piece) {
      for_bytes_inside(map, piece, [&](int begin, const std::byte* bytes, std::size_t count) {
        std::memcpy(there + offset + begin, bytes, count);
      });
    });
  };
  cuda_host::start_cluster_copy({shared, &arrived, from.copied_bytes(), ranks, copy});
}

inline void store_box(const boxes_map& to, const box& first, const void* shared) {
  demand_aligned_box(to, shared);
  const auto store = [map = to, first](const std::byte* taken) {
    for_pieces(map, first, [&](int offset, const box& piece) {
      for_bytes_inside(map, piece, [&](int begin, std::byte* bytes, std::size_t count) {
        std::memcpy(bytes, taken + offset + begin, count);
      });
    });
  };
  cuda_host::start_store({static_cast<const std::byte*>(shared), to.copied_bytes(), store});
}
inline void close_boxes() {
  cuda_host::close_store_group();
}
inline void wait_until_read() {
  cuda_host::wait_until_stores_are_read();
}
inline void wait_until_stored() {
  cuda_host::wait_until_stored();
}

}  // namespace troupe::cuda
