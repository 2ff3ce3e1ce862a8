#pragma once
#include <memory>
#include <optional>

#include "actors/interfaces.hpp"
#include "actors/training/training_files.hpp"
#include "actors/training/training_task.hpp"

namespace troupe {

struct trainer_parts {
  trainers_head_actor head;
  training_site site;
};

/// Works on the job that the head gave it last: fetches the data, lets a training_task compute, reports how far it is,
/// and keeps the result until the head has it. On a thread of its own, since it reads and writes files.
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
  void take_news(const training_news& news);
  void fail(const std::exception& error);
  void stop(const stop_training& stopped);
  void drop();
  std::filesystem::path folder() const { return parts_.site.folder / order_->job; }

  handle::pointer self_;
  trainer_parts parts_;
  std::optional<train_job> order_;
  std::optional<training_download> download_;
  std::unique_ptr<training_task> task_;
  std::vector<training_file> result_;
};

trainer_actor spawn_trainer(caf::actor_system& system, trainer_parts parts);

}  // namespace troupe
