#pragma once
#include <cstdint>
#include <string>

#include "actors/http/api_context.hpp"

namespace troupe {

constexpr double usual_learning_rate = 1e-4;  // for the multiplier 1
constexpr std::int64_t usual_batch_size = 4;

/// A fine-tune that a client asks for.
struct asked_fine_tune {
  std::string id;
  std::string order;   ///< arguments of train.create
  std::string record;  ///< what is not among the job's own options: files, metadata
};
/// Throws field_error, and api_error if there is no such model or file.
asked_fine_tune read_fine_tune(const api_call& call);

}  // namespace troupe
