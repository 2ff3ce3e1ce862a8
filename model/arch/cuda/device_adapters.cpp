#include "model/arch/cuda/device_adapters.hpp"

#include <algorithm>
#include <utility>

#include "base/to_size.hpp"

namespace troupe {
namespace {

std::int64_t bytes_of(const factor_view& factor) {
  return rounded_up(factor.blocks() * factor.block_bytes(), 256);
}

std::int64_t scale_bytes(const lora_weights& lora) {
  return rounded_up(lora.a.outs * static_cast<std::int64_t>(sizeof(float)), 256);
}

std::int64_t bytes_of(const lora_weights& lora) {
  return scale_bytes(lora) + bytes_of(lora.a) + bytes_of(lora.b);
}

/// Puts factors one behind the other into a device's memory.
struct factor_writer {
  std::byte* to;
  const cuda::stream& on;

  cuda::lora_factors put(const lora_weights& lora) {
    return {.a = move(lora.a),
            .b = move(lora.b),
            .scales = move_scales(lora),
            .rank = static_cast<std::int32_t>(lora.b.ins),
            .a_ins = static_cast<std::int32_t>(lora.a.ins),
            .a_kind = lora.a.kind,
            .b_kind = lora.b.kind};
  }

 private:
  const std::byte* move(const factor_view& factor) {
    cuda::copy(to, factor.weights, to_size(factor.blocks() * factor.block_bytes()), on);
    return std::exchange(to, to + bytes_of(factor));
  }
  const float* move_scales(const lora_weights& lora) {
    auto* scales = reinterpret_cast<float*>(to);
    cuda::copy(scales, lora.scales, to_size(lora.a.outs), on);
    to += scale_bytes(lora);
    return scales;
  }
};

}  // namespace

/// Visits this decoder's part of each of the adapter's pairs of factors, and its place in a row of the table.
template <class Visit>
void device_adapters::for_each_pair(const lora_adapter& adapter, Visit visit) const {
  for (std::int64_t layer = 0; layer < layers_; ++layer)
    for (const linear_kind kind : every_linear) {
      const auto* lora = adapter.find(first_layer_ + layer, kind);
      if (!lora) continue;
      lora_weights own = *lora;
      own.b = outputs_of(own.b, cuts_.of(kind));
      visit(own, linear(layer, kind));
    }
}

void device_adapters::add(const lora_adapter& adapter, const cuda::stream& on) {
  if (places_.contains(&adapter)) return;
  std::int64_t bytes = 0;
  for_each_pair(adapter, [&](const lora_weights& lora, std::int64_t) { bytes += bytes_of(lora); });
  place own{free_row(), cuda::device_buffer<std::byte>(to_size(bytes))};
  factor_writer writer{own.factors.data(), on};
  std::vector<cuda::lora_factors> entries(to_size(table_stride()));
  for_each_pair(adapter, [&](const lora_weights& lora, std::int64_t at) { entries[to_size(at)] = writer.put(lora); });
  if (own.row == rows_) grow_table(on);
  cuda::copy(table_.data() + own.row * table_stride(), entries.data(), entries.size(), on);
  on.wait();  // `entries` ends here
  while (most_rank_ < adapter.max_rank()) most_rank_ *= 2;
  places_.emplace(&adapter, std::move(own));
}

void device_adapters::remove(const lora_adapter& adapter, const cuda::stream& on) {
  on.wait();  // work under way may still read it
  places_.erase(&adapter);
}

std::int32_t device_adapters::free_row() const {
  std::vector<bool> taken(places_.size() + 1);
  for (const auto& [adapter, place] : places_)
    if (to_size(place.row) < taken.size()) taken[to_size(place.row)] = true;
  return static_cast<std::int32_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
}

void device_adapters::grow_table(const cuda::stream& on) {
  const std::int32_t rows = std::max(2 * rows_, 8);
  cuda::device_buffer<cuda::lora_factors> larger(to_size(rows * table_stride()));
  cuda::copy(larger.data(), table_.data(), table_.size(), on);
  on.wait();
  table_ = std::move(larger);
  rows_ = rows;
}

}  // namespace troupe
