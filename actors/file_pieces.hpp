// Files on their way between processes, in pieces. No actor.
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "base/shared_bytes.hpp"

namespace troupe {

constexpr std::size_t largest_piece = 1 << 20;  ///< bytes; a link breaks where one takes 5 s to arrive

/// A piece of a file from `offset` on; empty behind its end. Throws input_error, or read_failure.
shared_bytes read_file_piece(const std::filesystem::path& file, std::uint64_t offset);

/// The same as an answer to whoever asked for it, or why there is none.
template <class Piece>
Piece with_bytes_of(const std::filesystem::path& file, Piece piece) {
  try {
    piece.attachment = read_file_piece(file, piece.offset);
  } catch (const input_error& error) {
    piece.error = error.what();
  }
  return piece;
}

/// A file of a known length that comes in pieces, in order. Its owner moves or removes it.
class incoming_file {
 public:
  /// Makes the file, or empties it. Throws write_failure.
  incoming_file(std::filesystem::path path, std::uint64_t bytes);

  /// Throws write_failure, or input_error if it cannot be the next piece.
  void take(std::span<const std::byte> piece);
  std::uint64_t offset() const { return offset_; }
  bool is_whole() const { return offset_ == bytes_; }

 private:
  std::filesystem::path path_;
  file_descriptor file_;
  std::uint64_t bytes_, offset_ = 0;
};

}  // namespace troupe
