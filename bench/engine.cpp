#include "bench/engine.hpp"

#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "bench/limits.hpp"
#include "bench/timing.hpp"
#include "model/arch/single_sequence.hpp"
#include "model/engine/engine.hpp"
#include "model/formats/model_files.hpp"

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

/// Random factors for every linear layer.
std::shared_ptr<const lora_adapter> some_adapter(const model_config& config, std::int64_t rank, std::uint32_t seed) {
  adapter_file file;
  const auto noise = [&](std::int64_t count) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (auto& v : values)
      v = static_cast<float>(static_cast<std::int32_t>(seed = seed * 1664525u + 1013904223u)) * 0x1p-38f;
    return values;
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const std::string_view module : linear_modules(config)) {
      const auto [outs, ins] = linear_shape(config, module);
      file.parts.push_back(
          {fmt::format("model.layers.{}.{}", layer, module), rank, 2.0f, noise(rank * ins), noise(outs * rank)});
    }
  return std::make_shared<lora_adapter>(file, config.layers);
}

/// The median time of a step in which all of some sequences get one token.
double batch_step_seconds(std::shared_ptr<const loaded_model> model, const engine_options& options, int sequences,
                          int adapters, const compute& with) {
  constexpr int rank = 16;
  troupe::engine_options chosen;
  chosen.kv = default_kv(*model);
  chosen.scheduler.context = options.decode_context + options.decode + 1;
  chosen.scheduler.blocks = static_cast<std::int32_t>((chosen.scheduler.context / positions_per_block + 2) * sequences);
  chosen.scheduler.max_batch_tokens = 512;
  engine serving(model, chosen, with);
  for (int i = 1; i <= adapters; ++i)
    serving.add_adapter(adapter_version(static_cast<std::uint32_t>(i)),
                        some_adapter(model->config, rank, static_cast<std::uint32_t>(i)));
  for (int i = 0; i < sequences; ++i) {
    engine_request request;
    request.what.prompt = some_tokens(options.decode_context, model->config.vocab_size);
    request.what.prompt[0] = i;  // no two share a prefix
    request.what.max_tokens = request.sampling.max_tokens = options.decode;
    request.what.adapter = adapters ? adapter_version(static_cast<std::uint32_t>(i % adapters + 1)) : no_adapter;
    request.sampling.temperature = 0;
    (void)serving.submit(std::move(request));
  }
  std::vector<double> times;
  for (double start = now();; start = now()) {
    int tokens = 0;
    const auto before = serving.scheduler().stats().computed_tokens;
    if (!serving.step(
            {}, [&](const engine_token&) { ++tokens; }, nullptr))
      break;
    const auto computed = serving.scheduler().stats().computed_tokens - before;
    if (tokens == sequences && computed == static_cast<std::uint64_t>(sequences)) times.push_back(now() - start);
  }
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

struct machine {
  double read, products;
};

void run_batches(std::shared_ptr<const loaded_model> model, const engine_options& options, const work& needed,
                 const machine& limit, const compute& with, const report& out) {
  out.title(fmt::format(
      "continuous batches, {} tokens of prompt each, {} generated; adapters of rank 16 on all linear layers",
      options.decode_context, options.decode));
  const double kv =
      static_cast<double>(kv_storage::bytes_per_block(model->config, model->config.layers, default_kv(*model))) /
      positions_per_block * (options.decode_context + options.decode / 2.0);
  const auto add = [&](int sequences, int adapters) {
    const double seconds = batch_step_seconds(model, options, sequences, adapters, with);
    if (seconds == 0) return;
    const double bytes = static_cast<double>(needed.bytes) + sequences * kv;
    const double operations = 2.0 * sequences * (needed.layer_weights + needed.head_weights);
    out.add({fmt::format("{} sequences, {} adapters", sequences, adapters),
             {{"tokens/s", sequences / seconds},
              {"ms a step", seconds * 1e3},
              {"of bound", std::max(bytes / limit.read, operations / limit.products) / seconds}}});
  };
  for (const int sequences : {1, 4, 8, 16, 32, 64}) add(sequences, 0);
  for (const int adapters : {1, 8}) add(16, adapters);
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
  run_batches(model, options, needed, {read, products}, with, out);
}

}  // namespace troupe::bench
