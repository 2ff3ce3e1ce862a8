#include "model/arch/cuda/device_adapters.hpp"

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

std::int64_t bytes_of(const factor_view& factor) {
  return rounded_up(factor.blocks() * factor.block_bytes(), 256);
}

std::int64_t scale_bytes(const lora_weights& lora) {
  return rounded_up(lora.a.outs * static_cast<std::int64_t>(sizeof(float)), 256);
}

}  // namespace

void device_adapters::add(const lora_adapter& adapter, const cuda::stream& on) {
  if (places_.contains(&adapter)) return;
  std::vector<cuda::lora_factors> entries(static_cast<std::size_t>(table_stride()));
  std::int64_t bytes = 0;
  const auto for_all = [&](auto visit) {
    for (std::int64_t layer = 0; layer < layers_; ++layer)
      for (const linear_kind kind : every_linear) {
        const auto* lora = adapter.find(first_layer_ + layer, kind);
        if (!lora) continue;
        lora_weights own = *lora;
        own.b = outputs_of(own.b, cuts_.of(kind));
        visit(own, entries[static_cast<std::size_t>(linear(layer, kind))]);
      }
  };
  for_all([&](const lora_weights& lora, cuda::lora_factors&) {
    bytes += scale_bytes(lora) + bytes_of(lora.a) + bytes_of(lora.b);
  });
  place own{free_row(), cuda::device_buffer<std::byte>(static_cast<std::size_t>(bytes))};
  std::byte* to = own.factors.data();
  const auto move = [&](const factor_view& factor) {
    cuda::copy(to, factor.weights, static_cast<std::size_t>(factor.blocks() * factor.block_bytes()), on);
    return std::exchange(to, to + bytes_of(factor));
  };
  const auto move_scales = [&](const lora_weights& lora) {
    auto* scales = reinterpret_cast<float*>(to);
    cuda::copy(scales, lora.scales, static_cast<std::size_t>(lora.a.outs), on);
    to += scale_bytes(lora);
    return scales;
  };
  for_all([&](const lora_weights& lora, cuda::lora_factors& entry) {
    entry = {.a = move(lora.a),
             .b = move(lora.b),
             .scales = move_scales(lora),
             .rank = static_cast<std::int32_t>(lora.b.ins),
             .a_ins = static_cast<std::int32_t>(lora.a.ins),
             .a_kind = lora.a.kind,
             .b_kind = lora.b.kind};
  });
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
    if (static_cast<std::size_t>(place.row) < taken.size()) taken[static_cast<std::size_t>(place.row)] = true;
  return static_cast<std::int32_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
}

void device_adapters::grow_table(const cuda::stream& on) {
  const std::int32_t rows = std::max(2 * rows_, 8);
  cuda::device_buffer<cuda::lora_factors> larger(static_cast<std::size_t>(rows * table_stride()));
  cuda::copy(larger.data(), table_.data(), table_.size(), on);
  on.wait();
  table_ = std::move(larger);
  rows_ = rows;
}

}  // namespace troupe
