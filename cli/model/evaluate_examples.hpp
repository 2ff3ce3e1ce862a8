#pragma once
#include <cstdint>
#include <string>

#include "cli/model/model_options.hpp"

namespace troupe {

struct example_evaluation {
  std::int64_t examples = 0;
  std::int64_t tokens = 0;  ///< that were predicted
  double loss = 0;          ///< mean over them, in nats
  double accuracy = 0;      ///< share of them that the model would have chosen
};

/// How well a model does on examples, with its adapter if the options name one: as training measures what is held out.
/// `file`: as read_training_data has it; "-" is standard input. `length`: tokens of a row.
example_evaluation evaluate_examples(const model_options& options, const std::string& file, std::int64_t length);

}  // namespace troupe
