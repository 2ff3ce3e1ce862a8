#include "base/wake_signal.hpp"

#include <cerrno>
#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.hpp"

namespace troupe {

wake_signal::wake_signal() : signal_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!signal_.is_open()) refuse("no more files can be opened: raise the limit (ulimit -n)");
}

void wake_signal::give() const noexcept {
  const int error_of_who_is_interrupted = errno;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(signal_.number(), &one, sizeof one);
  errno = error_of_who_is_interrupted;
}

void wake_signal::take() const noexcept {
  std::uint64_t given = 0;
  [[maybe_unused]] const auto read = ::read(signal_.number(), &given, sizeof given);
}

}  // namespace troupe
