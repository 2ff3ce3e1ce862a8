#include "cluster/journal/journal.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/journal/journal_fixture.hpp"

namespace troupe {
namespace {

using journal_fault = journal_error::reason;
using testing::ElementsAre;

class journal_lines : public journal_fixture {};

std::vector<std::uint64_t> indexes_of(const auto& lines) {
  std::vector<std::uint64_t> indexes;
  for (const auto& line : lines) indexes.push_back(line.index);
  return indexes;
}

TEST_F(journal_lines, takes_lines_again_that_overlap_and_notices_other_content) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 4)).ok());
  auto lines = lines_of(4);
  ASSERT_TRUE(book->add_lines("j1", 0, std::span(lines).first(2)).ok());
  EXPECT_EQ(*book->add_lines("j1", 1, std::span(lines).subspan(1)), 4u);
  lines[0] = "other";
  EXPECT_EQ(book->add_lines("j1", 0, lines).error().why, journal_fault::conflict);
  EXPECT_EQ(book->unfinished_lines("j1", 0, 9)[0].text, "{\"line\":0}");
}

TEST_F(journal_lines, refuses_gaps_surplus_and_sizes) {
  options.max_line_bytes = 100;
  options.max_lines = 10;
  options.max_options_bytes = 100;
  options.max_output_bytes = 100;
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 2)).ok());
  EXPECT_EQ(book->add_lines("j1", 1, lines_of(1)).error().why, journal_fault::invalid);
  EXPECT_EQ(book->add_lines("j1", 0, lines_of(3)).error().why, journal_fault::invalid);
  EXPECT_EQ(book->add_lines("j1", ~0ull, lines_of(1)).error().why, journal_fault::invalid);
  EXPECT_EQ(book->add_lines("j1", 0, std::vector{std::string(101, 'x')}).error().why, journal_fault::too_large);
  EXPECT_EQ(book->add_lines("no", 0, lines_of(1)).error().why, journal_fault::unknown);
  EXPECT_EQ(book->create_job(spec_of("j2", 11)).error().why, journal_fault::too_large);
  for (const char* id : {"", "a b", "../x", "a\n", "j;--"}) {
    EXPECT_EQ(book->create_job(spec_of(id, 1)).error().why, journal_fault::invalid) << id;
  }
  EXPECT_EQ(book->create_job({"j2", "batch", "t", std::string(101, 'x'), 1}).error().why, journal_fault::too_large);
  EXPECT_EQ(book->create_job(spec_of("j2", 1, "two words")).error().why, journal_fault::invalid);
  EXPECT_EQ(record("j1", 0, std::string(101, 'x'), true).error().why, journal_fault::too_large);
  EXPECT_EQ(book->unfinished_lines("j1", 0, 10).size(), 0u);
}

TEST_F(journal_lines, takes_no_more_lines_after_the_seal) {
  open();
  accepted("j1", 2);
  EXPECT_EQ(book->add_lines("j1", 2, lines_of(1)).error().why, journal_fault::invalid);
  EXPECT_EQ(*book->add_lines("j1", 2, {}), 2u);
}

TEST_F(journal_lines, records_an_output_once) {
  open();
  accepted("j1", 3);
  EXPECT_TRUE(*record("j1", 1, "one", true));
  EXPECT_FALSE(*record("j1", 1, "another", false));
  EXPECT_FALSE(*record("j1", 3, "beyond", true));
  EXPECT_FALSE(*record("j1", ~0ull, "far beyond", true));
  EXPECT_FALSE(*record("no", 0, "of nobody", true));
  const std::vector<line_record> twice{{"j1", 0, "zero", false}, {"j1", 0, "again", true}};
  EXPECT_THAT(*book->record_all(twice), ElementsAre(true, false));
  const auto job = *book->find("j1");
  EXPECT_EQ(job.line_ok, 1u);
  EXPECT_EQ(job.line_failed, 1u);
  const auto outputs = book->outputs("j1", 0, 10);
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].text, "zero");
  EXPECT_FALSE(outputs[0].ok);
  EXPECT_EQ(outputs[1].text, "one");
  EXPECT_EQ(indexes_of(book->unfinished_lines("j1", 0, 10)), (std::vector<std::uint64_t>{2}));
}

