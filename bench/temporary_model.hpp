#pragma once
#include <filesystem>
#include <string>

#include "bench/random/random_model.hpp"
#include "bench/temporary_folder.hpp"

namespace troupe::bench {

/// A model with random weights in a folder of its own, gone with this object, like all that is put beside it.
class temporary_model {
 public:
  /// `folder` as in temporary_folder, `shape` as in write_random_model.
  temporary_model(const std::string& folder, const std::string& shape) : folder_(folder), path_(beside(shape)) {
    write_random_model(shape, path_);
  }

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path beside(const std::string& name) const { return folder_.path() / name; }

 private:
  temporary_folder folder_;
  std::filesystem::path path_;
};

}  // namespace troupe::bench
