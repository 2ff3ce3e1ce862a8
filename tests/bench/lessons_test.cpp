#include "base/to_size.hpp"
#include "bench/lessons/lesson.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "bench/lessons/lesson_load.hpp"
#include "bench/random/random_model.hpp"
#include "model/ops/isa.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe::bench {
namespace {

namespace fs = std::filesystem;

TEST(the_definitions, are_those_of_the_course) {
  EXPECT_DOUBLE_EQ(latency_ms(2, 10), 200);
  EXPECT_DOUBLE_EQ(throughput(2, 8, 10), 40);
}

const lesson_result sample{
    "a setting", {"way", "ms", "tokens/s"}, {{"slow", {20, 50}}, {"fast", {0.5, 2000}}}, "So.", {}};

TEST(a_lessons_table, has_its_columns_names_first) {
  const std::vector<std::vector<std::string>> expected{
      {"way", "ms", "tokens/s"}, {"slow", "20", "50"}, {"fast", "0.5", "2,000"}};
  EXPECT_EQ(cells_of(sample), expected);
}

TEST(a_lessons_page, shows_table_finding_definitions_and_picture) {
  const std::string page = to_markdown(lessons()[1], sample, "p.svg");
  EXPECT_TRUE(page.starts_with("# Lesson 2: "));
  EXPECT_NE(page.find("| way | ms | tokens/s |\n| --- | ---: | ---: |\n| slow | 20 | 50 |\n"), page.npos);
  EXPECT_NE(page.find("\nSo.\n"), page.npos);
  EXPECT_NE(page.find(lesson_definitions), page.npos);
  EXPECT_NE(page.find("](p.svg)"), page.npos);
  EXPECT_EQ(to_markdown(lessons()[1], sample, "").find("!["), page.npos);
}

/// A tiny random model in a folder of its own.
class lessons_on_a_tiny_model : public ::testing::Test {
 protected:
  lessons_on_a_tiny_model() { write_random_model("tiny", model_); }

  lesson_place place() {
    lesson_place made{[this](const std::string& scheme, const std::vector<std::string>& keep) {
                        load_options chosen;
                        chosen.quant = scheme_from_name(scheme, "the lesson");
                        chosen.keep = keep;
                        chosen.cache = folder_.path() / "packed";
                        return load_model(model_, chosen, pool_);
                      },
                      compute{pool_, kernels()}};
    made.patience = 0;
    made.model = model_;
    return made;
  }
  lesson_result run(int number) {
    const lesson& which = lessons()[to_size(number - 1)];
    EXPECT_EQ(which.number, number);
    const lesson_result result = which.run(place());
    expect_whole(result);
    return result;
  }
  static void expect_whole(const lesson_result& result) {
    EXPECT_FALSE(result.rows.empty());
    for (const lesson_row& row : result.rows) {
      EXPECT_EQ(row.figures.size() + 1, result.columns.size());
      for (const double value : row.figures) EXPECT_TRUE(std::isfinite(value)) << row.name;
    }
    EXPECT_TRUE(result.finding.ends_with('.')) << result.finding;
    EXPECT_GT(to_svg(result.picture).size(), 1000u);
  }

