#include "transport/collective/collective.hpp"

#include <algorithm>
#include <cassert>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

std::span<std::byte> part_of(std::span<std::byte> data, std::span<const std::size_t> ends, int rank) {
  const auto at = to_size(rank);
  const std::size_t begin = at == 0 ? 0 : ends[at - 1];
  return data.subspan(begin, ends[at] - begin);
}

}  // namespace

collective::collective(int rank, int size) : rank_(rank), size_(size) {
  if (size < 1 || rank < 0 || rank >= size) refuse("rank {} of {}: ranks count from 0", rank, size);
}

void collective::send(int peer, std::span<std::byte> bytes) {
  if (!bytes.empty()) sends_.push_back({peer, bytes});
}

void collective::receive(int peer, std::span<std::byte> bytes) {
  if (!bytes.empty()) receives_.push_back({peer, bytes});
}

/// Makes the transfers that send() and receive() named.
void collective::carry_out() {
  const std::vector<transfer> sends = std::exchange(sends_, {}), receives = std::exchange(receives_, {});
  if (failed_) throw collective_failure("the ranks have lost each other");
  try {
    exchange(sends, receives);
  } catch (...) {
    failed_ = true;
    throw;
  }
}

void collective::all_gather(std::span<std::byte> data, std::span<const std::size_t> ends) {
  assert(static_cast<int>(ends.size()) == size_ && ends.back() <= data.size());
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    send(peer, part_of(data, ends, rank_));
    receive(peer, part_of(data, ends, peer));
  }
  carry_out();
}

void collective::all_gather(std::span<std::byte> data) {
  const std::size_t part = data.size() / to_size(size_);
  std::vector<std::size_t> ends;
  for (std::size_t rank = 1; rank <= to_size(size_); ++rank) ends.push_back(rank * part);
  all_gather(data, ends);
}

void collective::gather(std::span<std::byte> data, std::span<const std::size_t> ends, int root) {
  assert(static_cast<int>(ends.size()) == size_ && ends.back() <= data.size());
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && rank_ == root) receive(peer, part_of(data, ends, peer));
  if (rank_ != root) send(root, part_of(data, ends, rank_));
  carry_out();
}

void collective::broadcast(std::span<std::byte> data, int root) {
  for (int peer = 0; peer < size_; ++peer)
    if (peer != rank_ && rank_ == root) send(peer, data);
  if (rank_ != root) receive(root, data);
  carry_out();
}

/// Every rank adds up a slice of its own, then all have all slices.
void collective::all_reduce_sum(std::span<float> data) {
  std::vector<std::size_t> ends;
  for (std::size_t rank = 0; rank < to_size(size_); ++rank)
    ends.push_back(data.size() * (rank + 1) / to_size(size_) * sizeof(float));
  const auto bytes = std::as_writable_bytes(data);
  const auto own = part_of(bytes, ends, rank_);
  slices_.resize(own.size() * to_size(size_));
  const auto slice_of = [&](int rank) { return std::span(slices_).subspan(to_size(rank) * own.size(), own.size()); };
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    send(peer, part_of(bytes, ends, peer));
    receive(peer, slice_of(peer));
  }
  carry_out();
  const auto values = [](std::span<std::byte> slice) { return reinterpret_cast<float*>(slice.data()); };
  std::copy(own.begin(), own.end(), slice_of(rank_).begin());
  for (std::size_t i = 0; i < own.size() / sizeof(float); ++i) {
    float sum = values(slice_of(0))[i];
    for (int rank = 1; rank < size_; ++rank) sum += values(slice_of(rank))[i];
    values(own)[i] = sum;
  }
  all_gather(bytes, ends);
}

}  // namespace troupe
