#include "cli/train/train_local.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/whole_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/train/training_display.hpp"
#include "model/arch/fingerprint.hpp"
#include "model/formats/json_input.hpp"
#include "model/formats/model_files.hpp"
#include "model/ops/isa.hpp"
#include "model/train/master_weights.hpp"
#include "model/train/training_data.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view checkpoint_name = "checkpoint.safetensors";

precision precision_from_name(const std::string& name) {
  if (name == "served") return precision::as_served;
  if (name == "fine") return precision::fine;
  if (name == "exact") return precision::exact;
  refuse("--precision: unknown '{}': use served, fine or exact", name);
}

void check(local_training& o) {
  if (o.out.empty()) refuse("no folder to write to: name one with {}", o.full ? "--out" : "--adapter");
  if (o.checkpoint_every < 1) refuse("--checkpoint-every is {}: use 1 or more", o.checkpoint_every);
  if (o.validate_every < 0) refuse("--validate-every is {}: use 1 or more", o.validate_every);
  if (o.full && o.model.device != "cpu")
    refuse("--full: adapters alone are trained on GPUs: leave out --device {}", o.model.device);
  o.run.device = device_of(o.model);
  o.run.schedule = schedule_from_name(o.schedule);
  o.run.how = precision_from_name(o.precision);
  o.run.keep_activations = !o.low_memory;
  o.lora.rank_pattern.clear();
  for (const auto& [pattern, rank] : read_patterns(o.rank_patterns, "--rank-of"))
    o.lora.rank_pattern.emplace_back(pattern, static_cast<std::int64_t>(rank));
  o.lora.alpha_pattern = read_patterns(o.alpha_patterns, "--alpha-of");
  const fs::path out(o.out);
  std::error_code ignored;
  const bool unfinished = fs::exists(out / checkpoint_name, ignored);
  if (o.resume && !unfinished) refuse("{}: has no checkpoint to go on from: leave out --resume", o.out);
  if (!o.resume && !o.force && fs::exists(out, ignored) && (!fs::is_directory(out, ignored) || !fs::is_empty(out)))
    refuse("{}: is there already: {}choose another folder, or replace it with --force", o.out,
           unfinished ? "go on with --resume, " : "");
}

/// What is trained: an adapter's factors, or all weights. Writes itself in the published form.
struct subject {
  virtual ~subject() = default;
  virtual const trained_model& model() const = 0;
  virtual const parameter_set& parameters() const = 0;
  /// What a checkpoint's parameters do not say of it.
  virtual std::string identity() const = 0;
  virtual void save(const fs::path& folder) const = 0;
};

class adapter_subject final : public subject {
 public:
  adapter_subject(const local_training& o, thread_pool& pool) : base_name_(o.model.model) {
    load_options load;
    if (!o.model.quant.empty()) load.quant = scheme_from_name(o.model.quant, "--quant");
    load.keep = o.model.keep;
    if (o.init.empty()) check_lora(o.lora, open_model(o.model.model).config);
    const auto base = load_with_progress(o.model.model, load, pool);
    base_fingerprint_ = fingerprint_of(*base);
    model_ = frozen(base);
    const model_config& config = model_.config;
    lora_.emplace(model_, o.init.empty() ? o.lora : with_dropout(read_lora_options(o.init, config), o), o.run.seed);
    if (!o.init.empty()) lora_->load(o.init, config);
  }
  const trained_model& model() const override { return model_; }
  const parameter_set& parameters() const override { return lora_->parameters(); }
  std::string identity() const override {
    const lora_options& form = lora_->options();
    std::string text = fmt::format(" base {:016x} alpha {}{}", base_fingerprint_, form.alpha,
                                   form.rank_stabilized ? " rank-stabilized" : "");
    for (const auto& [pattern, alpha] : form.alpha_pattern) text += fmt::format(" {}={}", pattern, alpha);
    return text;
  }
  void save(const fs::path& folder) const override { lora_->save(folder, base_name_); }

