#include "cli/standard_input.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe {

file_descriptor keep_standard_input() {
  file_descriptor kept(::memfd_create("standard input", MFD_CLOEXEC));
  std::string piece(1 << 16, '\0');
  ssize_t count = 0;
  while ((count = ::read(STDIN_FILENO, piece.data(), piece.size())) != 0)
    if (count < 0 || !write_all(kept.number(), std::string_view(piece).substr(0, to_size(count))))
      refuse("{}: cannot be read: {}", standard_input_name, std::strerror(errno));
  if (::lseek(kept.number(), 0, SEEK_END) == 0)
    refuse("{}: is empty: pipe something in, or name a file", standard_input_name);
  return kept;
}

}  // namespace troupe
