// The files of `troupe submit --file`: lines that go in, and lines that come out.
#pragma once
#include <cstdint>
#include <filesystem>
#include <fstream>
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
  /// Changes nothing yet. Refuses a file of which a line cannot be an answer.
  explicit output_file(std::filesystem::path path);

  std::uint64_t lines() const { return lines_; }
  const std::string& first_line() const { return first_; }
  const std::string& last_line() const { return last_; }
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
  std::uint64_t lines_ = 0, whole_bytes_ = 0;
  std::string first_, last_;
};

}  // namespace troupe
