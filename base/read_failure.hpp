#pragma once
#include "base/error.hpp"

namespace troupe {

/// A file cannot be read now: the disk fails, say, or it is out of reach. What is in the file may be whole.
class read_failure : public input_error {
 public:
  using input_error::input_error;
};

}  // namespace troupe
