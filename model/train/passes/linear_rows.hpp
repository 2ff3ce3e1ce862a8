#pragma once
#include "model/formats/linear_layers.hpp"
#include "model/ops/rows.hpp"

namespace troupe {

// What linear layers that share their input make of its rows, and what comes back, wherever a pass computes.

struct linear_output {
  linear_kind kind;
  float_rows y;
};

struct linear_gradient {
  linear_kind kind;
  const_float_rows dy;
};

/// Where a gradient goes, and how its first part; nowhere where nobody wants it.
struct gradient_target {
  float_rows rows;
  into how = into::set;
};

}  // namespace troupe