 private:
  static lora_options with_dropout(lora_options options, const local_training& o) {
    options.dropout = o.lora.dropout;
    return options;
  }

  std::string base_name_;
  std::uint64_t base_fingerprint_ = 0;
  trained_model model_;
  std::optional<lora_parameters> lora_;
};

class model_subject final : public subject {
 public:
  explicit model_subject(const local_training& o) : source_(o.model.model) {
    std::error_code ignored;
    config_text_ = detail::read_text(source_ / "config.json", 16 << 20);
    const bool has_weights = fs::exists(source_ / "model.safetensors", ignored) ||
                             fs::exists(source_ / "model.safetensors.index.json", ignored);
    if (o.fresh || !has_weights)
      weights_ = std::make_unique<master_weights>(read_hf_config(source_), o.run.seed);
    else
      weights_ = std::make_unique<master_weights>(source_);
  }
  const trained_model& model() const override { return weights_->model(); }
  const parameter_set& parameters() const override { return weights_->parameters(); }
  std::string identity() const override { return {}; }
  void save(const fs::path& folder) const override {
    weights_->save(folder, config_text_);
    copy_companions(source_, folder);
  }

 private:
  fs::path source_;
  std::string config_text_;
  std::unique_ptr<master_weights> weights_;
};

std::unique_ptr<subject> make_subject(const local_training& o, thread_pool& pool) {
  if (o.full) return std::make_unique<model_subject>(o);
  return std::make_unique<adapter_subject>(o, pool);
}

/// A line of JSON after each step and each validation; nothing without a file.
class training_log {
 public:
  training_log(const std::string& path, bool append) : path_(path) {
    if (path.empty()) return;
    file_.open(path, append ? std::ios::app : std::ios::trunc);
    if (!file_) refuse("{}: cannot be written: choose another file", path);
  }
  void write(const nlohmann::ordered_json& line) {
    if (path_.empty()) return;
    file_ << line.dump() << "\n" << std::flush;
    if (!file_) throw std::runtime_error(fmt::format("{}: cannot be written: free some space", path_));
  }

 private:
  std::string path_;
  std::ofstream file_;
};

class local_run {
 public:
  local_run(const local_training& options, training_run& run, const subject& what)
      : options_(options),
        run_(run),
        what_(what),
        log_(options.log, options.resume),
        display_(run.steps(), run.done(), options.json) {}

  void all_steps() {
    try {
      // also where a run was stopped before it could
      if (is_due() && run_.best().step != run_.done()) validate();
      while (!run_.finished()) {
        check_interrupt();
        one_step();
      }
    } catch (const interrupted&) {
      save_checkpoint();
      throw;
    }
  }
  void publish() const {
    what_.save(options_.out);
    if (run_.can_validate()) run_.with_best([&] { what_.save(fs::path(options_.out) / "best"); });
    std::error_code ignored;
    if (options_.keep_checkpoint)
      save_checkpoint();
    else
      fs::remove(checkpoint(), ignored);
  }
  /// What this process has measured: one that resumes has not seen the run begin, perhaps not even go on.
  nlohmann::ordered_json outcome() const {
    nlohmann::ordered_json out{{"steps", run_.done()}};
    if (last_) out["loss"] = last_->loss;
    if (validation_) out["validation_loss"] = validation_->loss, out["validation_accuracy"] = validation_->accuracy;
    if (first_validation_) out["base_validation_loss"] = first_validation_->loss;
    if (run_.best().step >= 0) out["best_step"] = run_.best().step, out["best_validation_loss"] = run_.best().loss;
    out["tokens"] = display_.tokens();
    out["tokens_per_second"] = static_cast<double>(display_.tokens()) / display_.seconds();
    out["folder"] = options_.out;
    return out;
  }

 private:
  fs::path checkpoint() const { return fs::path(options_.out) / checkpoint_name; }
  void save_checkpoint() const { run_.save(checkpoint()); }

