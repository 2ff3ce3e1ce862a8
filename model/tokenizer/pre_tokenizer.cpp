#include "model/tokenizer/pre_tokenizer.hpp"

#include <algorithm>

#include "base/to_size.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/normalizer.hpp"

namespace troupe::detail {
namespace {

using range = word_list::range;

struct part {
  range where;
  bool matched;
};

void find_in_valid(const split_step& step, std::string_view valid, std::size_t base, std::vector<part>& parts) {
  regex::cursor matches(step.pattern, valid);
  regex::match found{};
  std::size_t done = 0;
  while (matches.next(found)) {
    if (done < found.begin) parts.push_back({{base + done, base + found.begin}, step.invert});
    parts.push_back({{base + found.begin, base + found.end}, !step.invert});
    done = found.end;
  }
  if (done < valid.size()) parts.push_back({{base + done, base + valid.size()}, step.invert});
}

/// The whole word, in parts that are matches and parts between them. Bytes that are no UTF-8 are parts of their own,
/// between matches.
void find_parts(const split_step& step, std::string_view word, std::size_t base, std::vector<part>& parts) {
  parts.clear();
  const auto begin_of = [&](std::string_view stretch) { return base + to_size(stretch.data() - word.data()); };
  for_each_stretch(
      word, [&](std::string_view valid) { find_in_valid(step, valid, begin_of(valid), parts); },
      [&](std::string_view invalid) {
        parts.push_back({{begin_of(invalid), begin_of(invalid) + invalid.size()}, step.invert});
      });
}

void merge_with_previous(const std::vector<part>& parts, std::vector<range>& out) {
  bool after_match = true;  // the first part has nothing before it to join
  for (const auto& each : parts) {
    if (each.matched && !after_match)
      out.back().end = each.where.end;
    else
      out.push_back(each.where);
    after_match = each.matched;
  }
}

void merge_with_next(const std::vector<part>& parts, std::vector<range>& out) {
  const auto first = static_cast<std::ptrdiff_t>(out.size());
  bool before_match = true;
  for (auto each = parts.rbegin(); each != parts.rend(); ++each) {
    if (each->matched && !before_match)
      out.back().begin = each->where.begin;
    else
      out.push_back(each->where);
    before_match = each->matched;
  }
  std::reverse(out.begin() + first, out.end());
}

void merge_alike(const std::vector<part>& parts, std::vector<range>& out) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && parts[i].matched == parts[i - 1].matched)
      out.back().end = parts[i].where.end;
    else
      out.push_back(parts[i].where);
  }
}

void collect(const std::vector<part>& parts, split_behavior behavior, std::vector<range>& out) {
  if (behavior == split_behavior::merged_with_previous) return merge_with_previous(parts, out);
  if (behavior == split_behavior::merged_with_next) return merge_with_next(parts, out);
  if (behavior == split_behavior::contiguous) return merge_alike(parts, out);
  for (const auto& each : parts)
    if (!each.matched || behavior == split_behavior::isolated) out.push_back(each.where);
}

void cut_before_each(std::string_view mark, const std::string& text, std::size_t begin, std::vector<range>& out) {
  // A run of marks is cut as MergedWithNext cuts it: each mark goes to the text behind it, or stands alone.
  while (begin < text.size()) {
    const auto next = text.find(mark, begin + 1);
    const auto end = next == std::string::npos ? text.size() : next;
    out.push_back({begin, end});
    begin = end;
  }
}

struct word_stepper {
  word_list& list;

  void operator()(const split_step& step) const {
    std::vector<range> out;
    out.reserve(list.text.size() / 4);
    std::vector<part> parts;
    for (const auto& each : list.words) {
      find_parts(step, list.word(each), each.begin, parts);
      collect(parts, step.behavior, out);
    }
    std::erase_if(out, [](const range& each) { return each.begin == each.end; });  // where an empty match cuts
    list.words = std::move(out);
  }

  void operator()(const prefix_space_step&) const {
    if (std::all_of(list.words.begin(), list.words.end(),
                    [&](const range& each) { return list.text[each.begin] == ' '; }))
      return;
    std::string text;
    std::vector<range> out;
    for (const auto& each : list.words) {
      const auto begin = text.size();
      const auto word = list.word(each);
      if (!word.starts_with(' ')) text += ' ';
      text += word;
      out.push_back({begin, text.size()});
    }
    take(std::move(text), std::move(out));
  }

  void operator()(const metaspace_step& step) const {
    using prepend = metaspace_step::prepend;
    std::string text;
    std::vector<range> out;
    for (const auto& each : list.words) {
      const auto word = replace_all(list.word(each), " ", step.replacement);
      const bool first = list.at_start && &each == &list.words.front();
      const bool wanted = step.where == prepend::always || (step.where == prepend::first && first);
      const auto begin = text.size();
      if (wanted && !word.starts_with(step.replacement)) text += step.replacement;
      text += word;
      if (step.split)
        cut_before_each(step.replacement, text, begin, out);
      else
        out.push_back({begin, text.size()});
    }
    take(std::move(text), std::move(out));
  }

  void take(std::string text, std::vector<range> words) const {
    list.storage = std::move(text);
    list.text = list.storage;
    list.words = std::move(words);
  }
};

}  // namespace

void pre_tokenizer::apply(word_list& list) const {
  for (const auto& each : steps_) std::visit(word_stepper{list}, each);
}

}  // namespace troupe::detail
