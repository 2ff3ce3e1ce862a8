// An adapter's files in a store: copied whole and synced, or not at all. No catalogue, no actor. Errors are
// input_error, one line for whoever asked.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "base/shared_bytes.hpp"

namespace troupe {

/// Those of the folder; none where one of them is missing.
std::vector<adapter_file_info> adapter_files_in(const std::filesystem::path& folder);

/// At most `most` bytes of a file from `offset` on.
shared_bytes read_adapter_bytes(const std::filesystem::path& file, std::uint64_t offset, std::size_t most);

/// An adapter on its way into a store: a folder that goes away with this object unless it was given its final name.
class incoming_adapter {
 public:
  /// `number`: of this process, not in use.
  incoming_adapter(const std::filesystem::path& store, std::uint64_t number);
  ~incoming_adapter();
  incoming_adapter(const incoming_adapter&) = delete;
  incoming_adapter& operator=(const incoming_adapter&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Copies what PEFT wrote there. Returns the files' digest.
  std::string copy_from(const std::filesystem::path& folder) const;
  void keep_as(const std::filesystem::path& name);

 private:
  std::filesystem::path path_;
};

/// Removes what processes that ended in the middle have left.
void remove_incoming_adapters(const std::filesystem::path& store);

}  // namespace troupe
