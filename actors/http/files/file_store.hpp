// Files that clients upload, in a folder of the cluster's state.
#pragma once
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

struct stored_file {
  std::string id, filename, purpose;
  std::uint64_t bytes = 0;
  std::int64_t created = 0;
  std::string owner = {};        ///< the key's name, if there are keys
  std::int64_t nanoseconds = 0;  ///< of the second in which it was made: for the order of files
};

/// Thread-safe. A name becomes a path only if this class made it; others are refused.
class file_store {
 public:
  /// Removes what a process left there that died while it wrote. `most_bytes`: on the disk, of each owner.
  explicit file_store(std::filesystem::path folder, std::uint64_t most_bytes = UINT64_MAX);

  /// Throws full_error if the owner has no room for it, and runtime_error if the disk does not take it.
  stored_file add(std::string_view filename, std::string_view purpose, std::string_view content,
                  const std::string& owner);
  std::optional<stored_file> find(const std::string& id) const;
  std::vector<stored_file> list() const;  ///< in no order
  std::optional<std::string> content(const std::string& id) const;
  void remove(const std::string& id);
  /// What was known of one that was removed, if it is among the last ones.
  std::optional<stored_file> find_removed(const std::string& id) const;

 private:
  void remove_contents_alone() const;
  void measure();
  void take_room(const stored_file& file);
  std::optional<stored_file> find_known(const std::string& id) const;
  void write(const std::string& name, std::string_view text) const;
  std::optional<std::string> read(const std::string& name) const;

  std::filesystem::path folder_;
  std::uint64_t most_bytes_;
  std::once_flag measured_;
  mutable std::mutex mutex_;
  std::map<std::string, std::uint64_t> taken_;        ///< by each owner, once it was measured
  mutable std::map<std::string, stored_file> known_;  ///< existing files that were read for a list
  std::deque<stored_file> removed_;                   ///< the last ones
};

}  // namespace troupe
