#pragma once
#include <random>

#include <nlohmann/json.hpp>

namespace troupe::test {

/// A random schema of supported keywords; its definitions may refer to themselves.
nlohmann::ordered_json random_schema(std::mt19937& random);

}  // namespace troupe::test
