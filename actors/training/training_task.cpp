#include "actors/training/training_task.hpp"

#include <algorithm>
#include <optional>

#include <sched.h>

#include "actors/adapters/adapter_files.hpp"
#include "actors/training/training_files.hpp"
#include "actors/training/training_points.hpp"
#include "actors/training/training_ranks.hpp"
#include "actors/training/training_spec.hpp"
#include "base/device_lost.hpp"
#include "base/error.hpp"
#include "base/read_failure.hpp"
#include "base/whole_file.hpp"
#include "model/arch/fingerprint.hpp"
#include "model/ops/isa.hpp"
#include "model/train/data/training_data.hpp"
#include "model/train/parameters/lora_parameters.hpp"
#include "model/train/passes/train_pass.hpp"
#include "model/train/run/checkpoint.hpp"
#include "model/train/run/training_course.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr duration report_interval = std::chrono::milliseconds(200);

constexpr const char* no_memory = "there is not enough memory: use shorter rows, fewer of them, or low_memory";

struct stopped {};

/// The job cannot be done here, which is no fault of its own: this trainer's files, device or memory lack something.
class trainer_fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Threads made after this inherit the priority. If the system refuses, training runs at normal priority.
void take_idle_priority() {
  const sched_param none{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &none);
}

}  // namespace

/// One job on this trainer, from its data to its result.
class training_task::session {
 public:
  session(training_task& owner, training_spec spec, training_ranks* ranks)
      : owner_(owner),
        site_(owner.site_),
        spec_(std::move(spec)),
        ranks_(ranks),
        pool_(site_.threads),
        folder_(owner.folder()) {
    try {
      load_base();
      read_data();
      look();
      make_run();
    } catch (const std::bad_alloc&) {
      throw trainer_fault(no_memory);
    } catch (const full_error& error) {
      throw trainer_fault(error.what());
    }
    resume();
  }

  void all_steps() {
    try {
      course_->all_steps();
    } catch (const stopped&) {
      course_->save_checkpoint();
      throw;
    } catch (const collective_failure&) {  // this trainer still has all that was done together
      course_->save_checkpoint();
      throw;
    } catch (const device_lost&) {  // the trained weights are in the host's memory
      course_->save_checkpoint();
      throw;
    }
  }

  /// Writes a last checkpoint first: if the result is lost before it is published, it is made again at once.
  std::vector<training_file> publish() {
    course_->save_checkpoint();
    report_points(what_is_published());
    const fs::path fresh = folder_ / "result.new", result = folder_ / result_folder;
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    const auto save = [&] { lora_->save(fresh, site_.model.string(), spec_.run.dropout); };
    if (spec_.publish_best)
      run_->with_best(save);
    else
      save();
    fs::remove_all(result, ignored);
    move_to(fresh, result);
    std::vector<training_file> files;
    for (const std::string_view name : adapter_file_names) files.push_back(describe_file(result, std::string(name)));
    return files;
  }

 private:
  /// Whoever asked for the best learns which step that is, and whether anything was learned at all.
  training_progress what_is_published() const {
    training_progress said;
    const auto& [step, loss] = run_->best();
    if (!spec_.publish_best || step < 0) return said;
    said.is_warning = step == 0;
    said.message =
        fmt::format("publishes step {} of {}, which did best: validation loss {:.4f}{}", step, run_->steps(), loss,
                    step > 0 ? ""
                             : ": nothing that was learned did better than the base, so the adapter changes "
                               "nothing; lower the learning rate (lr), or look at the examples");
    return said;
  }
  void look() {
    if (!owner_.brake_.pass()) throw stopped();
    if (ranks_) ranks_->check();
  }
  bool is_first() const { return owner_.order_.rank == 0; }

