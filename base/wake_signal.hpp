#pragma once
#include "base/file_descriptor.hpp"

namespace troupe {

/// Something to wait for beside other files: readable from give() until take().
class wake_signal {
 public:
  /// Throws input_error where no more files can be opened.
  wake_signal();
  void give() const noexcept;  ///< from any thread, and in a signal's handler
  void take() const noexcept;
  int descriptor() const { return signal_.number(); }

 private:
  file_descriptor signal_;
};

}  // namespace troupe
