// Attention within examples on a device, there and back, against the processor's.
#include "model/train/cuda/device_attention.hpp"
#include "model/ops/isa.hpp"
#include "model/train/passes/segment_attention.hpp"
#include "tests/model/arch/cuda/on_gpu.hpp"
#include "tests/model/ops/random_data.hpp"
#include "tests/model/train/passes/train_fixture.hpp"

namespace troupe {
namespace {

/// Heads of 10 values, two to a head of keys, in examples that are shorter and longer than a tile.
struct attention_case {
  model_config config;
  training_rows batch;
  std::int64_t window;
  std::int64_t q_width = 40, kv_width = 20;
  aligned_buffer<float> q, k, v, dout, q_norm, k_norm;

  /// `in_part`: not all of a head turns, and scores are divided by another root.
  attention_case(std::int64_t window_, bool normed, bool in_part, float cap) : window(window_) {
    config.layers = 1, config.hidden = 40, config.heads = 4, config.kv_heads = 2, config.head_dim = 10;
    config.vocab_size = 50, config.context = 256, config.qk_norm = normed, config.score_cap = cap;
    if (in_part) config.rotary_dim = 6, config.score_dim = 7;
    batch = some_rows(config, {5, 1, 130});
    random_data random(81);
    const auto rows = [&](std::int64_t width) {
      return random.rows(static_cast<int>(batch.rows()), width, train_stride(width));
    };
    q = rows(q_width), k = rows(kv_width), v = rows(kv_width), dout = rows(q_width);
    q_norm = random.rows(1, 10, 16), k_norm = random.rows(1, 10, 16);
  }
};

/// out, dq, dk and dv, without what lies behind rows.
using results = std::vector<float>;

void add_rows(results& all, const float* from, std::int64_t rows, std::int64_t width, std::int64_t stride) {
  for (std::int64_t row = 0; row < rows; ++row) all.insert(all.end(), from + row * stride, from + row * stride + width);
}

results on_the_processor(const attention_case& c) {
  thread_pool pool(1);
  const compute with{pool, kernels()};
  segment_attention attention(c.config, c.config.usual_heads(), 130, 1);
  trained_layer layer;
  layer.q_norm.weight = c.q_norm.data(), layer.k_norm.weight = c.k_norm.data();
  const std::int64_t q_stride = train_stride(c.q_width), kv_stride = train_stride(c.kv_width);
  const segment_attention::input in{.batch = c.batch,
                                    .layer = layer,
                                    .k_norm = layer.k_norm,
                                    .window = c.window,
                                    .rope = layer_rope::global,
                                    .q = {c.q.data(), q_stride},
                                    .k = {c.k.data(), kv_stride},
                                    .v = {c.v.data(), kv_stride}};
  aligned_buffer<float> out(c.q.size()), dq(c.q.size()), dk(c.k.size()), dv(c.k.size());
  attention.forward(with, in, {out.data(), q_stride});
  attention.backward(
      with, in, {{c.dout.data(), q_stride}, {dq.data(), q_stride}, {dk.data(), kv_stride}, {dv.data(), kv_stride}});
  results all;
  for (const auto* queries : {&out, &dq}) add_rows(all, queries->data(), c.batch.rows(), c.q_width, q_stride);
  for (const auto* keys : {&dk, &dv}) add_rows(all, keys->data(), c.batch.rows(), c.kv_width, kv_stride);
  return all;
}

class rows_there {
 public:
  rows_there(std::int64_t rows, std::int64_t width)
      : rows_(rows), width_(width), memory_(static_cast<std::size_t>(rows * padded_row(width))) {}
  rows_there(std::int64_t rows, std::int64_t width, const float* from, const cuda::stream& on)
      : rows_there(rows, width) {
    for (std::int64_t row = 0; row < rows; ++row)
      cuda::copy(view().data + row * view().stride, from + row * train_stride(width), static_cast<std::size_t>(width),
                 on);
  }
  float_rows view() const { return {memory_.data(), padded_row(width_)}; }
  void add_to(results& all, const cuda::stream& on) const {
    std::vector<float> here(memory_.size());
    cuda::copy(here.data(), memory_.data(), here.size(), on);
    on.wait();
    add_rows(all, here.data(), rows_, width_, padded_row(width_));
  }

 private:
  std::int64_t rows_, width_;
  cuda::device_buffer<float> memory_;
};

results on_a_gpu(const attention_case& c, bool rounded) {
  cuda::use_device(first_gpu.gpu);
  const cuda::stream on;
  const std::int64_t rows = c.batch.rows();
  device_rows batch(rows);
  batch.fill(c.batch, on);
  const device_attention attention(c.config, rows, 130, rounded, on);
  const rows_there q(rows, c.q_width, c.q.data(), on), k(rows, c.kv_width, c.k.data(), on),
      v(rows, c.kv_width, c.v.data(), on), dout(rows, c.q_width, c.dout.data(), on);
  const rows_there out(rows, c.q_width), dq(rows, c.q_width), dk(rows, c.kv_width), dv(rows, c.kv_width);
  const rows_there q_norm(1, 10, c.q_norm.data(), on), k_norm(1, 10, c.k_norm.data(), on);
  const device_attention::input in{.rows = batch,
                                   .window = c.window,
                                   .q_norm = c.config.qk_norm ? q_norm.view().data : nullptr,
                                   .k_norm = c.config.qk_norm ? k_norm.view().data : nullptr,
                                   .q = q.view(),
                                   .k = k.view(),
                                   .v = v.view()};
  attention.forward(on, in, out.view());
  attention.backward(on, in, dout.view(), dq.view(), dk.view(), dv.view());
  results all;
  for (const rows_there* made : {&out, &dq, &dk, &dv}) made->add_to(all, on);
  return all;
}

class device_attention_test : public testing::TestWithParam<std::tuple<std::int64_t, bool, bool, float>> {
 protected:
  void SetUp() override { skip_without_gpu(); }
};

TEST_P(device_attention_test, is_the_processors) {
  const auto [window, normed, in_part, cap] = GetParam();
  const attention_case c(window, normed, in_part, cap);
  const results expected = on_the_processor(c);
  for (const bool rounded : {false, true}) {
    const results got = on_a_gpu(c, rounded);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], rounded ? 3e-2 : 1e-3) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(windows_and_norms, device_attention_test,
                         testing::Values(std::tuple{0, false, false, 0.0f}, std::tuple{70, true, false, 0.0f},
                                         std::tuple{0, true, true, 0.0f}, std::tuple{70, false, false, 0.5f}));

}  // namespace
}  // namespace troupe
