#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// A file's bytes, mapped read-only and shared: every process of the host sees the same pages.
class mapped_file {
 public:
  mapped_file() = default;
  /// Throws input_error when the file cannot be opened or is empty.
  explicit mapped_file(const std::filesystem::path& path);
  /// Maps a file that is open already; the descriptor stays the caller's and may be closed. `name` is for messages.
  mapped_file(int descriptor, std::string name);
  mapped_file(mapped_file&& other) noexcept;
  mapped_file& operator=(mapped_file&& other) noexcept;
  ~mapped_file();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& name() const { return name_; }
  /// Brings the pages of a part of any file in now, so that its first reader does not wait for the disk.
  static void preload(std::span<const std::byte> part);
  /// Lets the pages of a part go from this process' resident set; they come back when touched.
  static void release(std::span<const std::byte> part);

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string name_;
};

}  // namespace troupe
