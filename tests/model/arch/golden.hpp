// The reference implementation's tiny models and what it computes for them, and comparisons.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/to_size.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "tests/base/places.hpp"
#include "tests/model/same_bits.hpp"

namespace troupe {

using test::golden;

template <class T>
std::vector<T> values(const tensor_set& tensors, const std::string& name) {
  const tensor_view* tensor = tensors.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  std::vector<T> out(tensor ? tensor->data.size() / sizeof(T) : 0);
  if (tensor) std::memcpy(out.data(), tensor->data.data(), tensor->data.size());
  return out;
}

/// The largest difference, as a share of the largest expected value.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double most = 0, difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    most = std::max(most, std::fabs(double(expected[i])));
    difference = std::max(difference, std::fabs(double(got[i]) - expected[i]));
  }
  return difference / most;
}

inline std::vector<std::int32_t> random_tokens(int count, std::int64_t vocab, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(to_size(count));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab));
  return tokens;
}

}  // namespace troupe
