#include "cluster/batches/unrecorded_outputs.hpp"

#include <utility>

namespace troupe {

void unrecorded_outputs::add(output added) {
  bytes_ += added.text.size();
  outputs_.push_back(std::move(added));
}

void unrecorded_outputs::drop_job(const std::string& id) {
  std::erase_if(outputs_, [&](const output& each) {
    if (each.job == id) bytes_ -= each.text.size();
    return each.job == id;
  });
}

void unrecorded_outputs::clear() {
  outputs_.clear();
  bytes_ = 0;
}

std::vector<line_record> unrecorded_outputs::records() const {
  std::vector<line_record> records;
  records.reserve(outputs_.size());
  for (const output& each : outputs_) records.push_back({each.job, each.index, each.text, each.ok});
  return records;
}

}  // namespace troupe
