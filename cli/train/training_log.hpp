#pragma once
#include <cstdint>
#include <fstream>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// A line of JSON after each step and each validation; nothing without a file.
class training_log {
 public:
  training_log(const std::string& path, bool append);
  void write(const nlohmann::ordered_json& line);

 private:
  std::string path_;
  std::ofstream file_;
};

/// Takes off the end of a log what a run writes again that goes on after `done` steps, and a torn line. `is_validated`:
/// it does not validate again at that step. Nothing where there is no such file.
void cut_training_log(const std::string& path, std::int64_t done, bool is_validated);

}  // namespace troupe
