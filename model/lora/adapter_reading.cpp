#include "model/lora/adapter_reading.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.hpp"

namespace troupe::detail {

void check_finite(const std::vector<float>& values, const std::string& name) {
  if (!std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); }))
    refuse("{}: holds a value that is not finite", name);
}

void sort_parts(std::vector<adapter_part>& parts) {
  const auto place = [](const adapter_part& part) { return std::pair(part.layer, part.kind); };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const adapter_part& x, const adapter_part& y) { return place(x) < place(y); });
}

bool take_front(std::string_view& text, std::string_view front) {
  if (!text.starts_with(front)) return false;
  text.remove_prefix(front.size());
  return true;
}

bool take_back(std::string_view& text, std::string_view back) {
  if (!text.ends_with(back)) return false;
  text.remove_suffix(back.size());
  return true;
}

}  // namespace troupe::detail
