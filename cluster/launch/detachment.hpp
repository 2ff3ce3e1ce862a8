#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace troupe {

/// `--detach`: splits this process in two: that of the caller, which waits for a report of the other, and a daemon in a
/// session of its own, which writes standard output and error to `log` and has nothing else open. To be made before
/// there is any other thread.
class detachment {
 public:
  struct outcome {
    int code = 0;          ///< exit code
    std::string text;      ///< for standard output if the code is 0, else for standard error
    bool is_known = true;  ///< else nobody waited for it
  };

  /// A daemon that has reported nothing when this object goes has failed.
  explicit detachment(const std::filesystem::path& log);

  bool is_daemon() const { return is_daemon_; }
  /// For the caller's process: until the daemon reports, or `gives_up`, which is asked again and again.
  outcome wait(const std::function<bool()>& gives_up);
  /// For the caller's process: whether the daemon has reported or ended. Waits a moment for that.
  bool is_settled() const;
  void report(int code, std::string_view text);  ///< for the daemon, once: it is ready, or why not

 private:
  std::filesystem::path log_;
  file_descriptor pipe_;
  bool is_daemon_ = false;
};

}  // namespace troupe
