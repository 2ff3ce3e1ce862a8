#include <chrono>
#include <optional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/size_text.hpp"
#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/model/evaluate_text.hpp"
#include "cli/output.hpp"
#include "cli/progress.hpp"
#include "model/arch/quantize.hpp"

namespace troupe {
namespace {

struct quantize_options {
  model_options model;
  std::string scheme;
  std::string out;
  std::string text;
  bool force = false;
  bool json = false;
};

struct outcome {
  quantized_sizes sizes;
  double seconds = 0;
  std::optional<double> perplexity_before, perplexity_after;

  double size_share() const { return static_cast<double>(sizes.bytes_after) / static_cast<double>(sizes.bytes_before); }
  double perplexity_change() const { return (*perplexity_after / *perplexity_before - 1) * 100; }
};

void write_folder(const quantize_options& options, outcome& result) {
  thread_pool pool(thread_count(options.model));
  const interrupt_guard guard;
  progress bar("quantizing " + options.model.path);
  load_options chosen;
  chosen.quant = scheme_from_name(options.scheme, "--scheme");
  chosen.keep = options.model.keep;
  chosen.progress = [&](std::int64_t done, std::int64_t total) { bar.update(done, total); };
  const auto start = std::chrono::steady_clock::now();
  result.sizes = quantize_model(options.model.path, options.out, chosen, options.force, pool);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  check_interrupt();
}

double perplexity_of(const quantize_options& options, const std::string& model, const mapped_file& text) {
  model_options plain;
  plain.path = model;
  plain.threads = options.model.threads;
  runtime run(plain);
  return evaluate_text(run, *load_tokenizer(model), text, "evaluating " + model).perplexity();
}

nlohmann::ordered_json to_json(const outcome& result) {
  nlohmann::ordered_json out{{"bytes_before", result.sizes.bytes_before},
                             {"bytes_after", result.sizes.bytes_after},
                             {"seconds", result.seconds}};
  if (!result.perplexity_after) return out;
  out["perplexity_before"] = *result.perplexity_before;
  out["perplexity_after"] = *result.perplexity_after;
  out["change_percent"] = result.perplexity_change();
  return out;
}

std::string to_text(const quantize_options& options, const outcome& result) {
  std::string out = fmt::format("{}: {} as {}\nsize        {} -> {} ({:.0f}%)\ntime        {:.2f} s\n", options.out,
                                options.model.path, options.scheme, size_text(result.sizes.bytes_before),
                                size_text(result.sizes.bytes_after), result.size_share() * 100, result.seconds);
  if (result.perplexity_after)
    out += fmt::format("perplexity  {:.4f} -> {:.4f} ({:+.2f}%)\n", *result.perplexity_before, *result.perplexity_after,
                       result.perplexity_change());
  return out;
}

int quantize(const quantize_options& options) {
  outcome result;
  std::optional<mapped_file> text;
  if (!options.text.empty()) text = text_in(options.text);
  write_folder(options, result);
  if (text) {
    result.perplexity_before = perplexity_of(options, options.model.path, *text);
    result.perplexity_after = perplexity_of(options, options.out, *text);
  }
  if (options.json)
    print_json(to_json(result));
  else
    print(to_text(options, result));
  return 0;
}

}  // namespace

void add_quantize(CLI::App& program, command& chosen) {
  const auto [own, options] =
      add_command(program, chosen, "quantize", "Write a model in another scheme, ready to run", quantize);
  add_model(own, options.model);
  own.add_option("--scheme", options.scheme, std::string(scheme_names()))->type_name("SCHEME")->required();
  own.add_option("--out", options.out, "the folder to write")->type_name("DIR")->required();
  add_keep(own, options.model);
  own.add_option("--text", options.text, "compare the perplexity on this text before and after; - is standard input")
      ->type_name("FILE");
  add_threads(own, options.model);
  own.add_flag("--force", options.force, "replace the model that is in DIR");
  own.add_flag("--json", options.json, "print sizes, time and perplexity as JSON");
}

}  // namespace troupe
