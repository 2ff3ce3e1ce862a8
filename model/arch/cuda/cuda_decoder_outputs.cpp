// What the host gets of a pass.
#include <algorithm>
#include <bit>

#include "base/to_size.hpp"
#include "model/arch/cuda/cuda_decoder.hpp"

namespace troupe {

template <class Take>
void cuda_decoder::finish(std::initializer_list<std::span<const int>> lists, const cuda::row_codes& codes, Take take) {
  std::int32_t* end = picked_.data();
  for (const auto& rows : lists) end = std::copy(rows.begin(), rows.end(), end);
  const auto all = static_cast<int>(end - picked_.data());
  if (all == 0) return;
  use();
  cuda::copy(picked_on_device_.data(), picked_.data(), to_size(all), stream_);
  for (int first = 0; first < all; first += picked_rows_) {
    const int count = std::min(all - first, picked_rows_);
    products_.normalize(count, weights_.final_norm, picked_on_device_.data() + first, codes, true);
    take(first, count);
  }
  stream_.wait();
}

const float* cuda_decoder::logits(const float*, const wanted_logits& wanted) {
  const model_config& config = model_->config;
  const float_rows rows{logits_.data(), logit_stride()};
  const column_cut& cut = products_.cuts().vocab;
  const cuda::product product{weights_.head, {logits_.data() + cut.first, rows.stride}};
  const cuda::row_codes codes = products_.codes().view(weights_.head.kind);
  float* const scratch = products_.scratch().data();
  const auto stride = to_size(logit_stride());
  const std::size_t largest = wanted.largest_of.size();
  float* to = lend(wanted.rows.size(), logit_stride());
  finish({wanted.largest_of, wanted.rows}, codes, [&](int first, int count) {
    cuda::matmul(stream_, std::span(&product, 1), {count, products_.normed(), codes, scratch});
    if (config.logit_factor != 1 || config.logit_cap != 0)
      cuda::finish_logits(stream_, {.rows = count,
                                    .n = cut.count(),
                                    .logits = product.y,
                                    .factor = config.logit_factor,
                                    .cap = config.logit_cap});
    products_.gather(rows, count, cut, 0);
    const int found = std::clamp(static_cast<int>(largest) - first, 0, count);
    const auto floats = to_size(count - found) * stride;
    cuda::argmax(stream_, {found, model_->config.vocab_size, rows, largest_on_device_.data() + first, scratch});
    cuda::copy(to, logits_.data() + to_size(found) * stride, floats, stream_);
    to += floats;
    cuda::copy(largest_.data() + first, largest_on_device_.data() + first, to_size(found), stream_);
  });
  std::copy_n(largest_.data(), largest, wanted.largest);
  return lent_.data();
}

const float* cuda_decoder::normalized(const float*, std::span<const int> rows) {
  float* const out = lend(rows.size(), hidden_stride());
  finish({rows}, {}, [&](int first, int count) {
    const auto stride = to_size(hidden_stride());
    cuda::copy(out + to_size(first) * stride, products_.normed().data, to_size(count) * stride, stream_);
  });
  return out;
}

float* cuda_decoder::lend(std::size_t rows, std::int64_t stride) {
  const std::size_t needed = rows == 0 ? 0 : std::bit_ceil(rows) * to_size(stride);
  if (lent_.size() < needed) lent_ = cuda::pinned_buffer<float>(needed);
  return lent_.data();
}

}  // namespace troupe
