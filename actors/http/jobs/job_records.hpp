// What clients gave for batches and fine-tunes besides a job's own options (files, metadata), and how long the outputs
// of batches are. The journal has all else. The files lie beside those that clients upload.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

constexpr std::string_view batch_prefix = "batch_";  // begins the ids of batches, since fine-tunes are jobs, too

/// The sizes of a batch's two output files.
struct output_sizes {
  std::uint64_t answers = 0, errors = 0;
};

/// Thread-safe. Ids that this API would not make are unknown here.
class job_records {
 public:
  explicit job_records(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// `record`: the text of an object. Throws write_failure if the disk does not take it.
  void keep(const std::string& job, std::string_view record);
  std::optional<nlohmann::ordered_json> find(const std::string& job) const;
  /// The same, of a batch alone.
  std::optional<nlohmann::ordered_json> find_batch(const std::string& id) const;
  /// To be called when the job is gone or never began.
  void forget(const std::string& job);
  /// To be called before anybody makes jobs: a process may have died between keeping a record and making its job.
  void forget_unknown(const std::function<bool(const std::string& job)>& is_known);

  /// Keeps the sizes of a batch that has ended, only to save time: if the disk is full, they are measured again.
  void keep_sizes(const std::string& batch, const output_sizes& sizes);
  /// Those that were kept.
  std::optional<output_sizes> sizes(const std::string& batch);

 private:
  void write(const std::string& job, std::string_view record);  // these two hold the lock
  void remember(const std::string& batch, const output_sizes& sizes);

  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<std::string, output_sizes> sizes_;  ///< so that a record is read only once for them
};

}  // namespace troupe
