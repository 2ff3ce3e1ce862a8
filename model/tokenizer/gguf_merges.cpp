#include "model/tokenizer/gguf_merges.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "base/utf8.hpp"

namespace troupe::detail {
namespace {

// Each token is cut at every character. Longer tokens would cost too much, and no trainer makes them.
constexpr std::size_t longest_scored_token = 512;

token_id known(const vocabulary& tokens, std::string_view token, std::size_t merge, const std::string& where) {
  const auto id = tokens.find(token);
  if (!id)
    refuse("{}: tokenizer.ggml.merges[{}] needs the token \"{}\", which the vocabulary lacks", where, merge,
           token.substr(0, 100));
  return *id;
}

/// Tokens that score the same share a rank, and the highest score has rank 0.
std::vector<std::int32_t> ranks_of(const std::vector<double>& scores) {
  auto falling = scores;
  std::sort(falling.begin(), falling.end(), std::greater<>());
  falling.erase(std::unique(falling.begin(), falling.end()), falling.end());
  std::vector<std::int32_t> ranks(scores.size());
  for (std::size_t i = 0; i < scores.size(); ++i)
    ranks[i] = static_cast<std::int32_t>(std::lower_bound(falling.begin(), falling.end(), scores[i], std::greater<>()) -
                                         falling.begin());
  return ranks;
}

}  // namespace

std::vector<bpe_merge> listed_merges(const std::vector<std::string>& merges, const vocabulary& tokens,
                                     const std::string& where) {
  std::vector<bpe_merge> out;
  out.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string_view merge = merges[i];
    const auto space = merge.find(' ', 1);
    if (space == std::string_view::npos)
      refuse("{}: tokenizer.ggml.merges[{}] should be two tokens with a space between", where, i);
    const auto left = merge.substr(0, space);
    const auto right = merge.substr(space + 1);
    out.push_back({.left = known(tokens, left, i, where),
                   .right = known(tokens, right, i, where),
                   .result = known(tokens, std::string(left) + std::string(right), i, where),
                   .rank = static_cast<std::int32_t>(i)});
  }
  return out;
}

std::vector<bpe_merge> scored_merges(const vocabulary& tokens, const std::vector<bool>& joins,
                                     const std::vector<double>& scores, const std::string& where) {
  if (std::any_of(scores.begin(), scores.end(), [](double score) { return std::isnan(score); }))
    refuse("{}: tokenizer.ggml.scores has an element that is no number", where);
  const auto ranks = ranks_of(scores);
  const auto find = [&](std::string_view part) {
    const auto id = tokens.find(part);
    return id && joins[to_size(*id)] ? id : std::nullopt;
  };
  std::vector<bpe_merge> out;
  for (token_id id = 0; id < tokens.size(); ++id) {
    const auto index = to_size(id);
    const std::string_view whole = tokens.written[index];
    if (!joins[index] || whole.empty()) continue;
    if (whole.size() > longest_scored_token)
      refuse("{}: token {} has more than {} bytes", where, id, longest_scored_token);
    for (auto at = next_code_point(whole, 0).length; at < whole.size(); at += next_code_point(whole, at).length) {
      const auto left = find(whole.substr(0, at));
      const auto right = left ? find(whole.substr(at)) : std::nullopt;
      if (right) out.push_back({.left = *left, .right = *right, .result = id, .rank = ranks[index]});
    }
  }
  return out;
}

}  // namespace troupe::detail
