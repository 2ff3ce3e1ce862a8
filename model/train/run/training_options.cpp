#include "model/train/run/training_options.hpp"

#include <string_view>

#include "base/error.hpp"

namespace troupe {

training_options checked(training_options o, const model_config& config) {
  using may = training_ranges;
  const auto positive = [](std::int64_t value, std::string_view name) {
    if (value < 1) refuse("{} is {}: use 1 or more", name, value);
  };
  positive(o.row_length, "the row length");
  positive(o.batch_rows, "the batch");
  positive(o.accumulation, "accumulation");
  positive(o.epochs, "the number of epochs");
  // The products of these with other numbers fit an int64.
  const auto at_most = [](std::int64_t value, std::int64_t most, std::string_view name) {
    if (value > most) refuse("{} is {}: use at most {}", name, value, most);
  };
  at_most(o.accumulation, may::most_accumulation, "accumulation");
  at_most(o.epochs, may::most_epochs, "the number of epochs");
  if (o.row_length > config.context)
    refuse("rows of {} tokens: the model has {} positions", o.row_length, config.context);
  if (o.batch_rows > (1 << 22) / o.row_length)
    refuse("{} rows of {} tokens in one pass: use fewer, and accumulate", o.batch_rows, o.row_length);
  if (o.most_steps < 0) refuse("the number of steps is {}: use 1 or more", o.most_steps);
  if (o.warmup < 0) refuse("the warm-up is {} steps: use 0 or more", o.warmup);
  if (!(o.rate >= 0 && o.rate <= may::most_rate))
    refuse("the learning rate is {}: use a small positive number", o.rate);
  const auto up_to = [](double most, double value, std::string_view name) {
    if (!(value >= 0 && value <= most)) refuse("{} is {}: use 0 to {}", name, value, most);
  };
  up_to(may::most_decay, o.adam.weight_decay, "the weight decay");
  up_to(may::most_clip, o.adam.clip, "the norm to cut gradients to");
  up_to(may::most_dropout, o.dropout, "the adapter's dropout");
  up_to(may::most_held_out, o.validation_share, "the share held out");
  return o;
}

}  // namespace troupe
