#include "bench/lessons/lesson.hpp"

#include <array>

#include <fmt/format.h>

#include "bench/lessons/all_lessons.hpp"

namespace troupe::bench {
namespace {

const std::array course{
    lesson{1, "kv-cache", "No KV cache against a KV cache", run_kv_cache, 16},
    lesson{2, "batch-size", "Batch size against latency and throughput", run_batch_size, 49},
    lesson{3, "continuous-batching", "Static against continuous batches", run_continuous_batching, 189},
    lesson{4, "quantization", "f32 against quantized weights", run_quantization, 64, true},
    lesson{5, "adapters", "The bare base, one adapter, many adapters", run_adapters, 49},
    lesson{6, "streams", "Three streams at once", run_streams, 117},
};

std::string line_of(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

}  // namespace

double latency_ms(double seconds, std::int64_t tokens) {
  return seconds * 1e3 / static_cast<double>(tokens);
}

double throughput(double seconds, std::int64_t batch, std::int64_t tokens) {
  return static_cast<double>(batch * tokens) / seconds;
}

std::span<const lesson> lessons() {
  return course;
}

std::vector<std::vector<std::string>> cells_of(const lesson_result& result) {
  std::vector<std::vector<std::string>> cells{result.columns};
  for (const lesson_row& row : result.rows) {
    auto& line = cells.emplace_back(std::vector{row.name});
    for (const double value : row.figures) line.push_back(figure_text(value));
  }
  return cells;
}

std::string to_markdown(const lesson& which, const lesson_result& result, const std::string& picture) {
  const auto cells = cells_of(result);
  std::string rule = "| --- |";
  for (std::size_t i = 1; i < result.columns.size(); ++i) rule += " ---: |";
  std::string page = fmt::format("# Lesson {}: {}\n\n{}\n\n", which.number, which.title, result.setting);
  page += line_of(cells.front()) + rule + "\n";
  for (std::size_t i = 1; i < cells.size(); ++i) page += line_of(cells[i]);
  page += fmt::format("\n{}\n\n{}\n", result.finding, lesson_definitions);
  if (!picture.empty()) page += fmt::format("\n![{}]({})\n", which.title, picture);
  return page;
}

}  // namespace troupe::bench
