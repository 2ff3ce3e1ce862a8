#pragma once
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
  static std::filesystem::path make(const std::string& name) try {
    std::filesystem::path folder = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(folder);
    return folder;
  } catch (const std::filesystem::filesystem_error& error) {
    refuse("{}: is no place for temporary files ({}): set TMPDIR to a folder that can be written",
           error.path1().string(), error.code().message());
  }

  std::filesystem::path path_;
};

}  // namespace troupe::bench
