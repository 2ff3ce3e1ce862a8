#include "model/train/data/example_parts.hpp"

namespace troupe::detail {

void end_text(std::vector<token_id>& tokens, const data_format& format) {
  const auto& ends = format.end_tokens;
  if (!ends.empty() && (tokens.empty() || tokens.back() != ends.front())) tokens.push_back(ends.front());
}

}  // namespace troupe::detail
