#include "actors/workers/step_frames.hpp"

#include <gtest/gtest.h>

#include "actors/wire.hpp"

namespace troupe {
namespace {

bus::options room_for(const step_sizes& sizes) {
  bus::options options;
  make_room_for_steps(sizes, options);
  return options;
}

TEST(step_frames, a_link_holds_the_activations_of_all_steps_in_flight) {
  const auto options = room_for({.rows = 20'000, .sequences = 256, .steps = 2, .hidden = 4096, .context = 32'768});
  const std::uint64_t activations = 20'000ull * 4096 * 4;
  EXPECT_GE(options.limits.attachment_bytes, activations);
  EXPECT_GE(options.queue_bytes, 3 * activations);
}

TEST(step_frames, an_outcome_with_pooled_rows_of_every_sequence_or_figures_of_every_token_fits) {
  const step_sizes sizes{.rows = 1024, .sequences = 1024, .hidden = 4096, .context = 32'768};
  step_done done;
  done.outcome.hidden.resize(sizes.sequences * sizes.hidden);
  done.outcome.answers.resize(sizes.sequences);
  const sampled_token figures{1, 0.F, std::vector<token_logprob>(100), 1};
  done.outcome.details.assign(sizes.rows, figures);
  done.outcome.scored.assign(sizes.context, figures);
  EXPECT_LE(to_frame(std::move(done)).body.size(), room_for(sizes).limits.body_bytes);
}

TEST(step_frames, a_link_holds_what_all_answers_that_are_opened_at_once_bring_along) {
  const step_sizes sizes{.rows = 2048, .sequences = 1024, .hidden = 768, .context = 4096};
  run_step part{{}, {}, true};
  part.step.opened.resize(1);
  part.step.opened[0].sampling.constraint = {constraint_kind::json_schema, std::string(most_constraint_bytes, ' ')};
  part.step.opened[0].text.resize(sizes.context);
  EXPECT_LE(sizes.sequences * to_frame(std::move(part)).body.size(), room_for(sizes).queue_bytes);
}

TEST(step_frames, links_have_room_for_the_frames_of_no_larger_steps) {
  const step_sizes small{.rows = 2048, .sequences = 256, .hidden = 8192, .context = 2048};
  auto rows = small, context = small;
  rows.rows *= 4;
  context.context *= 64;
  EXPECT_TRUE(have_room_for(small, rows));
  EXPECT_FALSE(have_room_for(rows, small)) << "activations";
  EXPECT_FALSE(have_room_for(context, small)) << "outcomes";
}

TEST(step_frames, small_models_change_no_limit) {
  const auto options = room_for({.rows = 2048, .sequences = 256, .steps = 2, .hidden = 768, .context = 2048});
  EXPECT_EQ(options.limits.attachment_bytes, bus::options().limits.attachment_bytes);
  EXPECT_EQ(options.limits.body_bytes, bus::options().limits.body_bytes);
  EXPECT_EQ(options.queue_bytes, bus::options().queue_bytes);
}

}  // namespace
}  // namespace troupe
