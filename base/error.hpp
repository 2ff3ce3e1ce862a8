#pragma once
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace troupe {

/// Something from outside (a file, a flag, a frame) that cannot be accepted. The text names the thing, the place
/// and the remedy in one line. The program prints it and ends with exit code 2.
class input_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The input names something that does not exist.
class unknown_error : public input_error {
 public:
  using input_error::input_error;
};

/// There is no room for it now.
class full_error : public input_error {
 public:
  using input_error::input_error;
};

/// The input names what belongs to somebody else.
class foreign_error : public input_error {
 public:
  using input_error::input_error;
};

/// Throws input_error with a formatted text.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw input_error(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace troupe
