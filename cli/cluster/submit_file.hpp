// A JSONL file in, a JSONL file out, by way of a durable job of the cluster.
//
// Goals: each line of the output once and in the order of the input, whatever ends meanwhile: this program, the head,
// the machine. The same command again goes on where the file ends, since the job is named by what goes in.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "cli/cluster/cluster_client.hpp"

namespace troupe {

struct file_submission {
  std::filesystem::path in, out;
  std::string options;      ///< of all lines, a JSON object
  bool is_new_job = false;  ///< even where there is one of the same content
};

/// Input lines that are not empty, one after the other. Refuses what is no regular file: a file is read twice.
class line_reader {
 public:
  explicit line_reader(const std::filesystem::path& file);
  ~line_reader();
  bool next(std::string& line);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The file of outputs: lines that are there already, and more that are added. "-" is standard output. Standard output,
/// and whatever else is no regular file, begins empty.
class output_file {
 public:
  /// Changes nothing yet. Refuses a file of which a line cannot be an answer.
  explicit output_file(std::filesystem::path file);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  std::uint64_t lines() const { return lines_; }
  const std::string& last_line() const { return last_; }
  /// Before the first append: a last line that was torn goes.
  void cut_torn_line();
  void append(const std::vector<std::string>& lines);
  void sync() const;

 private:
  void look();

  std::filesystem::path file_;
  int number_ = -1;
  bool is_regular_ = false;
  std::uint64_t lines_ = 0, whole_bytes_ = 0;
  std::string last_;
};

/// Runs to the end. Returns the job as the cluster describes it.
nlohmann::ordered_json submit_file(cluster_client& cluster, const file_submission& what);

}  // namespace troupe
