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

/// Input lines that are not empty, one after the other.
class line_reader {
 public:
  explicit line_reader(const std::filesystem::path& file);
  ~line_reader();
  bool next(std::string& line);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// Lines that are there already; a last one that was torn is cut. Its end is where more are added.
class output_file {
 public:
  explicit output_file(std::filesystem::path file);
  ~output_file();
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;

  std::uint64_t lines() const { return lines_; }
  const std::string& last_line() const { return last_; }
  void append(const std::vector<std::string>& lines);
  void sync() const;

 private:
  void look();

  std::filesystem::path file_;
  int number_ = -1;
  std::uint64_t lines_ = 0;
  std::string last_;
};

/// Runs to the end. Returns the job as the cluster describes it.
nlohmann::ordered_json submit_file(cluster_client& cluster, const file_submission& what);

}  // namespace troupe
