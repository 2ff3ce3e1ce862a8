#pragma once
#include <algorithm>

#include "base/rounding.hpp"
#include "base/thread_pool.hpp"
#include "base/to_size.hpp"
#include "model/arch/decoder.hpp"

namespace troupe {

/// work(sequence, part), `parts` of them for each sequence. One thread takes several parts of a sequence where there
/// are many: a part may take less than handing it over.
template <class Work>
void for_sequence_parts(thread_pool& pool, const pass& batch, std::int64_t parts, Work work) {
  const std::int64_t all = static_cast<std::int64_t>(batch.sequences.size()) * parts;
  const std::int64_t together = std::clamp<std::int64_t>(all / (pool.threads() * 8), 1, parts);
  const std::int64_t tasks = ceil_div(parts, together);  // of a sequence
  pool.run(static_cast<int>(static_cast<std::int64_t>(batch.sequences.size()) * tasks), [&](int index, int) {
    const pass_sequence& sequence = batch.sequences[to_size(index / tasks)];
    const std::int64_t first = index % tasks * together;
    for (std::int64_t part = first; part < std::min(first + together, parts); ++part) work(sequence, part);
  });
}

}  // namespace troupe
