#pragma once
#include <cstdint>

namespace troupe {

// Elementary functions of doubles from additions, products and divisions alone, which round alike on every processor. A
// math library may choose its code by processor, and then two of them could differ in a last bit.

struct sine_cosine {
  double sine, cosine;
};
/// For angles in the millions.
sine_cosine sine_cosine_of(double angle);

/// x^n, for n >= 0.
double whole_power(double x, std::int64_t n);

/// The x with x^n = `power`, for `power` >= 1 and n >= 1: the largest double whose power is below.
double whole_root(double power, std::int64_t n);

}  // namespace troupe
