#include "actors/http/jobs/job_records.hpp"

#include "actors/json_dump_impl.hpp"
#include "base/ascii.hpp"
#include "base/error.hpp"
#include "base/paths.hpp"
#include "base/whole_file.hpp"
#include "model/formats/json_input.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_record = 64 << 20;
constexpr std::string_view record_ending = ".job";

fs::path record_file(const fs::path& folder, const std::string& job) {
  return folder / (job + std::string(record_ending));
}

}  // namespace

void job_records::keep(const std::string& job, std::string_view record) {
  if (!is_short_word(job)) refuse("job {}: is no id", job.substr(0, 64));
  const std::lock_guard lock(mutex_);
  write(job, record);
}

void job_records::write(const std::string& job, std::string_view record) {
  make_private_folder(folder_);
  write_file(record_file(folder_, job), record);
}

std::optional<json> job_records::find(const std::string& job) const {
  std::error_code ignored;
  if (!is_short_word(job) || !fs::exists(record_file(folder_, job), ignored)) return std::nullopt;
  try {
    json record = json::parse(detail::read_text(record_file(folder_, job), largest_record), nullptr, false);
    if (record.is_object()) return record;
  } catch (const input_error&) {  // it was forgotten meanwhile
  }
  return std::nullopt;
}

std::optional<json> job_records::find_batch(const std::string& id) const {
  return id.starts_with(batch_prefix) ? find(id) : std::nullopt;
}

void job_records::forget(const std::string& job) {
  if (!is_short_word(job)) return;
  const std::lock_guard lock(mutex_);
  std::error_code ignored;
  fs::remove(record_file(folder_, job), ignored);
}

void job_records::forget_unknown(const std::function<bool(const std::string& job)>& is_known) {
  for (const fs::path& path : entries_of(folder_)) {
    const std::string job = path.stem().string();
    if (path.extension() == record_ending && is_short_word(job) && !is_known(job)) forget(job);
  }
}

void job_records::keep_sizes(const std::string& batch, const output_sizes& sizes) {
  const std::lock_guard lock(mutex_);  // so that it is not forgotten between
  auto record = find_batch(batch);
  if (!record) return;
  remember(batch, sizes);
  (*record)["output_bytes"] = sizes.answers;
  (*record)["error_bytes"] = sizes.errors;
  try {
    write(batch, dump(*record));
  } catch (const write_failure&) {
  }
}

std::optional<output_sizes> job_records::sizes(const std::string& batch) {
  const std::lock_guard lock(mutex_);
  if (const auto found = sizes_.find(batch); found != sizes_.end()) return found->second;
  const auto record = find_batch(batch);
  if (!record || !record->contains("output_bytes")) return std::nullopt;
  const output_sizes kept{.answers = record->value("output_bytes", std::uint64_t{0}),
                          .errors = record->value("error_bytes", std::uint64_t{0})};
  remember(batch, kept);
  return kept;
}

void job_records::remember(const std::string& batch, const output_sizes& sizes) {
  constexpr std::size_t most = 20'000;  // twice the jobs that the journal keeps, since some of these may be gone
  if (sizes_.size() >= most) sizes_.clear();
  sizes_[batch] = sizes;
}

}  // namespace troupe
