#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "actors/messages.hpp"

namespace troupe {

/// Keeps at most `most` steps and all validations: evenly spaced, the newest step among them.
inline void thin(std::vector<training_point>& points, std::size_t most) {
  const std::size_t size = points.size(), apart = (size + most - 1) / most;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < size; ++i)
    if (points[i].is_validation || (size - 1 - i) % apart == 0) points[kept++] = points[i];
  points.resize(kept);
}

/// Where there are more than `most`, every second step of the older half goes: so the newest stay close together. Then
/// the oldest go.
void fade(std::vector<training_point>& points, std::size_t most);

/// In the folder of a job, beside the checkpoint: what its trainer has told of the newest steps, and tells the next
/// head again.
inline constexpr const char* points_name = "points.json";

void write_points(const std::filesystem::path& file, const std::vector<training_point>& points);
/// Those up to this step. None where the file is missing or no such file.
std::vector<training_point> read_points(const std::filesystem::path& file, std::int64_t last_step);

}  // namespace troupe
