// The files of `troupe submit --file`: lines that go in, and lines that come out.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"

namespace troupe {

/// Input lines that are not empty, one after the other. Refuses what is no regular file: a file is read twice. So it
/// does with a line that JSON could not carry as it is, or that is too long for a job.
class line_reader {
 public:
  explicit line_reader(std::filesystem::path path);
  bool next(std::string& line);

 private:
  std::filesystem::path path_;
  std::ifstream in_;
  std::uint64_t number_ = 0;  ///< of the line that was read last
};

/// The file of outputs: lines that are there already, and more that are added. "-" is standard output. Standard output,
/// and whatever else is no regular file, begins empty.
class output_file {
 public:
  struct line {
    std::uint64_t index = 0;  ///< of the input's line that it answers
    std::string text;
  };

  /// Changes nothing yet. Refuses a file of which a line cannot be an answer. Indices may be missing, since a job that
  /// ended early has no answers to some of its lines.
  explicit output_file(std::filesystem::path path);

  /// Those that are there already; nothing if none is.
  const std::optional<line>& first_line() const { return first_; }
  const std::optional<line>& last_line() const { return last_; }
  /// Whether an index is missing before next_index().
  bool has_gaps() const { return lines_ != next_index(); }
  /// The index from which on answers are missing.
  std::uint64_t next_index() const { return last_ ? last_->index + 1 : 0; }
  /// Before the first append: a last line that was torn goes.
  void cut_torn_line();
  void append(const std::vector<std::string>& lines);
  void sync() const;

 private:
  void read_lines();
  [[noreturn]] void fail() const;

  std::filesystem::path path_;
  file_descriptor file_;
  bool is_regular_ = false;
  std::uint64_t whole_bytes_ = 0, lines_ = 0;
  std::optional<line> first_, last_;
};

}  // namespace troupe
