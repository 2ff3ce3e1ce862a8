#include "cli/train/training_log.hpp"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "base/whole_file.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* another_log = "choose another file";

/// Whether a run that goes on writes this line again.
bool is_repeated(const std::string& text, std::int64_t done, bool is_validated) {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("step") || !line["step"].is_number_integer()) return false;
  const auto step = line["step"].get<std::int64_t>();
  return step > done || (step == done && line.contains("validation_loss") && !is_validated);
}

}  // namespace

training_log::training_log(const std::string& path, bool append) : path_(path) {
  if (path.empty()) return;
  file_.open(path, append ? std::ios::app : std::ios::trunc);
  if (!file_) refuse_to_write(path, errno, another_log);
}

void training_log::write(const nlohmann::ordered_json& line) {
  if (path_.empty()) return;
  file_ << line.dump() << "\n" << std::flush;
  if (!file_) fail_to_write(path_, errno, another_log);
}

void cut_training_log(const std::string& path, std::int64_t done, bool is_validated) {
  if (std::error_code ignored; !fs::is_regular_file(path, ignored)) return;
  std::ifstream in(path, std::ios::binary);
  std::uintmax_t kept = 0;
  for (std::string line; std::getline(in, line) && !in.eof() && !is_repeated(line, done, is_validated);)
    kept += line.size() + 1;
  std::error_code fault;
  if (kept < fs::file_size(path, fault)) fs::resize_file(path, kept, fault);
  if (fault) refuse_to_write(path, fault.value(), another_log);
}

}  // namespace troupe