  void load_base() try {
    base_ = load_model(site_.model, site_.load, pool_);
    if (model_id(fingerprint_of(*base_)) != owner_.order_.model)
      refuse("{}: is another model than the cluster's: give the trainer the same files and quant",
             site_.model.string());
    check_trainable(site_.device, base_->config);
    trained_ = frozen(base_);
  } catch (const device_lost&) {
    throw;
  } catch (const std::runtime_error& error) {
    throw trainer_fault(error.what());
  }
  void read_data() {
    spec_.run.row_length = std::min(spec_.run.row_length, base_->config.context);
    const data_format format = data_format_of(site_.model, base_->config, spec_.run.row_length);
    data_ = read_training_data(folder_ / spec_.data_file(), format);
    if (spec_.has_validation()) validation_ = read_training_data(folder_ / spec_.validation_file(), format);
    if (spec_.reading != 0 &&
        reading_of(data_.fingerprint, validation_ ? validation_->fingerprint : 0) != spec_.reading)
      throw trainer_fault(fmt::format(
          "{}: its tokenizer or chat template reads the data otherwise than the head's did: give the trainer the same "
          "files; if it has them, {} was changed, or an earlier build accepted the job: submit it anew",
          site_.model.string(), (folder_ / spec_.data_file()).string()));
  }
  void make_run() {
    lora_.emplace(trained_, spec_.lora, spec_.run.seed);
    spec_.run.between = [this] { look(); };
    spec_.run.device = site_.device;
    if (ranks_) spec_.run.group = ranks_->group();
    spec_.run.subject = identity_of(lora_->options(), owner_.order_.model.value);
    run_.emplace(trained_, lora_->parameters(), compute{pool_, kernels()}, data_, validation_ ? &*validation_ : nullptr,
                 spec_.run);
    course_.emplace(*run_,
                    training_course::options{.validate_every = spec_.validate_every,
                                             .checkpoint_every = is_first() ? spec_.checkpoint_every : 0,
                                             .checkpoint = folder_ / checkpoint_name},
                    heard());
  }
  training_course::events heard() {
    return {.before_step =
                [this] {
                  report_when_due();
                  look();
                },
            .on_step =
                [this](const step_report& done) {
                  tokens_ += done.tokens;
                  note({.step = done.step,
                        .loss = done.loss,
                        .accuracy = done.accuracy,
                        .rate = done.rate,
                        .tokens = tokens_});
                },
            .on_validation =
                [this](const validation_report& seen) {
                  note({.step = run_->done(),
                        .loss = seen.loss,
                        .accuracy = seen.accuracy,
                        .is_validation = true,
                        .tokens = tokens_});
                },
            .wants_checkpoint =
                [this] { return is_first() && monotonic_clock().now() - checkpoint_at_ >= site_.checkpoint_after; },
            .on_checkpoint =
                [this] {
                  checkpoint_ = run_->done();
                  checkpoint_at_ = monotonic_clock().now();
                  write_points(folder_ / points_name, recent_);
                }};
  }
  void note(const training_point& point) {
    constexpr std::size_t most_recent = 512;
    points_.push_back(point);
    recent_.push_back(point);
    fade(recent_, most_recent);
  }

  void resume() {
    report_at_ = checkpoint_at_ = monotonic_clock().now();
    const std::string how = is_first() ? load_checkpoint() : std::string();
    run_->follow_first();
    if (run_->done() > 0) recent_ = read_points(folder_ / points_name, run_->done());
    const std::string doubts = run_->doubts();
    tokens_ = tokens_before_ = run_->tokens();
    report({.message = fmt::format("{} with {} examples, {} steps{}{}", how, data_.examples.size(), run_->steps(),
                                   ranks_ ? fmt::format(", {} trainers", owner_.order_.ranks) : std::string(),
                                   doubts.empty() ? "" : ": " + doubts),
            .points = recent_});
  }
  std::string load_checkpoint() {
    const fs::path& checkpoint = course_->checkpoint();
    std::error_code ignored;
    remove_partial_files(folder_);  // left by trainers that died; one that still writes there has lost the job
    if (!fs::exists(checkpoint, ignored)) return "begins";
    try {
      run_->load(checkpoint);
      checkpoint_ = run_->done();
      return fmt::format("goes on from step {}", run_->done());
    } catch (const read_failure&) {
      throw;
    } catch (const input_error& error) {  // torn when a machine died, or written by another build
      fs::remove(checkpoint, ignored);
      return fmt::format("begins anew: {}", error.what());
    }
  }

