#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <unistd.h>

#include "base/error.hpp"

namespace troupe::bench {

/// A folder of this process, where temporary files belong; it is removed with this object.
class temporary_folder {
 public:
  explicit temporary_folder(const std::string& name) : path_(make(name + "-" + std::to_string(::getpid()))) {}
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  static std::filesystem::path make(const std::string& name) {
    const char* chosen = std::getenv("TMPDIR");
    std::filesystem::path folder = std::filesystem::path(chosen && *chosen ? chosen : "/tmp") / name;
    std::error_code fault;
    std::filesystem::create_directory(folder, fault);
    if (fault)
      refuse("{}: cannot be made ({}): set TMPDIR to a folder that can be written", folder.string(), fault.message());
    return folder;
  }

  std::filesystem::path path_;
};

}  // namespace troupe::bench
