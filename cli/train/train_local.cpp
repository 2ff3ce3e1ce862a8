#include "cli/train/train_local.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/file.h>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "cli/train/train_subject.hpp"
#include "cli/train/training_display.hpp"
#include "cli/train/training_log.hpp"
#include "model/ops/isa.hpp"
#include "model/train/data/training_data.hpp"
#include "model/train/run/checkpoint.hpp"
#include "model/train/run/training_course.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// As often as a trainer of a cluster does, unless its file says otherwise.
constexpr auto checkpoint_after = std::chrono::minutes(1);

void check(const training_flags& o) {
  if (o.folder().empty()) refuse("no folder to write to: name one with {}", o.full ? "--out" : "--adapter");
  if (o.checkpoint_every < 0) refuse("--checkpoint-every is {}: use 1 or more", o.checkpoint_every);
  if (o.validate_every < 0) refuse("--validate-every is {}: use 1 or more", o.validate_every);
  if (o.full && o.model.device != "cpu")
    refuse("--full: adapters alone are trained on GPUs: leave out --device {}", o.model.device);
  const fs::path out(o.folder());
  if (std::error_code ignored; fs::equivalent(out, o.model.path, ignored))
    refuse("{}: is the folder of the model itself: choose another folder", out.string());
}

void check_folder(const training_flags& o) {
  const fs::path out(o.folder());
  const bool unfinished = path_exists(out / checkpoint_name);
  if (o.resume && !unfinished) refuse("{}: has no checkpoint to go on from: leave out --resume", o.folder());
  if (std::error_code ignored;
      !o.resume && !o.force && path_exists(out) && (!is_folder(out) || !fs::is_empty(out, ignored)))
    refuse("{}: is there already: {}choose another folder, or replace it with --force", o.folder(),
           unfinished ? "go on with --resume, " : "");
}

/// With the settings that depend on this process, and on the model that is trained.
training_options run_of(const training_flags& o, const device_id& device, const train_subject& what) {
  training_options run = o.run;
  run.device = device;
  run.between = [] { check_interrupt(); };
  run.row_length = std::min(run.row_length, what.model().config.context);
  run.subject = what.identity();
  if (!o.init.empty()) run.init = "the adapter " + o.init;
  return run;
}

/// The folder that is written: made, tried and locked before anything is trained that could not be kept. One that was
/// made for a run that then wrote nothing goes again.
class output_folder {
 public:
  explicit output_folder(fs::path path) : path_(std::move(path)), is_new_(!path_exists(path_)) {
    try {
      make_folder(path_);
      lock();
      const fs::path trial = path_ / fmt::format("{}.trial", checkpoint_name);
      write_file(trial, "");
      fs::remove(trial);
    } catch (const std::runtime_error& error) {
      clean_up();
      throw input_error(error.what());
    }
  }
  ~output_folder() { clean_up(); }
  output_folder(const output_folder&) = delete;
  output_folder& operator=(const output_folder&) = delete;

 private:
  /// For as long as it is open. A run writes nothing there for a minute, and another might begin.
  void lock() {
    opened_ = file_descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened_.is_open() && ::flock(opened_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      refuse("{}: another troupe train writes there: wait for its end, or choose another folder", path_.string());
  }
  void clean_up() const {
    std::error_code not_empty;
    if (is_new_) fs::remove(path_, not_empty);
  }

  fs::path path_;
  bool is_new_;
  file_descriptor opened_;
};

class local_run {
 public:
  local_run(const training_flags& options, training_run& run, const train_subject& what)
      : options_(options),
        run_(run),
        what_(what),
        log_(options.log, options.resume),
        display_(run.steps(), run.done(), options.json),
        was_finished_(run.finished()),
        course_(run,
                {.validate_every = options.validate_every,
                 .checkpoint_every = options.checkpoint_every,
                 .checkpoint = fs::path(options.folder()) / checkpoint_name},
                {.before_step = [] { check_interrupt(); },
                 .on_step = [this](const step_report& now) { tell(now); },
                 .on_validation = [this](const validation_report& now) { tell(now); },
                 .wants_checkpoint = [this] { return time_.now() - checkpoint_at_ >= checkpoint_after; },
                 .on_checkpoint = [this] { checkpoint_at_ = time_.now(); }}) {}

