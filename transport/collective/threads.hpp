#pragma once
#include <memory>
#include <vector>

#include "transport/collective/collective.hpp"

namespace troupe {

/// Ranks that are threads of this process: for tests. A rank whose collective is destroyed is gone for the others.
std::vector<std::unique_ptr<collective>> make_thread_ranks(int size, std::chrono::milliseconds timeout);

}  // namespace troupe
