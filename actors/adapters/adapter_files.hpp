// An adapter's files in a store: copied whole and synced, or not at all. No catalogue, no actor. Errors are
// input_error, one line for the user.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "actors/messages.hpp"
#include "base/shared_bytes.hpp"

namespace troupe {

/// An adapter's files in a folder; none if one of them is missing.
std::vector<adapter_file_info> adapter_files_in(const std::filesystem::path& folder);

/// The digest by which the adapter in a folder is known.
std::string digest_of_adapter(const std::filesystem::path& folder);

/// At most `most` bytes of a file from `offset` on.
shared_bytes read_adapter_bytes(const std::filesystem::path& file, std::uint64_t offset, std::size_t most);

/// An adapter that is being written into a store. Its folder is removed with this object unless it got its final name.
class incoming_adapter {
 public:
  /// `number`: unused so far in this process.
  incoming_adapter(const std::filesystem::path& store, std::uint64_t number);
  ~incoming_adapter();
  incoming_adapter(const incoming_adapter&) = delete;
  incoming_adapter& operator=(const incoming_adapter&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Copies the files that PEFT wrote there. Returns their digest.
  std::string copy_from(const std::filesystem::path& folder) const;
  void keep_as(const std::filesystem::path& name);

 private:
  std::filesystem::path path_;
};

/// Removes what processes left behind that died while they wrote.
void remove_incoming_adapters(const std::filesystem::path& store);

}  // namespace troupe
