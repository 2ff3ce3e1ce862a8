#include "model/train/cuda/device_parameters.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::int64_t host_piece = 1 << 16;  // floats that a thread of the host takes at a time

}  // namespace

device_parameters::device_parameters(const parameter_set& host)
    : host_(host),
      sent_(host.values().size()),
      fetched_(host.values().size()),
      values_(host.values().size()),
      gradients_(host.values().size()) {}

void device_parameters::begin_pass() {
  const bool is_there = has_sent_ && std::memcmp(sent_.data(), host_.values().data(), bytes()) == 0;
  next_sent_ = is_there ? sent_.size() : 0;
}

void device_parameters::send_values(const compute& with, const float* end, const cuda::stream& on) {
  const auto wanted = to_size(end - host_.gradients().data());
  if (wanted <= next_sent_) return;
  const std::size_t first = std::exchange(next_sent_, wanted), count = wanted - first;
  with.pool.run_pieces(static_cast<std::int64_t>(count), host_piece, [&](std::int64_t from, std::int64_t some, int) {
    const std::size_t at = first + to_size(from);
    std::copy_n(host_.values().data() + at, some, sent_.data() + at);
  });
  cuda::copy(values_.data() + first, sent_.data() + first, count, copies_);
  sent_there_.record(copies_);
  sent_there_.hold(on);
  if (next_sent_ == sent_.size()) has_sent_ = true;
}

void device_parameters::clear_gradients(const cuda::stream& on) {
  cuda::clear(gradients_.data(), bytes(), on);
  parts_in_use_ = 0;
  next_end_ = fetched_.size();
}

void device_parameters::fetch_gradients(const float* first, const cuda::stream& on) {
  const auto begin = to_size(first - host_.gradients().data());
  if (begin >= next_end_) return;
  if (parts_in_use_ == parts_.size()) parts_.emplace_back();
  fetched_part& part = parts_[parts_in_use_++];
  part.first = begin, part.count = std::exchange(next_end_, begin) - begin;
  part.made.record(on);
  part.made.hold(copies_);
  cuda::copy(fetched_.data() + part.first, gradients_.data() + part.first, part.count, copies_);
  part.there.record(copies_);
}

void device_parameters::set_gradients_of_host(const compute& with) const {
  for (std::size_t i = 0; i < parts_in_use_; ++i) {
    const fetched_part& part = parts_[i];
    part.there.wait();
    with.pool.run_pieces(static_cast<std::int64_t>(part.count), host_piece,
                         [&](std::int64_t from, std::int64_t count, int) {
                           const std::size_t at = part.first + to_size(from);
                           std::copy_n(fetched_.data() + at, count, host_.gradients().data() + at);
                         });
  }
}

}  // namespace troupe
