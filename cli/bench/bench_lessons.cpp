#include <filesystem>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/number_in.hpp"
#include "base/to_size.hpp"
#include "base/whole_file.hpp"
#include "bench/lessons/lesson.hpp"
#include "bench/temporary_model.hpp"
#include "cli/bench/benches.hpp"
#include "cli/interrupt.hpp"
#include "cli/model/model_options.hpp"
#include "cli/output.hpp"
#include "cli/table.hpp"
#include "model/formats/model_files.hpp"
#include "model/ops/isa.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

struct bench_lessons_options {
  model_options model;  ///< without a name: a random one that is made for the course
  int only = 0;         ///< the number of a lesson; 0: all
  std::string text;     ///< a file to measure perplexity on
  std::string out;      ///< a folder for tables and plots
  bool json = false;
};

/// "1-kv-cache"
std::string file_name(const bench::lesson& which) {
  return fmt::format("{}-{}", which.number, which.name);
}

void write_result(const fs::path& folder, const bench::lesson& which, const bench::lesson_result& result) {
  const std::string plot = file_name(which) + ".svg";
  write_file(folder / plot, bench::to_svg(result.picture));
  write_file(folder / (file_name(which) + ".md"), bench::to_markdown(which, result, plot));
}

nlohmann::ordered_json to_json(const bench::lesson& which, const bench::lesson_result& result) {
  using json = nlohmann::ordered_json;
  json rows = json::array();
  for (const bench::lesson_row& row : result.rows) {
    const auto number = number_in<std::int64_t>(row.name);  // of tokens, or of sequences
    json line{{result.columns.front(), number ? json(*number) : json(row.name)}};
    for (std::size_t i = 0; i < row.figures.size(); ++i) line[result.columns[i + 1]] = row.figures[i];
    rows.push_back(std::move(line));
  }
  return {{"lesson", which.number},
          {"title", which.title},
          {"setting", result.setting},
          {"rows", std::move(rows)},
          {"finding", result.finding}};
}

void show(const bench_lessons_options& options, const bench::lesson& which) {
  if (!options.json) print(fmt::format("\nLesson {}: {}\n", which.number, which.title));
}

void show(const bench_lessons_options& options, const bench::lesson& which, const bench::lesson_result& result) {
  if (options.json)
    print_json(to_json(which, result));
  else
    print(fmt::format("{}\n\n{}\n{}\n", result.setting, table(bench::cells_of(result)), result.finding));
}

/// Why a lesson cannot be given with this model; empty if it can.
std::string obstacle_to(const bench::lesson& which, const model_files& model) {
  if (which.compares_schemes && is_packed(model.tensors))
    return fmt::format("lesson {} compares schemes, and {} is quantized already: give it the original, or no MODEL",
                       which.number, model.path.string());
  if (model.config.context < which.positions)
    return fmt::format("lesson {} takes {} positions, and {} has {}: give it a model with more, or no MODEL",
                       which.number, which.positions, model.path.string(), model.config.context);
  return {};
}

/// Whether a lesson can be given; says why not, if it is one of many.
bool suits(const bench_lessons_options& options, const bench::lesson& which, const model_files& model) {
  const std::string why = obstacle_to(which, model);
  if (why.empty()) return true;
  if (options.only > 0) throw input_error(why);
  write_error(fmt::format("troupe: left out: {}\n", why));
  return false;
}

std::vector<const bench::lesson*> chosen_lessons(const bench_lessons_options& options, const model_files& model) {
  std::vector<const bench::lesson*> chosen;
  for (const bench::lesson& each : bench::lessons())
    if ((options.only == 0 || each.number == options.only) && suits(options, each, model)) chosen.push_back(&each);
  return chosen;
}

/// Whether the only lesson has something to do with it.
void check_text(const bench_lessons_options& options) {
  if (options.text.empty() || options.only == 0) return;
  if (!bench::lessons()[to_size(options.only - 1)].compares_schemes)
    refuse("--text: lesson {} measures no perplexity: leave it out, or choose lesson 4", options.only);
}

void give_lesson(const bench_lessons_options& options, const bench::lesson& which, const bench::lesson_place& place) {
  place.check();
  show(options, which);
  const bench::lesson_result result = which.run(place);
  show(options, which, result);
  if (!options.out.empty()) write_result(options.out, which, result);
}

int bench_lessons(const bench_lessons_options& options) {
  check_text(options);
  if (!options.out.empty()) make_chosen_folder(options.out);
  const std::string text(options.text.empty() ? "" : mapped_file(options.text).text());
  thread_pool pool(thread_count(options.model));
  const interrupt_guard guard;
  std::optional<bench::temporary_model> practice;
  if (options.model.path.empty()) {
    if (!options.json) print("making a random model of 134 million parameters to practise on\n");
    practice.emplace("troupe-lessons", "S");
  }
  const fs::path model = practice ? practice->path() : fs::path(options.model.path);
  const auto open_in = [&](const std::string& scheme, const std::vector<std::string>& keep) {
    load_options chosen;
    chosen.quant = scheme_from_name(scheme, "--quant");
    chosen.keep = keep;
    if (practice) chosen.cache = practice->beside("packed");
    return load_with_progress(model, chosen, pool);
  };
  bench::lesson_place place{open_in, compute{pool, kernels()}};
  const model_files files = open_model(model);
  if (!options.model.quant.empty())
    place.scheme = options.model.quant;
  else if (is_packed(files.tensors))
    place.scheme = load_with_progress(model, {}, pool)->quantization;
  place.keep = options.model.keep;
  place.model = model;
  place.text = text;
  place.check = check_interrupt;
  // What cannot be taught or opened is refused before anything is printed.
  const auto lessons = chosen_lessons(options, files);
  if (!options.text.empty()) (void)load_tokenizer(model);
  (void)place.open(place.scheme, {});
  if (!options.json) print(fmt::format("{}\n", bench::lesson_definitions));
  for (const bench::lesson* each : lessons) give_lesson(options, *each, place);
  return 0;
}

}  // namespace

void add_bench_lessons(CLI::App& group, command& chosen) {
  const auto [own, options] =
      add_command(group, chosen, "lessons", "Take the course of serving optimizations, each measured on this machine",
                  bench_lessons);
  own.add_flag("--json", options.json, lines_as_json);
  own.add_option("MODEL", options.model.path,
                 "a Hugging Face folder or a .gguf file [a random model, made for the course]");
  own.add_option("--only", options.only,
                 "one lesson: 1 KV cache, 2 batch size, 3 continuous batching, 4 quantization, "
                 "5 adapters, 6 streams")
      ->type_name("N")
      ->check(CLI::Range(1, static_cast<int>(bench::lessons().size())));
  own.add_option("--out", options.out, "write a table and a plot of each lesson there")->type_name("DIR");
  own.add_option("--text", options.text, "lesson 4 measures perplexity on this text")->type_name("FILE");
  own.add_option("--quant", options.model.quant, "weights of all lessons but 4 [u8]")->type_name("SCHEME");
  own.add_option("--keep", options.model.keep, "layers that a row of lesson 4 leaves unquantized [the head]")
      ->type_name("NAME");
  add_threads(own, options.model);
}

}  // namespace troupe
