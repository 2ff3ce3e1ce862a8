// Who may use the API: names and digests of keys, in one JSON file. A key itself is shown once and not stored.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/http/access/key_limits.hpp"
#include "base/clock.hpp"

namespace troupe {

struct api_key {
  std::string name;
  std::string sha256 = {};   ///< digest of the key's text
  std::string shown = {};    ///< its beginning, by which people recognise it
  std::int64_t created = 0;  ///< seconds since 1970
  rate_limits limits = {};
  std::int64_t weight = 1;  ///< of its share when keys compete
  bool is_admin = false;    ///< may see all files and jobs, and load and unload adapters

  bool owns(std::string_view owner) const { return is_admin || owner == name; }
};

/// The file of a cluster's keys.
std::filesystem::path api_keys_file(const std::filesystem::path& state_dir);
/// Empty if there is no file. Throws input_error if it cannot be read.
std::optional<std::vector<api_key>> read_api_keys(const std::filesystem::path& file);
/// Makes the text of a key, unless one is given, adds the key with its digest, and returns the text. Throws input_error
/// if the name or the text is taken, or the text no key's.
std::string add_api_key(const std::filesystem::path& file, api_key key, std::string text = {});
/// Changes a key's limits and weight, from those that it has while no other command changes them. Throws input_error if
/// there is no such key.
void limit_api_key(const std::filesystem::path& file, const std::string& name,
                   const std::function<void(api_key&)>& change);
/// Also where the disk is full. Throws input_error if there is no such key.
void revoke_api_key(const std::filesystem::path& file, const std::string& name);

/// The keys that a server accepts: looks from time to time whether the file has changed. Thread-safe.
class api_key_ring {
 public:
  /// `log` is told once when the file cannot be read any more.
  explicit api_key_ring(std::filesystem::path file, bool are_needed = false,
                        std::function<void(const std::string&)> log = {},
                        duration between_looks = std::chrono::seconds(1));

  /// Without a file, whoever reaches the server may use it, unless keys are needed.
  bool is_open();
  /// The valid key with this text, if there is one.
  std::optional<api_key> find(std::string_view key);

 private:
  /// Device, inode, size and time of the last change: as long as these stay, so do the keys. Nothing: read the file.
  using file_stamp = std::optional<std::array<std::int64_t, 5>>;

  void look_again();
  file_stamp stamp_now() const;

  std::filesystem::path file_;
  bool are_needed_;
  std::function<void(const std::string&)> log_;
  duration between_looks_;
  std::mutex mutex_;
  std::optional<std::vector<api_key>> keys_;
  bool is_broken_ = false;  ///< the file cannot be read: keys read before still count; without any, nobody gets in
  instant looked_;
  file_stamp read_;  ///< of the file that the keys were read from
  monotonic_clock clock_;
};

}  // namespace troupe
