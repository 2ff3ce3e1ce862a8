// An adapter's files on their way from the head into a worker's store, where STORE/<sha256>/ holds them. No actor.
// Errors are input_error or write_failure.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "actors/file_pieces.hpp"
#include "actors/messages.hpp"
#include "base/sha256.hpp"

namespace troupe {

/// An adapter by its files, whatever message names it.
struct adapter_contents {
  std::string full_name;  ///< like "pricing@3"; "pricing" before it is a version
  std::string sha256;     ///< digest of its files, which names its folder
  std::vector<adapter_file_info> files;
};
template <class Order>
adapter_contents contents_of(const Order& order) {
  return {order.full_name, order.sha256, order.files};
}

/// Refuses a list of files that is none of an adapter, or no digest.
void check_files(const adapter_contents& adapter);
/// Whether a folder has the files, by their lengths.
bool is_complete(const std::filesystem::path& folder, const adapter_contents& adapter);

/// Fetches the files one piece after the other. They get their final name when all have come and their digest is right.
class adapter_download {
 public:
  /// check_files() must have accepted the adapter.
  adapter_download(std::filesystem::path store, adapter_contents adapter);
  ~adapter_download();  ///< removes files that did not get their final name
  adapter_download(const adapter_download&) = delete;
  adapter_download& operator=(const adapter_download&) = delete;

  /// The piece to ask for; nothing once the files have their final name.
  std::optional<want_piece> next();
  /// Returns false, and ignores the piece, if it is not the one that was asked for.
  bool take(const adapter_piece& piece);

 private:
  void close();
  void keep() const;

  std::filesystem::path store_;
  adapter_contents adapter_;
  std::filesystem::path folder_;
  std::size_t at_ = 0;  ///< which file
  std::optional<incoming_file> coming_;
  sha256 digest_;
};

/// Removes what killed workers of this host have left in the store.
void remove_abandoned_downloads(const std::filesystem::path& store);
/// Removes adapters that were fetched, least recently used first, until at most so many bytes of them are left. The one
/// named `but_not` stays.
void remove_least_used(const std::filesystem::path& store, std::uint64_t most, const std::string& but_not);

}  // namespace troupe
