#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/train/parameters/parameter_set.hpp"

namespace troupe {

/// In the folder of a run.
inline constexpr std::string_view checkpoint_name = "checkpoint.safetensors";

/// What a run needs to go on, beside its options: random numbers are drawn by counters, so the step is their state too,
/// and the place in the data.
struct checkpoint {
  struct part {
    std::string name;         ///< "value", "first" …
    std::span<float> floats;  ///< like parameter_set::values()
  };
  std::string identity;  ///< of the run: what must be the same for it to go on
  std::int64_t step = 0;
  std::int64_t best_step = -1;
  double best_loss = 0;
  std::vector<part> parts;
};

/// One safetensors file, tensors "value/NAME" and so on.
void write_checkpoint(const std::filesystem::path& file, const parameter_set& parameters, const checkpoint& state);
/// Fills the parts of `state` and what is counted; a "best" part may be absent. Refuses a file of another identity,
/// with other parameters or beyond `most_steps`; then nothing was changed.
void read_checkpoint(const std::filesystem::path& file, const parameter_set& parameters, std::int64_t most_steps,
                     checkpoint& state);

}  // namespace troupe