  void all_steps() {
    try {
      course_.all_steps();
    } catch (const interrupted&) {
      course_.save_checkpoint();
      write_error(
          fmt::format("\ntroupe: {}: has a checkpoint: the same command with --resume goes on\n", options_.folder()));
      throw;
    }
  }
  void publish() {
    const fs::path best = fs::path(options_.folder()) / "best";
    std::error_code ignored;
    what_.save(options_.folder());
    if (run_.can_validate())
      run_.with_best([&] { what_.save(best); });
    else
      fs::remove_all(best, ignored);  // of what --force replaces
    if (options_.keep_checkpoint)
      course_.save_checkpoint();
    else if (!was_finished_)  // or it is what an earlier run kept
      fs::remove(course_.checkpoint(), ignored);
  }
  /// Only what this process measured: one that resumes has not seen the beginning, and perhaps has made no step.
  nlohmann::ordered_json outcome() const {
    nlohmann::ordered_json out{{"steps", run_.done()}};
    if (last_) out["loss"] = last_->loss;
    if (validation_) {
      out["validation_loss"] = validation_->loss;
      out["validation_accuracy"] = validation_->accuracy;
    }
    if (first_validation_) out["base_validation_loss"] = first_validation_->loss;
    if (run_.best().step >= 0) {
      out["best_step"] = run_.best().step;
      out["best_validation_loss"] = run_.best().loss;
    }
    out["tokens"] = display_.tokens();
    out["tokens_per_second"] = static_cast<double>(display_.tokens()) / display_.seconds();
    out["folder"] = options_.folder();
    return out;
  }

 private:
  void tell(const step_report& now) {
    last_ = now;
    display_.show(now);
    log_.write({{"step", now.step},
                {"loss", now.loss},
                {"accuracy", now.accuracy},
                {"rate", now.rate},
                {"gradient_norm", now.gradient_norm},
                {"tokens", now.tokens}});
  }
  void tell(const validation_report& now) {
    validation_ = now;
    if (run_.done() == 0) first_validation_ = now;
    display_.show(run_.done(), now);
    log_.write({{"step", run_.done()}, {"validation_loss", now.loss}, {"validation_accuracy", now.accuracy}});
  }

  const training_flags& options_;
  training_run& run_;
  const train_subject& what_;
  training_log log_;
  training_display display_;
  bool was_finished_;
  training_course course_;
  monotonic_clock time_;
  instant checkpoint_at_ = time_.now();
  std::optional<step_report> last_;
  std::optional<validation_report> validation_, first_validation_;
};

/// `whose`: " of the validation data", or nothing.
void note_losses(const data_losses& losses, const data_format& format, const char* whose) {
  if (losses.shortened > 0)
    training_display::note(fmt::format("{} examples{} are cut to {} tokens, or begin beyond them and are left out{}",
                                       losses.shortened, whose, format.row_length,
                                       format.row_length < format.context ? ": a longer --length keeps more" : ""));
  if (losses.unwritten > 0)
    training_display::note(
        fmt::format("{} examples{} have messages that the model's chat template does not write, such as a system "
                    "message: those are not learned from",
                    losses.unwritten, whose));
}

void print_outcome(const nlohmann::ordered_json& outcome, bool json) {
  if (json) return print_json(outcome);
  const std::string loss = outcome.contains("loss") ? fmt::format(", loss {:.4f}", outcome["loss"].get<double>()) : "";
  print(fmt::format("{} steps{}, {:.0f} tokens/s: {}\n", outcome["steps"].get<std::int64_t>(), loss,
                    outcome["tokens_per_second"].get<double>(), outcome["folder"].get<std::string>()));
}

}  // namespace

int train_locally(const training_flags& options) {
  check(options);
  check_folder(options);
  const device_id device = device_of(options.model);
  thread_pool pool(thread_count(options.model));
  const compute with{pool, kernels()};
  const auto what = make_train_subject(options, pool);
  const training_options chosen = run_of(options, device, *what);
  const data_format format = data_format_of(options.model.path, what->model().config, chosen.row_length);
  const training_data data = read_training_data(options.data, format);
  note_losses(data.losses, format, "");
  if (const auto unended = unended_text(data.losses, options.full ? "model" : "adapter"); !unended.empty())
    training_display::note(unended);
  std::optional<training_data> validation;
  if (!options.validation.empty()) {
    validation = read_training_data(options.validation, format);
    note_losses(validation->losses, format, " of the validation data");
  }
  const interrupt_guard guard;
  training_run run(what->model(), what->parameters(), with, data, validation ? &*validation : nullptr, chosen);
  if (const std::string remark = run.remark(); !remark.empty()) training_display::note(remark);
  const output_folder folder(options.folder());
  check_folder(options);  // once more: another run may have ended there meanwhile
  if (options.resume) {
    remove_partial_files(options.folder(), checkpoint_name);
    run.load(fs::path(options.folder()) / checkpoint_name);
    cut_training_log(options.log, run.done(), run.best().step == run.done());
  }
  local_run local(options, run, *what);
  if (const std::string doubts = run.doubts(); !doubts.empty()) training_display::note(doubts);
  local.all_steps();
  local.publish();
  print_outcome(local.outcome(), options.json);
  return 0;
}

}  // namespace troupe
