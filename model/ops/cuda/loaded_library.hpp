// A library that is not ours: found, opened and tried before anything depends on it.
#pragma once
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/device_lost.hpp"
#include "model/ops/cuda/device.hpp"

namespace troupe::cuda {

template <class Library>
struct loaded {
  std::unique_ptr<Library> library;  ///< null: our own kernels multiply
  std::string about;                 ///< its name, or why there is none
};

/// Throws only if the device itself fails.
template <class Library>
loaded<Library> load_library(std::unique_ptr<Library> (*open)(), bool (*is_right)(const stream&, Library&),
                             const stream& on) {
  try {
    auto library = open();
    const std::string name = library->name();
    if (!is_right(on, *library)) return {nullptr, name + " does not give the right sums on this device"};
    return {std::move(library), name};
  } catch (const device_lost&) {
    throw;
  } catch (const std::runtime_error& error) {
    return {nullptr, error.what()};
  }
}

/// For trying one. Bytes of either sign, -128 among them, that tell every place of a matrix from its neighbours.
inline std::vector<std::int8_t> test_pattern(std::int64_t size, unsigned step) {
  std::vector<std::int8_t> all(static_cast<std::size_t>(size));
  unsigned value = 1;
  for (std::int8_t& each : all) {
    value = value * 1664525u + step;
    each = static_cast<std::int8_t>(value >> 24);
  }
  return all;
}

}  // namespace troupe::cuda
