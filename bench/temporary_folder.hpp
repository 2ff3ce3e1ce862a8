#pragma once
#include <filesystem>
#include <string>
#include <system_error>

#include <unistd.h>

namespace troupe::bench {

/// A name for a folder of this process, where temporary files belong; what is there is removed with this object.
class temporary_folder {
 public:
  explicit temporary_folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / (name + "-" + std::to_string(::getpid()))) {}
  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace troupe::bench
