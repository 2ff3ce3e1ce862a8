#pragma once
#include <cstddef>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace troupe {

/// An open file, closed with this object.
class file_descriptor {
 public:
  file_descriptor() = default;
  explicit file_descriptor(int number) : number_(number) {}
  ~file_descriptor() { close(); }
  file_descriptor(file_descriptor&& other) noexcept : number_(other.release()) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }  ///< -1: none
  int release() { return std::exchange(number_, -1); }
  /// False, with errno, where what was written before may be lost.
  bool close() { return !is_open() || ::close(release()) == 0; }

 private:
  int number_ = -1;
};

/// How many files and connections this process may have open at a time.
std::size_t most_open_files();
/// Makes that as many as a server needs, if the system allows so many: shells and systemd start processes with 1,024.
void allow_many_open_files();

/// Also what the system takes piece by piece. False, with errno, where the rest cannot be written.
bool write_all(int descriptor, std::string_view bytes);

}  // namespace troupe