TEST_F(journal_lines, records_nothing_for_jobs_that_were_not_accepted) {
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 1)).ok());
  ASSERT_TRUE(book->add_lines("j1", 0, lines_of(1)).ok());
  EXPECT_FALSE(*record("j1", 0, "x", true));
}

TEST_F(journal_lines, gives_outputs_in_order_up_to_the_first_gap) {
  open();
  accepted("j1", 6);
  for (const std::uint64_t index : {0, 1, 3, 4}) EXPECT_TRUE(*record("j1", index, "x", true));
  EXPECT_EQ(indexes_of(book->outputs("j1", 0, 10)), (std::vector<std::uint64_t>{0, 1}));
  EXPECT_EQ(indexes_of(book->outputs("j1", 1, 1)), (std::vector<std::uint64_t>{1}));
  EXPECT_TRUE(book->outputs("j1", 2, 10).empty());
  EXPECT_EQ(indexes_of(book->outputs("j1", 3, 10)), (std::vector<std::uint64_t>{3, 4}));
  EXPECT_TRUE(book->outputs("j1", ~0ull, 10).empty());
  EXPECT_TRUE(book->cancel("j1").ok());
  EXPECT_EQ(indexes_of(book->outputs("j1", 0, 10)), (std::vector<std::uint64_t>{0, 1, 3, 4}));
}

TEST_F(journal_lines, succeeds_with_the_last_output) {
  open();
  accepted("j1", 2);
  EXPECT_EQ(book->start("j1")->state, job_state::running);
  EXPECT_EQ(book->start("j1")->state, job_state::running);
  (void)record("j1", 0, "x", true);
  EXPECT_EQ(book->find("j1")->state, job_state::running);
  seconds += 5;
  (void)record("j1", 1, "x", false);
  EXPECT_EQ(book->find("j1")->state, job_state::succeeded);
  EXPECT_EQ(book->find("j1")->finished, seconds);
  EXPECT_TRUE(book->unfinished().empty());
  EXPECT_EQ(book->start("j1").error().why, journal_fault::wrong_state);
  EXPECT_EQ(book->cancel("j1")->state, job_state::succeeded);
}

TEST_F(journal_lines, records_nothing_after_a_cancel) {
  open();
  accepted("j1", 2);
  EXPECT_EQ(book->cancel("j1")->state, job_state::cancelled);
  EXPECT_FALSE(*record("j1", 0, "late", true));
  EXPECT_EQ(book->cancel("no").error().why, journal_fault::unknown);
}

TEST_F(journal_lines, keeps_any_bytes) {
  open();
  const std::vector<std::string> lines{std::string("a\0b", 3), "\xff\xfe", "", "'; DROP TABLE jobs; --"};
  ASSERT_TRUE(book->create_job(spec_of("j1", 4)).ok());
  ASSERT_TRUE(book->add_lines("j1", 0, lines).ok());
  ASSERT_TRUE(book->seal("j1").ok());
  const auto stored = book->unfinished_lines("j1", 0, 10);
  ASSERT_EQ(stored.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(stored[i].text, lines[i]);
    EXPECT_TRUE(*record("j1", i, lines[i], true));
  }
  for (const auto& output : book->outputs("j1", 0, 10)) EXPECT_EQ(output.text, lines[output.index]);
}

TEST_F(journal_lines, gives_long_texts_in_pages) {
  options.page_bytes = 1000;
  open();
  ASSERT_TRUE(book->create_job(spec_of("j1", 10)).ok());
  ASSERT_TRUE(book->add_lines("j1", 0, std::vector(10, std::string(400, 'x'))).ok());
  ASSERT_TRUE(book->seal("j1").ok());
  EXPECT_EQ(book->unfinished_lines("j1", 0, 100).size(), 3u);
  EXPECT_EQ(indexes_of(book->unfinished_lines("j1", 8, 100)), (std::vector<std::uint64_t>{8, 9}));
  for (std::uint64_t line = 0; line < 4; ++line) EXPECT_TRUE(*record("j1", line, std::string(400, 'x'), true));
  EXPECT_EQ(book->outputs("j1", 0, 100).size(), 3u);
  EXPECT_EQ(book->outputs("j1", 0, 100, 500).size(), 2u) << "whoever asks may want less";
}

}  // namespace
}  // namespace troupe
