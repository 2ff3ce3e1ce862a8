#include "model/train/run/training_course.hpp"

#include <gtest/gtest.h>

#include "tests/base/temp_folder.hpp"
#include "tests/model/train/run/adapter_run.hpp"

namespace troupe {
namespace {

struct stopped_here {};

/// A run of five steps and what is heard of its course: "1" a step, "v1" a validation behind it, "c1" a checkpoint.
struct heard_course {
  explicit heard_course(double held_out = 0.1)
      : data(counting_data(90, 40)), f("llama", 1, five_steps(held_out), data) {}

  static training_options five_steps(double held_out) {
    training_options options = quick_options();
    options.most_steps = 5;
    options.validation_share = held_out;
    return options;
  }
  std::string checkpoint() const { return (folder.path() / "checkpoint.safetensors").string(); }
  void note(const std::string& what) { heard += (heard.empty() ? "" : " ") + what; }
  void go(std::int64_t validate_every, std::int64_t checkpoint_every, std::int64_t stop_at = -1,
          std::function<bool()> wants_checkpoint = {}) {
    training_course course(f.run, {validate_every, checkpoint_every, checkpoint()},
                           {.before_step =
                                [&] {
                                  if (f.run.done() == stop_at) throw stopped_here();
                                },
                            .on_step = [&](const step_report& now) { note(std::to_string(now.step)); },
                            .on_validation = [&](const auto&) { note("v" + std::to_string(f.run.done())); },
                            .wants_checkpoint = std::move(wants_checkpoint),
                            .on_checkpoint = [&] { note("c" + std::to_string(f.run.done())); }});
    course.all_steps();
  }

  training_data data;
  adapter_run f;
  test::temp_folder folder;
  std::string heard;
};

TEST(training_course, validates_first_then_after_some_steps_and_at_the_end) {
  heard_course c;
  c.go(2, 0);
  EXPECT_EQ(c.heard, "v0 1 2 v2 3 4 v4 5 v5");
}

TEST(training_course, has_checkpoints_behind_validations_and_none_of_the_end) {
  heard_course c;
  c.go(2, 1);
  EXPECT_EQ(c.heard, "v0 1 c1 2 v2 c2 3 c3 4 v4 c4 5 v5");
}

TEST(training_course, has_a_checkpoint_whenever_one_is_wanted) {
  heard_course c;
  c.go(5, 0, -1, [&] { return c.f.run.done() == 3; });
  EXPECT_EQ(c.heard, "v0 1 2 3 c3 4 5 v5");
}

TEST(training_course, validates_never_where_nothing_is_held_out) {
  heard_course c(0);
  c.go(1, 2);
  EXPECT_EQ(c.heard, "1 2 c2 3 4 c4 5");
}

TEST(training_course, goes_on_where_it_was_stopped_and_measures_nothing_twice) {
  heard_course c;
  EXPECT_THROW(c.go(2, 2, 2), stopped_here);
  EXPECT_EQ(c.heard, "v0 1 2 v2 c2");
  heard_course again;
  again.f.run.load(c.checkpoint());
  again.go(2, 0);
  EXPECT_EQ(again.heard, "3 4 v4 5 v5");
}

TEST(training_course, measures_what_was_stopped_before_it_could_be) {
  heard_course c;
  for (int i = 0; i < 2; ++i) c.f.run.step();
  c.go(2, 0);
  EXPECT_EQ(c.heard, "v2 3 4 v4 5 v5");
}

}  // namespace
}  // namespace troupe
