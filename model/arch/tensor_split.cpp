#include "model/arch/tensor_split.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace troupe {

void check(const tensor_split& split, const model_config& config) {
  if (split.ranks < 1 || split.rank < 0 || split.rank >= split.ranks || (!split.is_whole() && !split.gather))
    refuse("rank {} of {}: ranks count from 0", split.rank, split.ranks);
  if (config.kv_heads < split.ranks)
    refuse("the model has {} heads of keys and values, which {} ranks cannot share: use {} at most", config.kv_heads,
           split.ranks, config.kv_heads);
}

column_cut cut_columns(const tensor_split& split, std::int64_t units, std::int64_t unit) {
  column_cut cut;
  for (std::int64_t rank = 1; rank <= split.ranks; ++rank) cut.ends.push_back(units * rank / split.ranks * unit);
  cut.first = cut.begin_of(static_cast<std::size_t>(split.rank));
  cut.last = cut.ends[static_cast<std::size_t>(split.rank)];
  return cut;
}

void column_gather::operator()(const compute& with, float* rows, int count, std::int64_t stride, const column_cut& cut,
                               int root) {
  if (split_.is_whole()) return;
  const auto total = static_cast<std::size_t>(cut.ends.back() * count);
  if (parts_.size() < total) parts_ = aligned_buffer<float>(total);
  ends_.clear();
  for (const std::int64_t end : cut.ends) ends_.push_back(static_cast<std::size_t>(end * count));
  const auto own = static_cast<std::size_t>(split_.rank);
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
      for_part(static_cast<std::size_t>(rank),
               [](float* row, const float* part, std::int64_t n) { std::copy_n(part, n, row); });
  });
}

}  // namespace troupe
