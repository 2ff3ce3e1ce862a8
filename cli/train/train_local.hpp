#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/model/model_options.hpp"
#include "model/train/lora_parameters.hpp"
#include "model/train/training_run.hpp"

namespace troupe {

/// What `troupe train --local` is asked for.
struct local_training {
  model_options model;
  std::string data, validation;
  std::string out;   ///< the adapter's or the model's folder
  std::string init;  ///< an adapter to start from
  bool full = false, fresh = false;
  lora_options lora;
  std::vector<std::string> rank_patterns, alpha_patterns;  ///< "PATTERN=VALUE"
  training_options run;
  std::string schedule = "cosine", precision = "fine";
  bool low_memory = false;
  std::int64_t validate_every = 0, checkpoint_every = 100;
  bool resume = false, force = false, json = false, keep_checkpoint = false;
  std::string log;
};

/// With the texts of the flags turned into what the run and the adapter take. Refuses what is none, by the flag.
local_training settled(local_training asked);

/// Trains in this process, and shows how it goes. Ctrl-C leaves a checkpoint.
int train_locally(const local_training& asked);

}  // namespace troupe
