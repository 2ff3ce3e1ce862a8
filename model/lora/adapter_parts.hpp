// What readers of adapters share.
#pragma once
#include <string>
#include <vector>

#include "model/lora/adapter_file.hpp"

namespace troupe::detail {

/// `name`: of their tensor, for the message.
void check_finite(const std::vector<float>& values, const std::string& name);

/// In the order in which a pass meets the layers.
void sort_parts(std::vector<adapter_part>& parts);

}  // namespace troupe::detail
