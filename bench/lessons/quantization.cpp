#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "bench/lessons/all_lessons.hpp"
#include "bench/lessons/lesson_load.hpp"
#include "bench/timing.hpp"
#include "model/arch/single_sequence.hpp"
#include "model/engine/evaluate.hpp"
#include "model/text/model_text.hpp"

namespace troupe::bench {
namespace {

constexpr std::int64_t probe_tokens = 64, window = 512;

struct quality_probe {
  std::vector<token_id> tokens;
  std::shared_ptr<const tokenizer> reader;  ///< null where there is no text
};

struct measured {
  double bytes = 0, tokens_per_second = 0, perplexity = 0;
  std::vector<float> logits;  // [probe_tokens, vocab]
};

/// A token after each of the others, one at a time.
double decode_rate(const lesson_place& place, single_sequence& sequence, std::span<const token_id> tokens) {
  const double seconds = median_seconds(
      [&] {
        sequence.restart();
        for (std::size_t i = 0; i < tokens.size(); ++i) sequence.feed(tokens.subspan(i, 1));
      },
      place.patience, 1);
  return static_cast<double>(tokens.size()) / seconds;
}

measured measure(const lesson_place& place, const quality_probe& probe, const std::string& scheme,
                 const std::vector<std::string>& keep) {
  const auto model = place.open(scheme, keep);
  const std::int64_t room = std::min(probe.reader ? window : probe_tokens, model->config.context);
  single_sequence sequence(model, {.positions = room, .kv = default_kv(*model)}, place.with);
  measured result;
  result.bytes = static_cast<double>(model->file.bytes().size());
  sequence.feed(probe.tokens, [&](std::size_t, std::span<const float> logits) {
    result.logits.insert(result.logits.end(), logits.begin(), logits.end());
  });
  result.tokens_per_second = decode_rate(place, sequence, probe.tokens);
  if (probe.reader)
    result.perplexity = evaluate(sequence, place.with.kernels, *probe.reader, place.text, nullptr).perplexity();
  return result;
}

/// ||a - b|| / ||b||
double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double distance = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    distance += difference * difference;
    size += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  return size > 0 ? std::sqrt(distance / size) : 0;
}

struct variant {
  std::string scheme;
  std::vector<std::string> keep;
  std::string name() const { return keep.empty() ? scheme : fmt::format("{}, {} kept", scheme, fmt::join(keep, ", ")); }
};

/// The head is the layer that models are most often left with; where it is tied, the embeddings are the head.
std::vector<std::string> kept_layers(const lesson_place& place, const model_config& config) {
  if (!place.keep.empty()) return place.keep;
  return {config.tied_embeddings ? "embed_tokens" : "lm_head"};
}

std::vector<std::string> columns_of(bool has_text) {
  std::vector<std::string> columns{"weights", "MB", "of f32", "tokens/s", "times f32", "logits off by %"};
  if (has_text) columns.insert(columns.end(), {"perplexity", "against f32 %"});
  return columns;
}

lesson_row row_of_variant(const variant& which, const measured& own, const measured& exact, bool has_text) {
  lesson_row row{which.name(),
                 {own.bytes / 1e6, own.bytes / exact.bytes, own.tokens_per_second,
                  own.tokens_per_second / exact.tokens_per_second, relative_error(own.logits, exact.logits) * 100}};
  if (has_text) row.figures.insert(row.figures.end(), {own.perplexity, (own.perplexity / exact.perplexity - 1) * 100});
  return row;
}

plot picture_of(const lesson_result& result, bool has_text) {
  bar_panel memory{"megabytes of weights", {}, {""}, {}}, speed{"tokens a second, one sequence", {}, {""}, {}};
  bar_panel quality{has_text ? "perplexity" : "logits off by %", {}, {""}, {}};
  for (const lesson_row& row : result.rows) {
    for (bar_panel* panel : {&memory, &speed, &quality}) panel->groups.push_back(row.name);
    memory.values.push_back({row.figures[0]});
    speed.values.push_back({row.figures[2]});
    quality.values.push_back({row.figures[has_text ? 5 : 4]});
  }
  return {"Weights in fewer bits", {}, {memory, speed, quality}};
}

std::string finding_of(const lesson_row& u8, bool has_text) {
  const auto& f = u8.figures;
  const std::string quality = has_text ? fmt::format("a perplexity of {} ({:+.2f}%)", figure_text(f[5]), f[6])
                                       : fmt::format("logits that are off by {}%", figure_text(f[4]));
  return fmt::format("u8 takes {} of the memory of f32 and gives {} times the tokens a second, with {}.",
                     figure_text(f[1]), figure_text(f[3]), quality);
}

}  // namespace

lesson_result run_quantization(const lesson_place& place) {
  const bool has_text = !place.text.empty();
  const auto exact_model = place.open("f32", {});
  const model_config& config = exact_model->config;
  if (config.context < probe_tokens)
    refuse("the model's context is {}: the lesson takes {} or more", config.context, probe_tokens);
  quality_probe probe{random_tokens(probe_tokens, config.vocab_size, 1), nullptr};
  if (has_text) probe.reader = load_tokenizer(place.model);
  lesson_result result;
  result.setting = fmt::format("{}; all weights in memory; one sequence of {} tokens",
                               shape_of(*exact_model, place.with), probe_tokens);
  result.columns = columns_of(has_text);
  std::optional<measured> exact;
  const auto add = [&](const variant& which) {
    place.check();
    const measured own = measure(place, probe, which.scheme, which.keep);
    if (!exact) exact = own;
    result.rows.push_back(row_of_variant(which, own, *exact, has_text));
  };
  for (const char* scheme : {"f32", "bf16", "u8"}) add({scheme, {}});
  add({"u8", kept_layers(place, config)});
  for (const char* scheme : {"q8", "q4"}) add({scheme, {}});
  result.finding = finding_of(result.rows[2], has_text);
  result.picture = picture_of(result, has_text);
  return result;
}

}  // namespace troupe::bench
