// An adapter's files: which they are, their digest, and how they get into a store: copied whole and synced, or not at
// all. No catalogue, no actor. Errors are input_error, one line for the user.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/messages.hpp"
#include "base/sha256.hpp"
#include "model/lora/adapter_file.hpp"

namespace troupe {

/// In the order in which the digest covers them: for each file what begin_adapter_file adds, then its contents.
constexpr std::array<std::string_view, 2> adapter_file_names{adapter_config_name, adapter_weights_name};
constexpr std::uint64_t largest_adapter_file = std::uint64_t{16} << 30;

inline void begin_adapter_file(sha256& digest, std::string_view name, std::uint64_t bytes) {
  digest.add_field(name).add(std::to_string(bytes) + ":");
}

/// Marks a folder that a worker fetched and may remove; its time is that of the last use. The head's own folders have
/// none.
constexpr std::string_view fetched_mark = ".fetched";

/// An adapter's files in a folder; none if one of them is missing.
std::vector<adapter_file_info> adapter_files_in(const std::filesystem::path& folder);

/// The digest by which the adapter in a folder is known.
std::string digest_of_adapter(const std::filesystem::path& folder);

/// The adapter of that name among several: a folder NAME, or a file NAME.gguf.
std::optional<std::filesystem::path> adapter_among(const std::filesystem::path& folder, const std::string& name);

/// Reads one of our own copies; errors name the path that the user knows.
adapter_file read_adapter_as(const std::filesystem::path& shown, const std::filesystem::path& copy,
                             const model_config& base);

/// An adapter that is being written into a store. Its folder is removed with this object unless it got its final name.
class incoming_adapter {
 public:
  /// `number`: unused so far in this process.
  incoming_adapter(const std::filesystem::path& store, std::uint64_t number);
  ~incoming_adapter();
  incoming_adapter(const incoming_adapter&) = delete;
  incoming_adapter& operator=(const incoming_adapter&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Copies the files that PEFT wrote into a folder; of a GGUF file it writes what PEFT would have written, so that
  /// whoever reads the store knows one form. Returns their digest.
  std::string copy_from(const std::filesystem::path& source, const model_config& base) const;
  void keep_as(const std::filesystem::path& name);

 private:
  std::string copy_folder(const std::filesystem::path& folder) const;
  std::string convert(const std::filesystem::path& file, const model_config& base) const;

  std::filesystem::path path_;
};

/// Removes what processes left behind that died while they wrote.
void remove_incoming_adapters(const std::filesystem::path& store);

}  // namespace troupe
