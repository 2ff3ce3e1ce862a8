#pragma once
#include <filesystem>

#include "base/error.hpp"

namespace troupe::detail {

inline void make_state_folder(const std::filesystem::path& folder) {
  std::error_code problem;
  std::filesystem::create_directories(folder, problem);
  if (problem) refuse("{}: cannot be made: {}: choose another state_dir", folder.string(), problem.message());
}

}  // namespace troupe::detail
