#include "model/tokenizer/bpe_heap.hpp"

#include <cstdint>
#include <queue>

#include "base/to_size.hpp"

namespace troupe::detail {
namespace {

constexpr std::int64_t nowhere = -1;

struct symbol {
  token_id id;  ///< negative: merged into the symbol on its left
  std::int64_t left;
  std::int64_t right;
};

struct candidate {
  std::uint64_t merge;  ///< (rank, result)
  std::int64_t left;

  /// std::priority_queue hands out the greatest: the lowest rank, then the leftmost.
  bool operator<(const candidate& other) const {
    const auto rank = merge >> 32;
    const auto other_rank = other.merge >> 32;
    return rank != other_rank ? rank > other_rank : left > other.left;
  }
};

class merger {
 public:
  merger(const std::vector<token_id>& ids, const pair_table& merges) : merges_(merges) {
    const auto count = static_cast<std::int64_t>(ids.size());
    symbols_.reserve(ids.size());
    for (std::int64_t i = 0; i < count; ++i)
      symbols_.push_back({ids[to_size(i)], i - 1, i + 1 < count ? i + 1 : nowhere});
    std::vector<candidate> first;
    for (std::int64_t i = 0; i < count; ++i)
      if (const auto merge = merge_at(i); merge != pair_table::absent) first.push_back({merge, i});
    queue_ = std::priority_queue<candidate>(std::less<candidate>(), std::move(first));
  }

  void run(std::vector<token_id>& out) {
    while (!queue_.empty()) {
      const auto best = queue_.top();
      queue_.pop();
      // Pairs are not taken out of the queue when one of their symbols merges elsewhere.
      if (merge_at(best.left) == best.merge) join(best);
    }
    for (std::int64_t i = 0; i != nowhere; i = at(i).right) out.push_back(at(i).id);
  }

 private:
  symbol& at(std::int64_t i) { return symbols_[to_size(i)]; }

  std::uint64_t merge_at(std::int64_t i) {
    const auto& left = at(i);
    if (left.id < 0 || left.right == nowhere) return pair_table::absent;
    return merges_.get(pack(left.id, at(left.right).id));
  }

  void offer(std::int64_t i) {
    if (i == nowhere) return;
    if (const auto merge = merge_at(i); merge != pair_table::absent) queue_.push({merge, i});
  }

  void join(const candidate& pair) {
    auto& left = at(pair.left);
    auto& right = at(left.right);
    left.id = static_cast<token_id>(pair.merge & 0xFFFFFFFFu);
    right.id = -1;
    left.right = right.right;
    if (left.right != nowhere) at(left.right).left = pair.left;
    offer(left.left);
    offer(pair.left);
  }

  const pair_table& merges_;
  std::vector<symbol> symbols_;
  std::priority_queue<candidate> queue_;
};

}  // namespace

void merge_long_word(const std::vector<token_id>& symbols, const pair_table& merges, std::vector<token_id>& out) {
  merger(symbols, merges).run(out);
}

}  // namespace troupe::detail
