#include "model/tokenizer/pair_table.hpp"

#include <bit>

namespace troupe::detail {

pair_table::pair_table(std::size_t expected) : slots_(std::bit_ceil(expected * 2 + 8)), mask_(slots_.size() - 1) {}

void pair_table::put(std::uint64_t key, std::uint64_t value) {
  if (2 * (used_ + 1) > slots_.size()) grow();
  auto at = slot(key);
  while (slots_[at].key != absent && slots_[at].key != key) at = (at + 1) & mask_;
  if (slots_[at].key == absent) ++used_;
  slots_[at] = {key, value};
}

void pair_table::grow() {
  std::vector<entry> old(slots_.size() * 2);
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  used_ = 0;
  for (const auto& each : old)
    if (each.key != absent) put(each.key, each.value);
}

}  // namespace troupe::detail
