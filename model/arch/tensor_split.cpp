#include "model/arch/tensor_split.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {
namespace {

/// How many of a matrix' outputs are in the blocks of these columns.
std::int64_t outputs_in(const column_cut& cut, std::int64_t outs) {
  return std::min(cut.last_block() * outs_per_block, outs) - cut.first_output();
}

}  // namespace

std::string_view ranks_lack(const model_config& config) {
  if (config.experts.count > 0) return "the model is a mixture of experts, which the workers of a stage cannot share";
  if (config.keeps_states() || config.attention_gate)
    return "the model has layers that keep states, or gates of attention, which the workers of a stage cannot share";
  if (config.is_latent()) return "the model has latent attention, which the workers of a stage cannot share";
  if (config.has_uncommon_heads())
    return "the model has layers whose heads differ, or that share keys and values, which the workers of a stage "
           "cannot share";
  return {};
}

void check(const tensor_split& split, const model_config& config) {
  if (split.ranks < 1 || split.rank < 0 || split.rank >= split.ranks || (!split.is_whole() && !split.gather))
    refuse("rank {} of {}: ranks count from 0", split.rank, split.ranks);
  if (const auto missing = ranks_lack(config); !split.is_whole() && !missing.empty())
    refuse("{}: give each stage one worker", missing);
  if (config.kv_heads < split.ranks)
    refuse("the model has {} heads of keys and values, which {} ranks cannot share: use {} at most", config.kv_heads,
           split.ranks, config.kv_heads);
}

column_cut cut_columns(const tensor_split& split, std::int64_t units, std::int64_t unit) {
  column_cut cut;
  for (std::int64_t rank = 1; rank <= split.ranks; ++rank) cut.ends.push_back(units * rank / split.ranks * unit);
  cut.first = cut.begin_of(to_size(split.rank));
  cut.last = cut.ends[to_size(split.rank)];
  return cut;
}

column_cut cut_blocks(const tensor_split& split, std::int64_t outs) {
  return cut_columns(split, padded_outs(outs) / outs_per_block, outs_per_block);
}

output_cuts::output_cuts(const tensor_split& split, const model_config& config, const head_sizes& sizes)
    : hidden(cut_blocks(split, config.hidden)),
      ffn(cut_blocks(split, config.ffn)),
      vocab(cut_blocks(split, config.vocab_size)) {
  const auto [dim, kv_heads] = sizes;
  heads = cut_columns(split, kv_heads, 1);
  q = cut_columns(split, kv_heads, config.heads / kv_heads * dim * (config.attention_gate ? 2 : 1));
  kv = cut_columns(split, kv_heads, dim);
}

const column_cut& output_cuts::of(linear_kind kind) const {
  switch (kind) {
    case linear_kind::q:
      return q;
    case linear_kind::k:
    case linear_kind::v:
      return kv;
    case linear_kind::gate:
    case linear_kind::up:
      return ffn;
    default:
      return hidden;
  }
}

matrix_view outputs_of(const matrix_view& w, const column_cut& cut) {
  return outputs_of(w, cut.first_output(), outputs_in(cut, w.outs));
}

factor_view outputs_of(factor_view b, const column_cut& cut) {
  b.weights += cut.first_block() * b.block_bytes();
  b.outs = outputs_in(cut, b.outs);
  return b;
}

void column_gather::operator()(const compute& with, float* rows, int count, std::int64_t stride, const column_cut& cut,
                               int root) {
  if (split_.is_whole()) return;
  const auto total = to_size(cut.ends.back() * count);
  if (parts_.size() < total) parts_ = aligned_buffer<float>(total);
  ends_.clear();
  for (const std::int64_t end : cut.ends) ends_.push_back(to_size(end * count));
  const auto own = to_size(split_.rank);
  // Part r is [count, its columns].
  const auto for_part = [&](std::size_t rank, auto copy) {
    const std::int64_t begin = cut.begin_of(rank), width = cut.ends[rank] - begin;
    for (std::int64_t row = 0; row < count; ++row)
      copy(rows + row * stride + begin, parts_.data() + begin * count + row * width, width);
  };
  for_part(own, [](const float* row, float* part, std::int64_t n) { std::copy_n(row, n, part); });
  split_.gather({parts_.data(), total}, ends_, root);
  if (root != tensor_split::everyone && root != split_.rank) return;
  with.pool.run(split_.ranks, [&](int rank, int) {
    if (rank != split_.rank)
      for_part(to_size(rank), [](float* row, const float* part, std::int64_t n) { std::copy_n(part, n, row); });
  });
}

}  // namespace troupe
