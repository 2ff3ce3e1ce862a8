#pragma once
#include <cstddef>
#include <vector>

#include "model/engine/scheduling/ids.hpp"
#include "model/engine/scheduling/prefix_cache.hpp"

namespace troupe::detail {

/// What the stages have stored of a sequence's tokens, and where; sequence_blocks changes most of it.
struct stored_text {
  std::size_t computed = 0;  ///< positions whose keys and values are stored
  std::vector<block_id> blocks = {};
  std::size_t known_blocks = 0;  ///< the stages know the table up to here
  std::size_t published = 0;     ///< blocks in the prefix cache, from the first
  prefix_place place = {};       ///< behind those
  // Of a model that keeps states, in positions: where a state was kept last, or gone on from; and where others went on
  // from what is computed in another way, so that more of them may come.
  std::size_t kept = 0, branch = 0;
  bool publishing = true;  ///< false after a block that the cache could not take, or if it is to take none
};

}  // namespace troupe::detail
