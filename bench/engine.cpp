#include "bench/engine.hpp"

#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "bench/limits.hpp"
#include "bench/timing.hpp"
#include "model/arch/single_sequence.hpp"

namespace troupe::bench {
namespace {

/// What one token needs: bytes that are read, and weights that are multiplied (the head apart: prefill needs it once).
struct work {
  std::size_t bytes = 0;
  double layer_weights = 0;
  double head_weights = 0;
};

work work_of(const loaded_model& model) {
  work total;
  const auto add = [&](const matrix_view& w) {
    total.bytes += packed_bytes(w.kind, w.outs, w.ins).total();
    return static_cast<double>(w.outs * w.ins);
  };
  for (const layer_weights& layer : model.layers)
    for (const linear_weights* linear : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.gate, &layer.up, &layer.down})
      if (linear->w.weights) total.layer_weights += add(linear->w);
  total.head_weights = add(model.head);
  return total;
}

std::vector<std::int32_t> some_tokens(int count, std::int64_t vocab) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (auto& token : tokens)
    token = static_cast<std::int32_t>((state = state * 1664525u + 1013904223u) % static_cast<std::uint64_t>(vocab));
  return tokens;
}

}  // namespace

void run_engine(const std::shared_ptr<const loaded_model>& model, const engine_options& options, const compute& with,
                const report& out) {
  const work needed = work_of(*model);
  const double read = read_limit(with, model->file.bytes());
  const bool integer = is_integer(model->layers.front().q.w.kind);
  const double products = integer ? int8_limit(with) : fp32_limit(with);
  out.title(fmt::format("{} weights, {:.0f} MB, {}; {} threads, {}", model->quantization,
                        static_cast<double>(needed.bytes) / 1e6, model->config.family, with.pool.threads(),
                        with.kernels.isa));
  out.add({"reading the weights", {{"GB/s", read / 1e9}, {"passes/s", read / static_cast<double>(needed.bytes)}}});
  out.add({integer ? "int8 products" : "f32 products", {{"GOP/s", products / 1e9}}});

  const std::int64_t room = std::max(options.prompt, options.decode_context + options.decode) + 16;
  single_sequence sequence(model, {.positions = room, .kv = default_kv(*model)}, with);
  const auto prompt = some_tokens(options.prompt, model->config.vocab_size);
  const double prefill = median_seconds(
      [&] {
        sequence.restart();
        sequence.feed(prompt);
      },
      3.0);
  const double operations = 2 * (needed.layer_weights * options.prompt + needed.head_weights);
  out.add({fmt::format("prefill {}", options.prompt),
           {{"tokens/s", options.prompt / prefill},
            {"GOP/s", operations / prefill / 1e9},
            {"of bound", operations / prefill / products}}});

  const auto context = some_tokens(options.decode_context, model->config.vocab_size);
  std::vector<double> rates;
  for (int trial = 0; trial < 5; ++trial) {
    sequence.restart();
    sequence.feed(context);
    const double start = now();
    for (int i = 0; i < options.decode; ++i) sequence.feed(std::span(prompt).subspan(static_cast<std::size_t>(i), 1));
    rates.push_back(options.decode / (now() - start));
  }
  std::nth_element(rates.begin(), rates.begin() + 2, rates.end());
  out.add({fmt::format("decode 1 sequence at {}", options.decode_context),
           {{"tokens/s", rates[2]},
            {"GB/s", rates[2] * static_cast<double>(needed.bytes) / 1e9},
            {"of bound", rates[2] * static_cast<double>(needed.bytes) / read}}});
}

}  // namespace troupe::bench
