#include "model/lora/adapter.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.hpp"
#include "model/ops/pack.hpp"

namespace troupe {
namespace {

matrix_view pack(const std::vector<float>& rows, std::int64_t outs, std::int64_t ins, std::byte* to) {
  matrix_packer packer(scheme::f32, outs, ins, to);
  for (std::int64_t out = 0; out < outs; ++out) packer.put(out, rows.data() + out * ins);
  return view_of(scheme::f32, outs, ins, to);
}

std::int64_t outs_of(const adapter_part& part) {
  return static_cast<std::int64_t>(part.b.size()) / part.rank;
}
std::int64_t ins_of(const adapter_part& part) {
  return static_cast<std::int64_t>(part.a.size()) / part.rank;
}

/// Where "model.layers.3.self_attn.q_proj" belongs.
lora_weights& place(std::vector<std::array<lora_weights, linear_kinds>>& layers, std::string_view module) {
  constexpr std::string_view prefix = "model.layers.";
  constexpr std::array<std::string_view, linear_kinds> names{"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                                                             "self_attn.o_proj", "mlp.gate_proj",    "mlp.up_proj",
                                                             "mlp.down_proj"};
  std::string_view rest = module.substr(std::min(prefix.size(), module.size()));
  std::size_t layer = layers.size();
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), layer);
  rest.remove_prefix(std::min(static_cast<std::size_t>(end - rest.data()) + 1, rest.size()));
  const auto kind = std::find(names.begin(), names.end(), rest);
  if (error != std::errc() || layer >= layers.size() || kind == names.end())
    refuse("adapter for {}: the model has no such linear layer", module);
  return layers[layer][static_cast<std::size_t>(kind - names.begin())];
}

}  // namespace

lora_adapter::lora_adapter(const adapter_file& file, std::int64_t layers) : layers_(static_cast<std::size_t>(layers)) {
  std::size_t total = 0;
  const auto bytes_a = [](const adapter_part& p) { return packed_bytes(scheme::f32, p.rank, ins_of(p)).total(); };
  const auto bytes_b = [](const adapter_part& p) { return packed_bytes(scheme::f32, outs_of(p), p.rank).total(); };
  for (const auto& part : file.parts) {
    if (part.rank > most_adapter_rank)
      refuse("adapter for {}: rank {} is above {}: use an adapter of lower rank", part.module, part.rank,
             most_adapter_rank);
    total += bytes_a(part) + bytes_b(part);
  }
  memory_ = aligned_buffer<std::byte>(total);
  std::byte* at = memory_.data();
  for (const auto& part : file.parts) {
    const matrix_view a = pack(part.a, part.rank, ins_of(part), at);
    const matrix_view b = pack(part.b, outs_of(part), part.rank, at + bytes_a(part));
    at += bytes_a(part) + bytes_b(part);
    place(layers_, part.module) = {a, b, part.scale};
    max_rank_ = std::max(max_rank_, part.rank);
  }
}

}  // namespace troupe
