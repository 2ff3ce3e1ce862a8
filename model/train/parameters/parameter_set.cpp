#include "model/train/parameters/parameter_set.hpp"

#include <algorithm>

#include "base/to_size.hpp"
#include "model/ops/matrix.hpp"

namespace troupe {

std::size_t parameter_set::add(std::string name, std::int64_t rows, std::int64_t columns, bool decays) {
  parameter& p = list_.emplace_back(parameter{std::move(name), rows, columns, decays});
  p.stride = rounded_up(columns, outs_per_block);
  p.offset = total_;
  total_ += p.size();
  return list_.size() - 1;
}

void parameter_set::allocate() {
  values_ = aligned_buffer<float>(total_);
  gradients_ = aligned_buffer<float>(total_);
}

const parameter* parameter_set::find(std::string_view name) const {
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const parameter& p) { return p.name == name; });
  return found == list_.end() ? nullptr : &*found;
}

void parameter_set::clear_gradients() const {
  std::fill_n(gradients_.data(), gradients_.size(), 0.0f);
}

std::vector<float> parameter_set::compact(const parameter& p, std::span<const float> from) const {
  std::vector<float> values;
  values.reserve(to_size(p.rows * p.columns));
  for (std::int64_t row = 0; row < p.rows; ++row) {
    const float* at = from.data() + p.offset + row * p.stride;
    values.insert(values.end(), at, at + p.columns);
  }
  return values;
}

void parameter_set::expand(const parameter& p, std::span<const float> compacted, std::span<float> to) const {
  for (std::int64_t row = 0; row < p.rows; ++row)
    std::copy_n(compacted.data() + row * p.columns, p.columns, to.data() + p.offset + row * p.stride);
}

}  // namespace troupe
