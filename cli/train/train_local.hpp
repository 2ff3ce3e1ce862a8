#pragma once
#include <cstdint>
#include <string>

#include "cli/model/model_options.hpp"
#include "model/train/parameters/lora_parameters.hpp"
#include "model/train/run/training_run.hpp"

namespace troupe {

/// What `troupe train` is asked for, here or in a cluster.
struct training_flags {
  model_options model;
  std::string data, validation;
  std::string adapter;  ///< what a cluster publishes it as; here: its folder
  std::string out;      ///< the folder of a model that is trained whole
  std::string init;     ///< an adapter to start from
  bool full = false, fresh = false;
  lora_options lora;
  training_options run;  ///< without the device, which `model` names
  std::int64_t validate_every = 0;
  std::int64_t checkpoint_every = 0;  ///< steps; 0: only by time
  bool resume = false, force = false, json = false, keep_checkpoint = false;
  std::string log;

  const std::string& folder() const { return full ? out : adapter; }  ///< that is written here
};

/// Trains in this process, and shows how it goes. Ctrl-C leaves a checkpoint.
int train_locally(const training_flags& options);

}  // namespace troupe