  const test::temp_folder folder_;
  const fs::path model_ = folder_.path() / "tiny";
  thread_pool pool_{2};
};

TEST_F(lessons_on_a_tiny_model, a_cache_saves_computing_the_text_again) {
  const auto result = run(1);
  EXPECT_EQ(result.rows.front().name, "8");
  EXPECT_EQ(result.rows.back().name, "512");
  EXPECT_GT(result.rows.back().figures[0], result.rows.back().figures[1]);
}

TEST_F(lessons_on_a_tiny_model, batches_have_the_latency_and_throughput_of_the_definitions) {
  const auto result = run(2);
  EXPECT_EQ(result.rows.size(), 7u);
  for (const lesson_row& row : result.rows) {
    const double batch = std::stod(row.name), seconds = row.figures[0];
    EXPECT_NEAR(row.figures[1], seconds / 32 * 1e3, 1e-9);
    EXPECT_NEAR(row.figures[2], batch * 32 / seconds, 1e-6 * row.figures[2]);
  }
}

TEST_F(lessons_on_a_tiny_model, continuous_batches_compute_for_somebody_alone) {
  const auto result = run(3);
  EXPECT_LT(result.rows[0].figures.back(), 60) << "a static batch runs until its longest answer ends";
  EXPECT_DOUBLE_EQ(result.rows[1].figures.back(), 100);
}

TEST_F(lessons_on_a_tiny_model, fewer_bits_take_less_memory_and_are_less_exact) {
  const auto result = run(4);
  ASSERT_EQ(result.rows.size(), 6u);
  const auto &f32 = result.rows[0].figures, &u8 = result.rows[2].figures, &kept = result.rows[3].figures;
  EXPECT_EQ(f32[1], 1);
  EXPECT_EQ(f32[4], 0);
  EXPECT_LT(u8[1], 0.35);
  EXPECT_GT(kept[1], u8[1]) << "a layer that is kept takes more";
  EXPECT_LT(kept[4], u8[4]) << "and is more exact";
  EXPECT_GT(result.rows.back().figures[4], u8[4]) << "four bits are less exact than eight";
}

TEST_F(lessons_on_a_tiny_model, quality_is_perplexity_where_there_is_a_text) {
  lesson_place with_text = place();
  with_text.text = "A bear and a bird went to the lake.<|endoftext|>The bird sang.";
  const auto result = lessons()[3].run(with_text);
  expect_whole(result);
  EXPECT_EQ(result.columns.back(), "against f32 %");
  EXPECT_EQ(result.rows.front().figures.back(), 0);
  EXPECT_GT(result.rows.front().figures[5], 100) << "a random model knows nothing of 512 tokens";
}

TEST_F(lessons_on_a_tiny_model, adapters_run_one_by_one_and_together) {
  const auto result = run(5);
  ASSERT_EQ(result.rows.size(), 3u);
  for (const lesson_row& row : result.rows) EXPECT_NEAR(row.figures[4], row.figures[3] / row.figures[1], 1e-9);
}

TEST_F(lessons_on_a_tiny_model, short_streams_do_not_wait_for_the_long_one) {
  const auto result = run(6);
  ASSERT_EQ(result.rows.size(), 3u);
  const auto &alone = result.rows[0].figures, &fixed = result.rows[1].figures, &moving = result.rows[2].figures;
  EXPECT_GT(alone[1], alone[0]) << "one after another: the short one waits";
  EXPECT_EQ(fixed[1], fixed[0]) << "static: all end together";
  EXPECT_LT(moving[1], moving[0]);
  EXPECT_LT(moving[2], moving[0]);
}

TEST_F(lessons_on_a_tiny_model, an_end_in_between_is_passed_on) {
  struct enough {};
  for (const lesson& which : lessons()) {
    lesson_place stopped = place();
    stopped.check = [] { throw enough{}; };
    EXPECT_THROW((void)which.run(stopped), enough) << which.title;
  }
}

/// It has as many positions as its configuration says.
void set_positions(const fs::path& model, std::int64_t positions) {
  auto config = nlohmann::json::parse(test::read_file(model / "config.json"));
  config["max_position_embeddings"] = positions;
  std::ofstream(model / "config.json") << config.dump();
}

TEST_F(lessons_on_a_tiny_model, take_as_many_positions_as_the_course_says) {
  for (const lesson& which : lessons()) {
    set_positions(model_, which.positions - 1);
    EXPECT_THROW((void)which.run(place()), input_error) << which.title;
    set_positions(model_, which.positions);
    expect_whole(which.run(place()));
  }
}

TEST_F(lessons_on_a_tiny_model, a_context_that_is_too_short_is_refused) {
  const lesson_place given = place();
  EXPECT_THROW(lesson_load(given, given.open("u8", {}), {{400, 200}}, 1), input_error);
}

}  // namespace
}  // namespace troupe::bench
