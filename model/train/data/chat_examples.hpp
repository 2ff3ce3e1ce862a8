#pragma once
#include <nlohmann/json_fwd.hpp>

#include "model/train/data/line_examples.hpp"
#include "model/train/data/training_data.hpp"

namespace troupe::detail {

/// Of a line with "messages": one example of the whole chat, if its template writes earlier turns just as it wrote them
/// when they were the last; otherwise one for each turn (for templates that drop earlier thoughts, or move the system
/// message).
line_examples chat_examples(const nlohmann::ordered_json& line, const data_format& format);

}  // namespace troupe::detail
