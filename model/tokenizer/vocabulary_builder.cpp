#include "model/tokenizer/vocabulary_builder.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

std::string_view shortened(const std::string& token) {
  return std::string_view(token).substr(0, 100);
}

}  // namespace

void vocabulary_builder::add(token_id id, const std::string& written, std::string bytes) {
  own_end_ = std::max(own_end_, id + 1);
  put(id, written, std::move(bytes));
}

void vocabulary_builder::put(token_id id, const std::string& written, std::string bytes) {
  const auto [place, fresh] = places_.emplace(written, entries_.size());
  if (!fresh)
    refuse("{}: the token \"{}\" has two ids, {} and {}", where_, shortened(written), entries_[place->second].id, id);
  entries_.push_back({id, written, std::move(bytes), false});
}

void vocabulary_builder::add_added(const added_token& token, std::string bytes) {
  const auto found = places_.find(token.content);
  if (found == places_.end()) {
    put(token.id, token.content, std::move(bytes));
    entries_.back().special = token.special;
    return;
  }
  auto& known = entries_[found->second];
  if (known.id != token.id)
    refuse("{}: the token \"{}\" has two ids, {} and {}", where_, shortened(token.content), known.id, token.id);
  known.bytes = std::move(bytes);
  known.special = known.special || token.special;
}

/// Added tokens leave no holes: behind one, Hugging Face's libraries give them other ids than the file does.
std::size_t vocabulary_builder::end_of_ids() const {
  constexpr std::size_t most_holes = 1 << 16;
  const auto behind =
      std::count_if(entries_.begin(), entries_.end(), [&](const entry& each) { return each.id >= own_end_; });
  const auto end = to_size(own_end_ + behind);
  if (end > entries_.size() + most_holes)
    refuse("{}: {} tokens have ids up to {}: at most {} ids may be no token's", where_, entries_.size(), end - 1,
           most_holes);
  for (const auto& each : entries_)
    if (each.id < 0 || to_size(each.id) >= end)
      refuse("{}: the token \"{}\" has the id {}, but there are {} tokens: ids should run from 0 without holes", where_,
             shortened(each.written), each.id, end);
  return end;
}

vocabulary vocabulary_builder::take() {
  vocabulary out;
  const auto count = end_of_ids();
  std::vector<bool> taken(count);
  out.written.resize(count);
  out.bytes.resize(count);
  out.special.resize(count);
  for (auto& each : entries_) {
    const auto at = to_size(each.id);
    if (taken[at])
      refuse("{}: the tokens \"{}\" and \"{}\" share the id {}", where_, shortened(out.written[at]),
             shortened(each.written), each.id);
    taken[at] = true;
    if (!each.written.empty()) out.ids.emplace(each.written, each.id);
    out.written[at] = std::move(each.written);
    out.bytes[at] = std::move(each.bytes);
    out.special[at] = each.special;
  }
  return out;
}

}  // namespace troupe::detail
