#pragma once
#include <functional>
#include <string>

#include "model/formats/model_config.hpp"

namespace troupe {

/// The one list of a model's weights, in the order they lie in a packed file.
struct weight_visitor {
  std::function<void(const std::string& name, std::int64_t outs, std::int64_t ins)> matrix;
  std::function<void(const std::string& name, std::int64_t rows, std::int64_t size)> vector;  ///< f32, each row padded
};
void visit_weights(const model_config& config, const weight_visitor& visitor);

}  // namespace troupe