  void one_step() {
    const step_report now = run_.step();
    last_ = now;
    display_.show(now);
    log_.write({{"step", now.step},
                {"loss", now.loss},
                {"accuracy", now.accuracy},
                {"rate", now.rate},
                {"gradient_norm", now.gradient_norm},
                {"tokens", now.tokens}});
    if (is_due()) validate();
    if (now.step % options_.checkpoint_every == 0 && !run_.finished()) save_checkpoint();
  }
  bool is_due() const {
    const std::int64_t every = options_.validate_every > 0 ? options_.validate_every : run_.steps_per_epoch();
    return run_.done() % every == 0 || run_.finished();
  }
  void validate() {
    if (!run_.can_validate()) return;
    const validation_report now = run_.validate();
    validation_ = now;
    if (run_.done() == 0) first_validation_ = now;
    display_.show(run_.done(), now);
    log_.write({{"step", run_.done()}, {"validation_loss", now.loss}, {"validation_accuracy", now.accuracy}});
  }

  const local_training& options_;
  training_run& run_;
  const subject& what_;
  training_log log_;
  training_display display_;
  std::optional<step_report> last_;
  std::optional<validation_report> validation_, first_validation_;
};

/// What the model that is trained decides about a run.
void complete(local_training& options, const subject& what) {
  options.run.row_length = std::min(options.run.row_length, what.model().config.context);
  options.run.subject = what.identity();
  options.run.dropout = options.full ? 0 : options.lora.dropout;
  options.run.between = [] { check_interrupt(); };
}

data_format format_of(const local_training& options, const model_config& config) {
  return data_format_of(options.model.model, config.vocab_size, config.eos_tokens, options.run.row_length);
}

void note_shortened(const training_data& data, std::int64_t row_length) {
  if (data.shortened == 0) return;
  training_display::note(fmt::format("{} of {} examples are cut to {} tokens: a longer --length keeps more",
                                     data.shortened, data.examples.size(), row_length));
}

void print_outcome(const nlohmann::ordered_json& outcome, bool json) {
  if (json) return print_json(outcome);
  const std::string loss = outcome.contains("loss") ? fmt::format(", loss {:.4f}", outcome["loss"].get<double>()) : "";
  print(fmt::format("{} steps{}, {:.0f} tokens/s: {}\n", outcome["steps"].get<std::int64_t>(), loss,
                    outcome["tokens_per_second"].get<double>(), outcome["folder"].get<std::string>()));
}

}  // namespace

std::vector<std::pair<std::string, double>> read_patterns(const std::vector<std::string>& texts,
                                                          std::string_view flag) {
  std::vector<std::pair<std::string, double>> patterns;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    char* end = nullptr;
    const double value = equals == std::string::npos ? 0 : std::strtod(text.c_str() + equals + 1, &end);
    if (equals == std::string::npos || end != text.c_str() + text.size() || equals + 1 == text.size() ||
        !std::isfinite(value))
      refuse("{}: '{}' is not PATTERN=NUMBER", flag, text);
    patterns.emplace_back(text.substr(0, equals), value);
  }
  return patterns;
}

int train_locally(local_training options) {
  check(options);
  thread_pool pool(thread_count(options.model));
  const compute with{pool, kernels()};
  const auto what = make_subject(options, pool);
  complete(options, *what);
  const data_format format = format_of(options, what->model().config);
  const training_data data = read_training_data(options.data, format);
  note_shortened(data, options.run.row_length);
  std::optional<training_data> validation;
  if (!options.validation.empty()) validation = read_training_data(options.validation, format);
  const interrupt_guard guard;
  training_run run(what->model(), what->parameters(), with, data, validation ? &*validation : nullptr, options.run);
  std::error_code ignored;
  fs::create_directories(options.out, ignored);
  if (options.resume) {
    remove_partial_files(options.out, checkpoint_name);
    run.load(fs::path(options.out) / checkpoint_name);
  }
  local_run local(options, run, *what);
  local.all_steps();
  local.publish();
  print_outcome(local.outcome(), options.json);
  return 0;
}

}  // namespace troupe
