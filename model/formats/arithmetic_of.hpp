#pragma once
#include <string>

#include "model/formats/model_config.hpp"

namespace troupe {

/// Everything that decides what a model computes from its weights, as a line: models that differ in it give other
/// answers.
std::string arithmetic_of(const model_config& config);

}  // namespace troupe
