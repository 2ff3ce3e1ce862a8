#pragma once
#include <cstdint>
#include <string_view>

#include "base/aligned_buffer.hpp"
#include "model/ops/compute.hpp"
#include "model/train/parameters/parameter_set.hpp"

namespace troupe {

enum class schedule_kind : std::uint8_t { constant, linear, cosine };
schedule_kind schedule_from_name(std::string_view name);
std::string_view name_of(schedule_kind kind);

/// The learning rate over a run: up from 0 to `rate` in the first steps, then down to 0, or not.
struct rate_schedule {
  schedule_kind kind = schedule_kind::cosine;
  double rate = 1e-4;
  std::int64_t warmup = 0;
  std::int64_t steps = 0;  ///< of the whole run

  double at(std::int64_t step) const;  ///< step counts from 0
};

struct adam_options {
  static constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  double clip = 1.0;  ///< the gradients' norm is cut to this; 0: never
};

/// AdamW as the reference has it: decay apart from the gradient, moments without bias. Sums run over fixed pieces, so
/// the threads change no bit.
class adam_optimizer {
 public:
  adam_optimizer(const parameter_set& parameters, adam_options options);

  /// One step with the gradients as they are; gives their norm before it was cut.
  double step(const compute& with, double rate);

  std::span<float> first() const { return {first_.data(), first_.size()}; }
  std::span<float> second() const { return {second_.data(), second_.size()}; }
  void resume(std::int64_t steps) { steps_ = steps; }

 private:
  double norm(const compute& with) const;

  const parameter_set& parameters_;
  adam_options options_;
  std::int64_t steps_ = 0;
  aligned_buffer<float> first_, second_;
};

}  // namespace troupe
