// What readers of adapters share.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "model/lora/adapter_file.hpp"

namespace troupe::detail {

/// `name`: of their tensor, for the message.
void check_finite(const std::vector<float>& values, const std::string& name);

/// In the order in which a pass meets the layers.
void sort_parts(std::vector<adapter_part>& parts);

/// Of a name: past `front`, or before `back`, if it has that.
bool take_front(std::string_view& text, std::string_view front);
bool take_back(std::string_view& text, std::string_view back);

}  // namespace troupe::detail
