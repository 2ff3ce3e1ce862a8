#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "base/device_id.hpp"
#include "model/formats/model_config.hpp"
#include "model/train/kernels/products.hpp"
#include "model/train/run/optimizer.hpp"
#include "model/train/run/training_group.hpp"

namespace troupe {

/// What the numbers of a run may be, here and in the orders of a cluster.
struct training_ranges {
  static constexpr std::int64_t least_row_length = 2, most_row_length = 1 << 20;
  static constexpr std::int64_t most_epochs = 1'000'000, most_accumulation = 1 << 16, most_trainers = 64;
  static constexpr double most_rate = 100, most_decay = 100, most_clip = 1e9, most_held_out = 0.99;
  static constexpr double most_dropout = 0.95;
};

struct training_options {
  std::int64_t row_length = 512;
  std::int64_t batch_rows = 4;    ///< packed rows of one pass
  std::int64_t accumulation = 1;  ///< passes of one step
  std::int64_t epochs = 1;
  std::int64_t most_steps = 0;  ///< 0: as many as the epochs have
  schedule_kind schedule = schedule_kind::cosine;
  double rate = 1e-4;
  std::int64_t warmup = 0;  ///< steps
  adam_options adam;
  double dropout = 0;              ///< of an adapter's inputs
  double validation_share = 0.05;  ///< of the examples, held out; 0: none
  std::uint64_t seed = 0;
  train_precision precision = train_precision::fine;
  bool keep_activations = true;
  device_id device = {};  ///< what computes the passes
  std::string subject;    ///< what is trained, where names and shapes do not say it: a checkpoint of another is refused
  std::string init;       ///< the adapter whose values it begins with, as errors name it; empty: none

  training_group group = {};           ///< who shares the passes: never changes what comes out
  std::function<void()> between = {};  ///< called between products: a place to yield to others, or to stop
};

/// The same options. Throws input_error where a value is out of range, or more than the model has room for.
training_options checked(training_options options, const model_config& config);

}  // namespace troupe
