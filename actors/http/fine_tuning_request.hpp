#pragma once
#include <cstdint>
#include <string>

#include "actors/http/api_context.hpp"

namespace troupe {

constexpr double usual_learning_rate = 1e-4;  // of the multiplier 1
constexpr std::int64_t usual_batch_size = 4;

/// A fine-tune as a client asks for it.
struct asked_fine_tune {
  std::string id;
  std::string order;  ///< train.create's arguments
  std::string about;  ///< what the job's own options do not have: files, metadata
};
/// Throws field_error, and api_error where there is no such model or file.
asked_fine_tune read_fine_tune(const api_call& call);

}  // namespace troupe
