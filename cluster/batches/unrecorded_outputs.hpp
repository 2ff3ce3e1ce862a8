// Outputs of lines that are not on the disk yet. While the disk takes none, as many wait as memory can spare.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cluster/journal/job.hpp"

namespace troupe {

class unrecorded_outputs {
 public:
  struct options {
    std::size_t most = 1 << 14;
    std::size_t most_bytes = 256 << 20;  ///< of their texts
  };
  struct output {
    std::string job;
    std::uint64_t index = 0;
    std::string text;
    bool ok = true;
  };

  explicit unrecorded_outputs(options chosen) : options_(chosen) {}

  void add(output added);
  /// Of a job that is cancelled.
  void drop_job(const std::string& id);
  void clear();

  /// As many as may be: no further line begins.
  bool is_full() const { return outputs_.size() >= options_.most || bytes_ >= options_.most_bytes; }
  bool empty() const { return outputs_.empty(); }
  std::size_t size() const { return outputs_.size(); }
  std::span<const output> all() const { return outputs_; }
  /// All of them, as the journal takes them.
  std::vector<line_record> records() const;

 private:
  options options_;
  std::vector<output> outputs_;
  std::size_t bytes_ = 0;
};

}  // namespace troupe
