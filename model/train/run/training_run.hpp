#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/train/data/batch_plan.hpp"
#include "model/train/data/held_out.hpp"
#include "model/train/passes/train_pass.hpp"
#include "model/train/run/optimizer.hpp"
#include "model/train/run/training_options.hpp"

namespace troupe {

struct checkpoint;

struct step_report {
  std::int64_t step = 0;  ///< steps done, this one included
  double loss = 0;        ///< mean over the targets, in nats
  double accuracy = 0;    ///< share of targets that the model would have chosen
  double rate = 0;
  double gradient_norm = 0;  ///< before it was cut
  std::int64_t tokens = 0;   ///< that went through the model
};

struct validation_report {
  double loss = 0;
  double accuracy = 0;
};

/// A training run, one step at a time. What comes out depends on model, data, options and seed alone: never on threads,
/// on how many share it, nor on where it was stopped and taken up again. One thread calls it; model, parameters and
/// data outlive it.
class training_run {
 public:
  /// `validation`: examples of their own instead of a share of the others; may be nullptr.
  training_run(const trained_model& model, const parameter_set& parameters, const compute& with,
               const training_data& data, const training_data* validation, training_options options);

  std::int64_t steps() const { return steps_; }  ///< of the whole run
  std::int64_t steps_per_epoch() const { return plan_.steps_per_epoch(); }
  std::int64_t done() const { return done_; }
  std::int64_t tokens() const { return plan_.tokens_before(done_); }  ///< of the steps done
  bool finished() const { return done_ >= steps_; }
  std::string remark() const { return pass_->remark(); }  ///< how passes are computed; may be empty
  /// Why it may learn less than was meant; may be empty.
  std::string doubts() const;
  /// What it takes in all beside its passes, and beside values and gradients, which are there before it.
  std::int64_t bytes_beside_passes() const;

  step_report step();
  bool can_validate() const { return validation_.has_value(); }
  /// Measures the held-out part, and remembers the values if they are the best so far.
  validation_report validate();

  struct best_values {
    std::int64_t step = -1;  ///< -1: never validated
    double loss = 0;
  };
  const best_values& best() const { return best_; }
  /// Calls `use` while the parameters have their best values.
  void with_best(const std::function<void()>& use);

  /// Everything that going on takes, in one file that is there whole or not at all.
  void save(const std::filesystem::path& file);
  /// Goes on from there. Throws input_error where the file belongs to another run.
  void load(const std::filesystem::path& file);
  /// The whole group goes on from where its first member is. Throws input_error, in all of them, where some member has
  /// another run.
  void follow_first();

 private:
  std::string run_identity() const;
  std::string identity() const;
  checkpoint state_now() const;
  void check_group() const;
  bool adds_rounds(std::size_t passes) const;
  train_pass::options pass_options() const;
  std::int64_t most_tokens() const;
  rate_schedule schedule() const;
  std::vector<pass_result> add_gradients(std::span<const training_rows> passes, float factor);
  pass_result make_gradients(std::span<const training_rows> passes, std::size_t own, float factor);
  template <class Pass>
  std::vector<pass_result> in_turns(std::size_t passes, Pass make);

  const parameter_set& parameters_;
  compute with_;
  training_options options_;
  std::uint64_t data_fingerprint_;
  held_out_examples held_out_;
  batch_plan plan_;
  std::optional<batch_plan> validation_;
  std::int64_t steps_ = 0, done_ = 0;
  std::unique_ptr<train_pass> pass_;
  adam_optimizer adam_;
  aligned_buffer<float> gradients_so_far_;  ///< of the rounds before, where a step has several
  best_values best_;
  std::vector<float> best_parameters_;
};

}  // namespace troupe
