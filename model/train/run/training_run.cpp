#include "model/train/run/training_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "base/fnv_hash.hpp"
#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/train/run/checkpoint.hpp"

namespace troupe {
namespace {

std::vector<std::size_t> every_example(const training_data& data) {
  std::vector<std::size_t> all(data.examples.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// `without` is sorted.
std::vector<std::size_t> all_but(const std::vector<std::size_t>& without, const training_data& data) {
  std::vector<std::size_t> rest = every_example(data);
  std::erase_if(rest, [&](std::size_t i) { return std::binary_search(without.begin(), without.end(), i); });
  return rest;
}

batch_plan::options plan_options(const training_options& o) {
  return {.row_length = o.row_length, .batch_rows = o.batch_rows, .accumulation = o.accumulation, .seed = o.seed};
}

/// Of what is held out, if anything is.
std::optional<batch_plan> validation_plan(const training_data& data, std::span<const std::size_t> held_out,
                                          const training_options& options) {
  if (held_out.empty()) return {};
  return batch_plan(data, held_out, plan_options(options));
}

pass_result total_of(std::span<const pass_result> parts) {
  pass_result total;
  for (const pass_result& part : parts) total.add(part);
  return total;
}

/// `learned`: the steps behind this loss. `init`: what gave the first values besides the base.
[[noreturn]] void fail_at(std::int64_t step, std::int64_t learned, const std::string& init) {
  if (learned == 0)
    throw std::runtime_error(fmt::format(
        "the loss is no number before anything is learned: the base{} has weights that are none (NaN or infinite) or "
        "too large: take another base{}",
        init.empty() ? "" : " or " + init, init.empty() ? "" : ", or another adapter"));
  throw std::runtime_error(fmt::format("the loss is no number any more at step {}: use a lower learning rate", step));
}

/// Weights that are too large to be squared make all rows zeros, or saturate what follows: the loss stays a number, and
/// nothing is learned any more. Where all of it is learned, the loss is 0, too.
[[noreturn]] void fail_without_gradient(std::int64_t step) {
  throw std::runtime_error(fmt::format(
      "all gradients are 0 at step {}: nothing can be learned from there: use a lower learning rate, or other targets",
      step));
}

}  // namespace

training_run::training_run(const trained_model& model, const parameter_set& parameters, const compute& with,
                           const training_data& data, const training_data* validation, training_options options)
    : parameters_(parameters),
      with_(with),
      options_(checked(std::move(options), model.config)),
      data_fingerprint_(data.fingerprint),
      held_out_(validation ? held_out_examples{every_example(*validation), validation->fingerprint}
                           : draw_held_out(data, options_.validation_share, options_.seed)),
      plan_(data, validation ? every_example(data) : all_but(held_out_.examples, data), plan_options(options_)),
      validation_(validation_plan(validation ? *validation : data, held_out_.examples, options_)),
      pass_(make_train_pass(model, parameters, with, pass_options())),
      adam_(parameters, options_.adam) {
  steps_ = options_.most_steps > 0 ? options_.most_steps : options_.epochs * plan_.steps_per_epoch();
}

std::string training_run::doubts() const {
  constexpr std::int64_t few_steps = 10;
  std::string text;
  if (steps_ < few_steps) text += "few steps to learn in: more epochs, a smaller batch or shorter rows make more";
  if (options_.warmup >= steps_)
    text += fmt::format("{}a warm-up of {} steps is no shorter than the run, which never gets to the rate asked for",
                        text.empty() ? "" : "; ", options_.warmup);
  return text;
}

/// Of any pass.
std::int64_t training_run::most_tokens() const {
  return std::max(plan_.most_tokens(), validation_ ? validation_->most_tokens() : 0);
}

train_pass::options training_run::pass_options() const {
  return {.most_rows = most_tokens(),
          .most_positions = options_.row_length,
          .precision = options_.precision,
          .keep_activations = options_.keep_activations,
          .between = options_.between,
          .device = options_.device,
          .bytes_beside = bytes_beside_passes()};
}

/// Of each value: Adam's two moments and a copy that is written; the best one, and the last while the best are written;
/// its gradient of the rounds before.
std::int64_t training_run::bytes_beside_passes() const {
  const int copies = 3 + (validation_ ? 2 : 0) + adds_rounds(to_size(options_.accumulation));
  return copies * static_cast<std::int64_t>(parameters_.values().size_bytes());
}

/// Whether this member holds gradients of the rounds before, in a step of so many passes.
bool training_run::adds_rounds(std::size_t passes) const {
  return options_.group.index == 0 && passes > to_size(options_.group.count);
}

rate_schedule training_run::schedule() const {
  return {.kind = options_.schedule, .rate = options_.rate, .warmup = options_.warmup, .steps = steps_};
}

/// Members make one pass each, round after round: make(first of the round, own). Every result is stored at its pass's
/// place, whoever made it.
template <class Pass>
std::vector<pass_result> training_run::in_turns(std::size_t passes, Pass make) {
  const training_group& group = options_.group;
  const auto members = to_size(group.count), index = to_size(group.index);
  std::vector<pass_result> results(rounded_up(passes, members));
  for (std::size_t first = 0; first < passes; first += members) {
    results[first + index] = make(first, first + index);
    if (members > 1) group.all_gather(std::as_writable_bytes(std::span(results).subspan(first, members)));
  }
  results.resize(passes);
  return results;
}

/// Each pass makes its gradients from zero, and they are added to those of the passes before: one sum in the order of
/// passes, the same however many members make them.
std::vector<pass_result> training_run::add_gradients(std::span<const training_rows> passes, float factor) {
  const training_group& group = options_.group;
  const auto all = parameters_.gradients();
  const bool adds = adds_rounds(passes.size());
  if (adds && gradients_so_far_.size() == 0) gradients_so_far_ = aligned_buffer<float>(all.size());
  return in_turns(passes.size(), [&](std::size_t first, std::size_t own) {
    if (adds && first > 0) std::copy(all.begin(), all.end(), gradients_so_far_.data());
    const pass_result result = make_gradients(passes, own, factor);
    if (adds && first > 0)
      with_.kernels.add(gradients_so_far_.data(), static_cast<std::int64_t>(all.size()), all.data());
    if (group.count > 1) group.all_reduce_sum(all);
    return result;
  });
}

/// Of one pass alone. A member without a pass of its own gives -0: adding that changes no sum, not even the sign of a
/// zero.
pass_result training_run::make_gradients(std::span<const training_rows> passes, std::size_t own, float factor) {
  const auto all = parameters_.gradients();
  if (own >= passes.size()) {
    std::fill(all.begin(), all.end(), -0.0f);
    return {};
  }
  if (!pass_->sets_gradients()) parameters_.clear_gradients();
  const auto number = static_cast<std::uint32_t>(done_ * options_.accumulation) + static_cast<std::uint32_t>(own);
  return pass_->train(passes[own], factor,
                      {.probability = static_cast<float>(options_.dropout), .seed = options_.seed, .pass = number});
}

step_report training_run::step() {
  const auto batches = plan_.step(done_);
  std::int64_t targets = 0;
  for (const auto& batch : batches) targets += batch.target_count();
  const float factor = targets > 0 ? static_cast<float>(1.0 / static_cast<double>(targets)) : 0.0f;
  const pass_result all = total_of(add_gradients(batches, factor));
  step_report report;
  report.rate = schedule().at(done_);
  report.gradient_norm = adam_.step(with_, report.rate);
  report.step = ++done_;
  const auto count = static_cast<double>(std::max<std::int64_t>(1, targets));
  report.loss = all.loss / count;
  report.accuracy = static_cast<double>(all.correct) / count;
  for (const auto& batch : batches) report.tokens += batch.rows();
  if (!std::isfinite(report.loss) || !std::isfinite(report.gradient_norm)) fail_at(done_, done_ - 1, options_.init);
  if (report.gradient_norm == 0 && report.loss > 0) fail_without_gradient(done_);
  return report;
}

validation_report training_run::validate() {
  validation_report report;
  if (!validation_) return report;
  const auto batches = validation_->all();
  const pass_result total = total_of(in_turns(batches.size(), [&](std::size_t, std::size_t own) {
    return own < batches.size() ? pass_->measure(batches[own]) : pass_result{};
  }));
  const auto count = static_cast<double>(std::max<std::int64_t>(1, total.targets));
  report = {total.loss / count, static_cast<double>(total.correct) / count};
  if (!std::isfinite(report.loss)) fail_at(done_, done_, options_.init);
  if (best_.step < 0 || report.loss < best_.loss) {
    best_ = {done_, report.loss};
    best_parameters_.assign(parameters_.values().begin(), parameters_.values().end());
  }
  return report;
}

void training_run::with_best(const std::function<void()>& use) {
  if (best_.step < 0) return use();
  const std::vector<float> last(parameters_.values().begin(), parameters_.values().end());
  std::copy(best_parameters_.begin(), best_parameters_.end(), parameters_.values().begin());
  use();
  std::copy(last.begin(), last.end(), parameters_.values().begin());
}

/// Everything by which another run would differ. The 0 was an option once: older checkpoints still go on.
std::string training_run::run_identity() const {
  const training_options& o = options_;
  return fmt::format(
      "data {:016x} rows {}x{}x{} epochs {} steps {} schedule {} {} 0 {} adam {} {} {} {} {} dropout {} "
      "held {} {:016x} seed {} precision {}{}",
      data_fingerprint_, o.row_length, o.batch_rows, o.accumulation, o.epochs, steps_, name_of(o.schedule), o.rate,
      o.warmup, o.adam.beta1, o.adam.beta2, o.adam.epsilon, o.adam.weight_decay, o.adam.clip, o.dropout,
      held_out_.examples.size(), held_out_.fingerprint, o.seed, static_cast<int>(o.precision), o.subject);
}

std::string training_run::identity() const {
  return run_identity() + (options_.device.is_cpu() ? "" : " on a GPU");
}

/// But for the best values.
checkpoint training_run::state_now() const {
  return {.identity = identity(),
          .step = done_,
          .best_step = best_.step,
          .best_loss = best_.loss,
          .parts = {{"value", parameters_.values()}, {"first", adam_.first()}, {"second", adam_.second()}}};
}

void training_run::save(const std::filesystem::path& file) {
  checkpoint state = state_now();
  if (best_.step >= 0) state.parts.push_back({"best", best_parameters_});
  write_checkpoint(file, parameters_, state);
}

void training_run::load(const std::filesystem::path& file) {
  checkpoint state = state_now();
  best_parameters_.resize(parameters_.values().size());
  state.parts.push_back({"best", best_parameters_});
  read_checkpoint(file, parameters_, steps_, state);
  done_ = state.step;
  adam_.resume(done_);
  best_ = {state.best_step, state.best_loss};
}

/// Throws if the members' runs differ. Devices may differ: then the bits depend on who made which pass, but nothing
/// else goes wrong.
void training_run::check_group() const {
  const training_group& group = options_.group;
  fnv_hash print;
  print.add(run_identity());
  std::vector<std::uint64_t> prints(to_size(group.count), 0);
  prints[to_size(group.index)] = print.value();
  group.all_gather(std::as_writable_bytes(std::span(prints)));
  if (std::count(prints.begin(), prints.end(), print.value()) != group.count)
    refuse("those who share the run have other data, options or bases than each other: give them all the same files");
}

void training_run::follow_first() {
  const training_group& group = options_.group;
  if (group.count == 1) return;
  check_group();
  struct {
    std::int64_t done;
    best_values best;
  } place{done_, best_};
  group.broadcast(std::as_writable_bytes(std::span(&place, 1)));
  done_ = place.done;
  best_ = place.best;
  adam_.resume(done_);
  best_parameters_.resize(best_.step < 0 ? 0 : parameters_.values().size());
  for (const std::span<float> values :
       {parameters_.values(), adam_.first(), adam_.second(), std::span<float>(best_parameters_)})
    group.broadcast(std::as_writable_bytes(values));
}

}  // namespace troupe
