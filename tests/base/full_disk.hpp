#pragma once
#include <sys/resource.h>
#include <sys/types.h>

#include <csignal>

namespace troupe::test {

/// While this object lives, no file of a process (0: this one) can grow beyond `bytes`: like a full disk.
class full_disk {
 public:
  explicit full_disk(rlim_t bytes, pid_t process = 0) : process_(process) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::prlimit(process_, RLIMIT_FSIZE, nullptr, &before_);
    const rlimit tight{bytes, before_.rlim_max};
    ::prlimit(process_, RLIMIT_FSIZE, &tight, nullptr);
  }
  ~full_disk() { ::prlimit(process_, RLIMIT_FSIZE, &before_, nullptr); }
  full_disk(const full_disk&) = delete;
  full_disk& operator=(const full_disk&) = delete;

 private:
  pid_t process_;
  rlimit before_{};
};

}  // namespace troupe::test
