#pragma once
#include <string>
#include <string_view>

namespace troupe {
class status_board;
}

namespace troupe::detail {

/// The metrics of replicas and workers in Prometheus' text format. `model`: the base's name.
void write_replica_metrics(std::string& to, const std::string& model, const status_board& board);

std::string label_text(std::string_view value);
void describe(std::string& to, std::string_view name, std::string_view type, std::string_view help);

}  // namespace troupe::detail
