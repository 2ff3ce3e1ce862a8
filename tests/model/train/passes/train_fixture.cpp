#include "tests/model/train/passes/train_fixture.hpp"

#include <cmath>
#include <random>

#include <fmt/format.h>

#include "model/formats/weight_names.hpp"
#include "tests/base/places.hpp"

namespace troupe {

std::filesystem::path golden(const std::string& model) {
  return test::golden / model;
}

std::shared_ptr<const loaded_model> load_golden(const std::string& model, thread_pool& pool,
                                                std::optional<scheme> quant) {
  const test::temp_folder cache;
  return load_model(golden(model), {.quant = quant, .keep = {}, .cache = cache.path(), .progress = {}}, pool);
}

training_rows some_rows(const model_config& config, const std::vector<std::int64_t>& lengths, unsigned seed) {
  std::mt19937 random(seed);
  const auto token = [&] { return static_cast<std::int32_t>(random() % static_cast<unsigned>(config.vocab_size)); };
  training_rows batch;
  for (const std::int64_t length : lengths) {
    batch.segments.push_back({batch.rows(), length});
    for (std::int64_t i = 0; i < length; ++i) {
      batch.tokens.push_back(token());
      batch.targets.push_back(random() % 4 == 0 ? -1 : token());
    }
  }
  return batch;
}

double central_slope(const std::function<double(double)>& loss) {
  constexpr double width = 1e-4;
  return (8 * (loss(width) - loss(-width)) - (loss(2 * width) - loss(-2 * width))) / (12 * width);
}

direction draw_direction(const std::vector<float>& gradient, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  direction d;
  for (const float g : gradient) {
    const double along = squares > 0 ? static_cast<double>(g) / std::sqrt(squares) : 0;
    d.step.push_back(along + normal(random) / std::sqrt(static_cast<double>(gradient.size())));
    d.slope += d.step.back() * static_cast<double>(g);
  }
  return d;
}

void put_adapter(reference_model& reference, const adapter_file& file) {
  for (const adapter_part& part : file.parts)
    reference.adapter[part.name()] = {
        {part.a.begin(), part.a.end()}, {part.b.begin(), part.b.end()}, part.rank, static_cast<double>(part.scale)};
}

std::vector<std::vector<double>*> factors_of(reference_model& reference, const model_config& config,
                                             const parameter& p) {
  const bool is_a = p.name.find("lora_A") != std::string::npos;
  std::vector<std::vector<double>*> found;
  for (std::int64_t layer = 0; layer < config.layers; ++layer)
    for (const linear_kind kind : linear_kinds_of(config, layer)) {
      const auto theirs = fmt::format(".{}.{}.lora_", detail::layer_in_file(config, layer, kind),
                                      detail::hugging_face_name(config, layer, kind));
      if (p.name.find(theirs) == std::string::npos) continue;
      auto& factors = reference.adapter.at(linear_name(layer, kind));
      found.push_back(is_a ? &factors.a : &factors.b);
    }
  return found;
}

}  // namespace troupe
