#pragma once
#include <sys/resource.h>

namespace troupe::test {

/// Until its end this process may open no more files than so many.
class few_open_files {
 public:
  explicit few_open_files(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{most, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~few_open_files() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  few_open_files(const few_open_files&) = delete;
  few_open_files& operator=(const few_open_files&) = delete;

 private:
  rlimit before_{};
};

}  // namespace troupe::test
