#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/arch/loaded_model.hpp"
#include "model/ops/compute.hpp"
#include "model/train/parameters/lora_parameters.hpp"
#include "tests/base/temp_folder.hpp"
#include "tests/model/train/passes/reference_model.hpp"

namespace troupe {

std::filesystem::path golden(const std::string& model);
std::shared_ptr<const loaded_model> load_golden(const std::string& model, thread_pool& pool,
                                                std::optional<scheme> quant = {});

/// Segments of these lengths with random tokens; most of the tokens have a target.
training_rows some_rows(const model_config& config, const std::vector<std::int64_t>& lengths, unsigned seed = 3);

/// The slope of `loss` at 0, from four points around it.
double central_slope(const std::function<double(double)>& loss);

/// A direction in which a parameter is changed, half random and half along the gradient, so that the slope is not a
/// small difference of large numbers; and the slope that the gradient predicts.
struct direction {
  std::vector<double> step;
  double slope = 0;
};
direction draw_direction(const std::vector<float>& gradient, unsigned seed);

void put_adapter(reference_model& reference, const adapter_file& file);
/// The reference's values for a LoRA parameter, one vector for each module that the parameter belongs to.
std::vector<std::vector<double>*> factors_of(reference_model& reference, const model_config& config,
                                             const parameter& p);

}  // namespace troupe
