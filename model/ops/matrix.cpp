#include "model/ops/matrix.hpp"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/ranges.h>

#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 8> names{"f32", "bf16", "u8", "u8g64", "q8", "q4", "u4g32", "mxfp4"};

/// What other programs call weights of about this size and quality, in small letters.
struct other_name {
  std::string_view theirs, ours;
};
constexpr std::array<other_name, 18> other_names{{{"q8_0", "u8"},
                                                  {"int8", "u8"},
                                                  {"8bit", "u8"},
                                                  {"bitsandbytes", "u8"},
                                                  {"q4_0", "q4"},
                                                  {"q4_1", "u4g32"},
                                                  {"q4_k", "u4g32"},
                                                  {"q4_k_m", "u4g32"},
                                                  {"q4_k_s", "u4g32"},
                                                  {"int4", "u4g32"},
                                                  {"4bit", "u4g32"},
                                                  {"nf4", "u4g32"},
                                                  {"bfloat16", "bf16"},
                                                  {"f16", "bf16"},
                                                  {"fp16", "bf16"},
                                                  {"float16", "bf16"},
                                                  {"float32", "f32"},
                                                  {"fp32", "f32"}}};
/// Where those who write so want what the files have.
constexpr std::array<std::string_view, 9> as_in_files{
    "auto", "none", "awq", "gptq", "fp8", "gguf", "compressed-tensors", "native", "default"};

/// "; q8_0 is about u8 here", where that is known.
std::string hint_for(std::string_view name) {
  const std::string lower = lower_case(name);
  if (std::ranges::count(as_in_files, std::string_view(lower)) > 0)
    return ", or leave it out to have the weights as the files have them";
  const auto other = std::ranges::find(other_names, std::string_view(lower), &other_name::theirs);
  return other == other_names.end() ? "" : fmt::format("; {} is about {} here", other->theirs, other->ours);
}

}  // namespace

std::string_view name_of(scheme s) {
  return names[to_size(s)];
}

std::string_view scheme_names() {
  static const std::string all = fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
  return all;
}

scheme scheme_from_name(std::string_view name, std::string_view where) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<scheme>(i);
  refuse("{}: unknown quantization '{}': use {}{}", where, name, scheme_names(), hint_for(name));
}

matrix_bytes part_bytes(scheme kind, std::int64_t outs, std::int64_t ins) {
  const std::int64_t rows = padded_outs(outs), columns = padded_ins(kind, ins);
  const auto factors = to_size(rows * groups_of(kind, ins) * factor_bytes(kind));
  return {to_size(rows / outs_per_block * packed_block_bytes(kind, columns)), factors, has_mids(kind) ? factors : 0};
}

matrix_bytes packed_bytes(scheme kind, std::int64_t outs, std::int64_t ins) {
  const matrix_bytes parts = part_bytes(kind, outs, ins);
  return {rounded_up(parts.weights, 64), rounded_up(parts.scales, 64), rounded_up(parts.mids, 64)};
}

matrix_view view_of(scheme kind, std::int64_t outs, std::int64_t ins, const std::byte* data) {
  const matrix_bytes bytes = packed_bytes(kind, outs, ins);
  const std::byte* scales = data + bytes.weights;
  return {kind, outs, ins, data, scales, scales + bytes.scales};
}

/// All three parts lie block by block.
matrix_view outputs_of(matrix_view w, std::int64_t first, std::int64_t outs) {
  const matrix_bytes before = part_bytes(w.kind, first, w.ins);
  w.weights += before.weights;
  w.scales += before.scales;
  w.mids += before.mids;
  w.outs = outs;
  return w;
}

}  // namespace troupe
