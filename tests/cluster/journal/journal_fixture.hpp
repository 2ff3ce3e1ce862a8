#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cluster/journal/journal.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe {

/// A journal in a folder of its own, with a clock that only the test moves.
class journal_fixture : public testing::Test {
 protected:
  journal_fixture() {
    options.file = folder / "journal.db";
    options.wall_seconds = [this] { return seconds + wall_leap; };
    options.passed_seconds = [this] { return seconds; };
  }

  journal& open() {
    book.reset();
    book = std::make_unique<journal>(options);
    return *book;
  }

  static std::vector<std::string> lines_of(std::size_t count) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < count; ++i) lines.push_back("{\"line\":" + std::to_string(i) + "}");
    return lines;
  }

  static job_spec spec_of(const std::string& id, std::uint64_t lines, const std::string& kind = "batch") {
    return {id, kind, "tenant", R"({"max_tokens":8})", lines};
  }

  /// Makes a job with so many lines, and seals it.
  job_info accepted(const std::string& id, std::size_t count) {
    EXPECT_TRUE(book->create_job(spec_of(id, count)).ok());
    EXPECT_TRUE(book->add_lines(id, 0, lines_of(count)).ok());
    const auto job = book->seal(id);
    EXPECT_TRUE(job.ok());
    return *job;
  }

  /// Records one output.
  result<bool, journal_error> record(std::string_view id, std::uint64_t index, std::string_view text, bool ok) {
    const line_record one{id, index, text, ok};
    const auto is_new = book->record_all({&one, 1});
    if (!is_new) return is_new.error();
    return bool{is_new->front()};
  }

  test::temp_folder temporary;
  const std::filesystem::path folder = temporary.path() / "state";  ///< not there before a journal is
  journal::options options;
  std::int64_t seconds = 1'000'000;
  std::int64_t wall_leap = 0;  ///< added to the wall clock only
  std::unique_ptr<journal> book;
};

}  // namespace troupe
