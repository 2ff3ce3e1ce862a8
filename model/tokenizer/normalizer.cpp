#include "model/tokenizer/normalizer.hpp"

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "model/tokenizer/nfc.hpp"

namespace troupe::detail {
namespace {

void replace_matches(const replace_pattern_step& step, std::string_view valid, std::string& out) {
  regex::cursor matches(step.pattern, valid);
  regex::match found{};
  std::size_t done = 0;
  while (matches.next(found)) {
    out += valid.substr(done, found.begin - done);
    out += step.to;
    done = found.end;
  }
  out += valid.substr(done);
}

/// Whether a step changed the text; the changed text is in `out`.
struct text_stepper {
  std::string_view text;
  std::string& out;

  bool operator()(const nfc_step&) const {
    if (!may_need_nfc(text)) return false;
    out = to_nfc(text);
    return true;
  }
  bool operator()(const prepend_step& step) const {
    if (text.empty()) return false;
    out = step.prefix;
    out += text;
    return true;
  }
  bool operator()(const replace_text_step& step) const {
    if (text.find(step.from) == std::string_view::npos) return false;
    out = replace_all(text, step.from, step.to);
    return true;
  }
  bool operator()(const replace_pattern_step& step) const {
    for_each_stretch(
        text, [&](std::string_view valid) { replace_matches(step, valid, out); },
        [&](std::string_view invalid) { out += invalid; });
    return true;
  }
};

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  std::size_t done = 0;
  for (auto at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
    out += text.substr(done, at - done);
    out += to;
    done = at + from.size();
  }
  out += text.substr(done);
  return out;
}

std::string_view normalizer::apply(std::string_view text, std::string& storage) const {
  const auto limit = most_grown(text.size());
  for (const auto& each : steps_) {
    std::string changed;
    if (!std::visit(text_stepper{text, changed}, each)) continue;
    if (changed.size() > limit) refuse("tokenizer: its normalizer makes {} bytes grow beyond {}", text.size(), limit);
    storage = std::move(changed);
    text = storage;
  }
  return text;
}

}  // namespace troupe::detail
