#pragma once
#include <filesystem>
#include <string_view>

#include "base/file_descriptor.hpp"

namespace troupe {

/// A file under another name until it is whole. Its writer holds a lock on it: a file that a killed process left has
/// none, and is removed when the same file is written again.
class unfinished_file {
 public:
  explicit unfinished_file(std::filesystem::path final_path);
  ~unfinished_file();  ///< what was not finished is removed
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;

  int descriptor() const { return file_.number(); }  ///< -1 where none can be made
  /// Onto the disk, and to its final name. Throws runtime_error, with `remedy` where the disk does not take it.
  void finish(std::string_view remedy);

 private:
  bool open_new();

  std::filesystem::path final_path_, path_;
  file_descriptor file_;
};

}  // namespace troupe
