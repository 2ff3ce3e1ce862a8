#include "model/arch/cuda/device_gather.hpp"

#include "base/to_size.hpp"

namespace troupe {

device_gather::device_gather(tensor_split split, std::int64_t most_floats) : split_(std::move(split)) {
  if (split_.is_whole()) return;
  const auto size = to_size(most_floats);
  if (split_.on_device)
    on_device_ = cuda::device_buffer<float>(size);
  else
    on_host_ = cuda::pinned_buffer<float>(size);
  parts_ = split_.on_device ? on_device_.data() : on_host_.data();
}

void device_gather::operator()(const cuda::stream& on, float_rows rows, int count, const column_cut& cut, int root) {
  if (split_.is_whole()) return;
  // Part r is [count, its columns].
  const auto width = [&](std::size_t rank) { return cut.ends[rank] - cut.begin_of(rank); };
  const auto part = [&](std::size_t rank) { return parts_ + cut.begin_of(rank) * count; };
  const auto columns = [&](std::size_t rank) { return rows.data + cut.begin_of(rank); };
  const auto own = to_size(split_.rank);
  cuda::copy_columns(part(own), width(own), columns(own), rows.stride, width(own), count, on);
  on.wait();
  ends_.clear();
  for (const std::int64_t end : cut.ends) ends_.push_back(to_size(end * count));
  split_.gather({parts_, ends_.back()}, ends_, root);
  if (root != tensor_split::everyone && root != split_.rank) return;
  for (std::size_t rank = 0; rank < cut.ends.size(); ++rank)
    if (rank != own) cuda::copy_columns(columns(rank), rows.stride, part(rank), width(rank), width(rank), count, on);
}

}  // namespace troupe