  /// Reports a new checkpoint at once.
  void report_when_due() {
    if (checkpoint_ != told_checkpoint_ || monotonic_clock().now() - report_at_ >= report_interval) report_points({});
  }
  void report_points(training_progress progress) {
    constexpr std::size_t most_points = 32;
    thin(points_, most_points);
    progress.points = std::exchange(points_, {});
    report(std::move(progress));
  }
  void report(training_progress progress) {
    const instant now = monotonic_clock().now();
    const double seconds = seconds_of(now - report_at_);
    progress.lease = owner_.order_.lease;
    progress.step = run_->done();
    progress.steps = run_->steps();
    progress.tokens = tokens_;
    if (seconds > 0) progress.tokens_per_second = static_cast<double>(tokens_ - tokens_before_) / seconds;
    progress.checkpoint = checkpoint_;
    progress.best_step = run_->best().step;
    progress.best_loss = run_->best().loss;
    if (is_first()) owner_.say_(std::move(progress));
    tokens_before_ = tokens_;
    told_checkpoint_ = checkpoint_;
    report_at_ = now;
  }

  training_task& owner_;
  const training_site& site_;
  training_spec spec_;
  training_ranks* ranks_;  ///< nullptr: it trains alone
  thread_pool pool_;
  fs::path folder_;
  std::shared_ptr<const loaded_model> base_;
  trained_model trained_;
  training_data data_;
  std::optional<training_data> validation_;
  std::optional<lora_parameters> lora_;
  std::optional<training_run> run_;
  std::optional<training_course> course_;
  std::vector<training_point> points_;  ///< that were not told yet
  std::vector<training_point> recent_;  ///< told or not: the head may be away
  std::int64_t tokens_ = 0, tokens_before_ = 0, checkpoint_ = -1, told_checkpoint_ = -1;
  instant report_at_, checkpoint_at_;
};

// --- the thread ---

training_task::training_task(training_site site, train_job order, std::function<void(news)> say)
    : site_(std::move(site)), order_(std::move(order)), say_(std::move(say)) {
  brake_.set_share(order_.share);
  thread_ = std::thread([this] { run(); });
}

training_task::~training_task() {
  brake_.stop();
  thread_.join();
}

void training_task::run() {
  training_ended end{order_.lease, {}, {}};
  bool speaks = true;
  try {
    end.files = train();
    speaks = order_.rank == 0;
  } catch (const stopped&) {
  } catch (const collective_failure& failure) {
    if (!brake_.is_stopped()) {
      end.error = failure.what();
      end.is_alone = true;
    }
  } catch (const device_lost& error) {
    if (site_.on_device_lost) site_.on_device_lost(error.what());
    end.error = error.what();
  } catch (const std::bad_alloc&) {
    end.error = no_memory;
  } catch (const trainer_fault& fault) {
    end.error = fault.what();
    end.may_pass = true;
  } catch (const std::exception& error) {
    end.error = error.what();
    end.may_pass = may_pass(error);
  }
  if (speaks) say_(std::move(end));
}

/// Starts the thread that talks to the other trainers before taking idle priority, so that it keeps running whatever
/// else this machine does.
std::vector<training_file> training_task::train() {
  if (order_.ranks > 1)
    ranks_ = std::make_unique<training_ranks>(order_, site_.meeting.get(), site_.ranks_patience, brake_.token());
  if (site_.idle_priority) take_idle_priority();
  session whole(*this, read_training_spec(order_.spec, "job " + order_.job), ranks_.get());
  whole.all_steps();
  return order_.rank == 0 ? whole.publish() : std::vector<training_file>();
}

}  // namespace troupe
