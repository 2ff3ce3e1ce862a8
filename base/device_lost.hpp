#pragma once
#include <stdexcept>

namespace troupe {

/// A device has failed so that nothing in this process can use it again: another process may.
class device_lost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace troupe
