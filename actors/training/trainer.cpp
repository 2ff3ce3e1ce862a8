#include "actors/training/trainer.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "actors/training/training_files.hpp"
#include "base/ascii.hpp"
#include "base/paths.hpp"

namespace troupe {
namespace {

class trainer_state {
 public:
  using handle = trainer_actor;
  static constexpr const char* name = "trainer";

  trainer_state(handle::pointer self, trainer_parts parts);
  handle::behavior_type make_behavior();

 private:
  void begin(const train_job& order);
  void go_on();
  void take_piece(const training_piece& piece);
  void take_end(const training_ended& ended);
  void fail(const std::exception& error);
  void stop(const stop_training& stopped);
  void note_what_was_before();
  void keep(const keep_jobs& kept);
  void drop();
  std::filesystem::path folder() const { return parts_.site.folder / order_->job; }

  handle::pointer self_;
  trainer_parts parts_;
  std::optional<train_job> order_;
  std::optional<training_download> download_;
  std::unique_ptr<training_task> task_;
  std::vector<training_file> result_;
  std::vector<std::filesystem::path> from_before_;  ///< folders that were here before this node last joined
};

}  // namespace

trainer_state::trainer_state(handle::pointer self, trainer_parts parts) : self_(self), parts_(std::move(parts)) {
  note_what_was_before();
}

trainer_state::handle::behavior_type trainer_state::make_behavior() {
  return {
      [this](const train_job& order) { begin(order); },
      [this](const stop_training& stopped) { stop(stopped); },
      [this](const set_training_share& change) {
        if (!order_ || order_->lease != change.lease) return;
        order_->share = change.share;
        if (task_) task_->set_share(change.share);
      },
      [this](const want_training_piece& wanted) {
        if (order_ && order_->lease == wanted.lease)
          tell(parts_.head, read_training_piece(folder() / training_task::result_folder, result_, wanted));
      },
      [this](const training_piece& piece) { take_piece(piece); },
      [this](const training_progress& progress) {
        if (order_ && order_->lease == progress.lease) tell(parts_.head, progress);
      },
      [this](const training_ended& ended) { take_end(ended); },
      [this](const keep_jobs& kept) { keep(kept); },
      [this](forget_life) {
        drop();
        note_what_was_before();
      },
      [](const link_lost&) {},
      [this](stop_now) {
        drop();
        self_->quit();
      },
  };
}

void trainer_state::begin(const train_job& order) {
  drop();
  if (!is_short_word(order.job)) return;
  order_ = order;
  try {
    download_.emplace(folder(), order.files, order.lease);
    go_on();
  } catch (const std::exception& error) {
    fail(error);
  }
}

/// Asks for the next piece, or begins to compute.
void trainer_state::go_on() {
  if (const auto wanted = download_->next()) return tell(parts_.head, *wanted);
  download_.reset();
  task_ = std::make_unique<training_task>(parts_.site, *order_, [to = handle(self_)](training_task::news news) {
    std::visit([&](auto& report) { tell(to, std::move(report)); }, news);
  });
}

void trainer_state::take_piece(const training_piece& piece) {
  if (!download_) return;
  try {
    if (download_->take(piece)) go_on();
  } catch (const std::exception& error) {
    fail(error);
  }
}

void trainer_state::take_end(const training_ended& ended) {
  if (!order_ || ended.lease != order_->lease) return;
  result_ = ended.files;
  tell(parts_.head, ended);
  task_.reset();  // only now do the others of its group miss this trainer
}

void trainer_state::fail(const std::exception& error) {
  training_ended end{order_->lease, error.what(), {}};
  end.may_pass = may_pass(error);
  tell(parts_.head, end);
  drop();
}

void trainer_state::stop(const stop_training& stopped) {
  if (order_ && (order_->lease == stopped.lease || order_->job == stopped.forget)) drop();
  std::error_code ignored;
  if (is_short_word(stopped.forget)) std::filesystem::remove_all(parts_.site.folder / stopped.forget, ignored);
}

void trainer_state::note_what_was_before() {
  from_before_ = entries_of(parts_.site.folder);
}

/// Jobs may have ended while this trainer was away. A folder that came later is not touched: on the head's own machine
/// a client may be sending the data of a job that is no job yet.
void trainer_state::keep(const keep_jobs& kept) {
  std::error_code ignored;
  for (const std::filesystem::path& folder : std::exchange(from_before_, {})) {
    const std::string job = folder.filename().string();
    if (is_short_word(job) && std::find(kept.jobs.begin(), kept.jobs.end(), job) == kept.jobs.end())
      std::filesystem::remove_all(folder, ignored);
  }
}

/// Destroying the task waits until it has written its checkpoint. On a busy machine a thread with idle priority may not
/// get there for minutes: a process that is to end does not wait so long, and its last checkpoint counts.
void trainer_state::drop() {
  task_.reset();
  download_.reset();
  result_.clear();
  order_.reset();
}

trainer_actor spawn_trainer(caf::actor_system& system, trainer_parts parts) {
  return spawn_state<trainer_state, actor_thread::own>(system, std::move(parts));
}

}  // namespace troupe
