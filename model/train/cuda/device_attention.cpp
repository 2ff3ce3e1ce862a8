#include "model/train/cuda/device_attention.hpp"

#include <algorithm>
#include <cmath>

#include "base/to_size.hpp"

namespace troupe {
namespace {

constexpr std::int64_t most_scores = 64 << 20;  // that are there at once, unless one head has more

}  // namespace

device_attention::device_attention(const model_config& config, std::int64_t most_rows, std::int64_t most_positions,
                                   bool rounded, const cuda::stream& on)
    : config_(config),
      rounded_(rounded),
      dim_(config.head_dim),
      kv_heads_(config.kv_heads),
      group_(config.heads / config.kv_heads),
      score_stride_(rounded_up(most_positions, 64)),
      score_step_(most_rows * score_stride_),
      heads_at_once_(std::clamp<std::int64_t>(most_scores / (score_step_ * group_), 1, kv_heads_)),
      q_(to_size(most_rows * padded_row(config.heads * dim_))),
      k_(to_size(most_rows * padded_row(kv_heads_ * dim_))),
      scores_(to_size(heads_at_once_ * group_ * score_step_)),
      score_gradients_(scores_.size()),
      slopes_(config.score_cap > 0 ? scores_.size() : 0),
      angles_(config, most_positions, config.context, on) {}

void device_attention::forward(const cuda::stream& on, const input& in, float_rows out) const {
  turn(on, in);
  for_heads([&](head_range heads) {
    probabilities(on, in, heads);
    multiply(on, in, heads, cuda::head_shape::mixed, scores_in(scores_), keys(in.v, heads), queries(out, heads));
  });
}

void device_attention::backward(const cuda::stream& on, const input& in, float_rows dout, float_rows dq, float_rows dk,
                                float_rows dv) const {
  turn(on, in);
  for_heads([&](head_range heads) {
    probabilities(on, in, heads);
    multiply(on, in, heads, cuda::head_shape::scores, queries(dout, heads), keys(in.v, heads),
             scores_in(score_gradients_));
    (rounded_ ? cuda::softmax_back_rounded : cuda::softmax_back)(on, softmax_of(in, heads));
    multiply(on, in, heads, cuda::head_shape::mixed, scores_in(score_gradients_), keys(turned_k(), heads),
             queries(dq, heads));
    gather(on, in, heads, score_gradients_.data(), turned_q(), dk);
    gather(on, in, heads, scores_.data(), dout, dv);
  });
  for (const bool are_keys : {false, true}) {
    cuda::turn_args args = turned(in, are_keys);
    args.out = are_keys ? dk : dq;
    cuda::turn_heads_back(on, args);
  }
}

cuda::turn_args device_attention::turned(const input& in, bool are_keys) const {
  return {.rows = in.rows.count(),
          .heads = static_cast<int>(are_keys ? kv_heads_ : config_.heads),
          .dim = static_cast<int>(dim_),
          .positions = in.rows.positions(),
          .x = are_keys ? in.k : in.q,
          .norm = are_keys ? in.k_norm : in.q_norm,
          .eps = config_.norm_eps,
          .angles = angles_.of(in.rope),
          .out = are_keys ? turned_k() : turned_q()};
}

void device_attention::turn(const cuda::stream& on, const input& in) const {
  for (const bool are_keys : {false, true}) cuda::turn_heads(on, turned(in, are_keys));
}

void device_attention::probabilities(const cuda::stream& on, const input& in, head_range heads) const {
  multiply(on, in, heads, cuda::head_shape::scores, queries(turned_q(), heads), keys(turned_k(), heads),
           scores_in(scores_));
  if (config_.score_cap > 0) {
    cuda::softmax_args scores = softmax_of(in, heads);
    scores.factor = 1.0f / config_.score_divisor();
    cuda::cap_scores(on, scores, config_.score_cap);
  }
  (rounded_ ? cuda::softmax_rounded : cuda::softmax)(on, softmax_of(in, heads));
}

void device_attention::multiply(const cuda::stream& on, const cuda::head_product& product) const {
  (rounded_ ? cuda::multiply_heads_rounded : cuda::multiply_heads)(on, product);
}

void device_attention::multiply(const cuda::stream& on, const input& in, head_range heads, cuda::head_shape shape,
                                cuda::head_rows a, cuda::head_rows b, cuda::head_rows c) const {
  multiply(on, {.shape = shape,
                .segments = in.rows.segments(),
                .segment_count = in.rows.segment_count(),
                .longest = in.rows.longest(),
                .heads = static_cast<int>(heads.count * group_),
                .dim = static_cast<int>(dim_),
                .a = a,
                .b = b,
                .c = c});
}

void device_attention::gather(const cuda::stream& on, const input& in, head_range heads, float* scores, float_rows from,
                              float_rows to) const {
  multiply(on, {.shape = cuda::head_shape::given,
                .segments = in.rows.segments(),
                .segment_count = in.rows.segment_count(),
                .longest = in.rows.longest(),
                .heads = static_cast<int>(heads.count),
                .dim = static_cast<int>(dim_),
                .a = {scores, score_stride_, score_step_ * group_},
                .b = {from.data + heads.first * group_ * dim_, from.stride, dim_ * group_},
                .c = {to.data + heads.first * dim_, to.stride, dim_},
                .members = static_cast<int>(group_),
                .a_member = score_step_,
                .b_member = dim_});
}

cuda::softmax_args device_attention::softmax_of(const input& in, head_range heads) const {
  return {.rows = in.rows.count(),
          .heads = static_cast<int>(heads.count * group_),
          .positions = in.rows.positions(),
          .window = in.window,
          .factor = config_.score_cap > 0 ? 1.0f : 1.0f / config_.score_divisor(),
          .scores = scores_in(scores_),
          .gradients = scores_in(score_gradients_),
          .slopes = scores_in(slopes_)};
}

cuda::head_rows device_attention::queries(float_rows rows, head_range heads) const {
  return {rows.data + heads.first * group_ * dim_, rows.stride, dim_};
}

cuda::head_rows device_attention::keys(float_rows rows, head_range heads) const {
  return {rows.data + heads.first * dim_, rows.stride, dim_, static_cast<int>(group_)};
}

cuda::head_rows device_attention::scores_in(const cuda::device_buffer<float>& buffer) const {
  return {buffer.data(), score_stride_, score_step_};
}

float_rows device_attention::turned_q() const {
  return rows_of(q_, config_.heads * dim_);
}

float_rows device_attention::turned_k() const {
  return rows_of(k_, kv_heads_ * dim_);
}

}  // namespace troupe
