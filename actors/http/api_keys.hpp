// Who may use the API: names and the digests of their keys, in one JSON file. A key itself is shown once and not kept.
#pragma once
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/key_limits.hpp"
#include "base/clock.hpp"
#include "model/engine/scheduling/sequence_request.hpp"

namespace troupe {

struct api_key {
  std::string name;
  std::string sha256;        ///< of the key's text
  std::string shown;         ///< its beginning, to tell it from others
  std::int64_t created = 0;  ///< seconds since 1970
  rate_limits limits = {};
  std::int64_t weight = 1;  ///< of its share, where keys wait for each other
  bool is_admin = false;    ///< all files and jobs are its own

  bool owns(std::string_view owner) const { return is_admin || owner == name; }
};

/// Where a cluster has its keys.
std::filesystem::path api_keys_file(const std::filesystem::path& state_dir);
/// Nothing where there is no file. Throws input_error where it cannot be read.
std::optional<std::vector<api_key>> read_api_keys(const std::filesystem::path& file);
/// Makes a key and returns its text. Throws input_error where the name is taken.
std::string add_api_key(const std::filesystem::path& file, const std::string& name, const rate_limits& limits = {},
                        std::int64_t weight = 1, bool is_admin = false);
/// Instead of what it had. Throws input_error where there is no such key.
void limit_api_key(const std::filesystem::path& file, const std::string& name, const rate_limits& limits,
                   std::int64_t weight = 1);
void revoke_api_key(const std::filesystem::path& file, const std::string& name);

/// The keys as a server knows them: looks at the file again once a second. Thread-safe.
class api_key_ring {
 public:
  explicit api_key_ring(std::filesystem::path file);

  /// No file: whoever reaches the server may use it.
  bool is_open();
  /// Whose key it is, and how much it may ask for.
  std::optional<api_key> find(std::string_view key);

 private:
  void look_again();

  std::filesystem::path file_;
  std::mutex mutex_;
  std::optional<std::vector<api_key>> keys_;
  bool is_broken_ = false;  ///< a file that cannot be read lets nobody in
  instant looked_;
  monotonic_clock clock_;
};

}  // namespace troupe
