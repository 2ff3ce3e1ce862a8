// The course of serving optimizations: each lesson measures two ways of doing the same on this machine.
//
// Goals: every figure is computed by the engine that serves; what a lesson shows is said from its figures.
// Non-goals: printing and files; whoever runs a lesson does that.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/plot.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/ops/compute.hpp"

namespace troupe::bench {

/// What all lessons share. Latency and throughput are meant as everywhere in the course.
inline constexpr const char* lesson_definitions =
    "latency = total time / tokens of one answer; throughput = batch x tokens of one answer / total time";
double latency_ms(double seconds, std::int64_t tokens);
double throughput(double seconds, std::int64_t batch, std::int64_t tokens);

/// What a lesson is given.
struct lesson_place {
  /// The model with its weights in a scheme; layers whose names hold one of `keep` stay as they are in the file.
  std::function<std::shared_ptr<const loaded_model>(const std::string& scheme, const std::vector<std::string>& keep)>
      open;
  compute with;
  std::string scheme = "u8";            ///< of all lessons but the one about schemes
  std::vector<std::string> keep = {};   ///< what that one leaves unquantized; empty: the head
  std::filesystem::path model = {};     ///< whose tokenizer reads the text
  std::string text = {};                ///< to predict; empty: quality is measured on the logits alone
  double patience = 0.4;                ///< seconds that a measurement may be repeated for
  std::function<void()> check = [] {};  ///< called between measurements; throws where the user wants an end
};

/// A line of a lesson's table: a name, and a number for each further column.
struct lesson_row {
  std::string name;
  std::vector<double> figures;
};

struct lesson_result {
  std::string setting;  ///< one line: what was run
  std::vector<std::string> columns;
  std::vector<lesson_row> rows;
  std::string finding;  ///< one sentence, from the figures
  plot picture;
};

struct lesson {
  int number = 0;
  const char* name = "";   ///< of its files: "kv-cache"
  const char* title = "";  ///< what is compared
  lesson_result (*run)(const lesson_place& place) = nullptr;
  std::int64_t positions = 0;     ///< that the model has at least
  bool compares_schemes = false;  ///< takes a model that every scheme can be made of
};
/// All of them, in the order of the course.
std::span<const lesson> lessons();

/// With the columns' names as the first row, each number as text.
std::vector<std::vector<std::string>> cells_of(const lesson_result& result);
/// A page: title, setting, table, finding, and the picture where `picture` names its file.
std::string to_markdown(const lesson& which, const lesson_result& result, const std::string& picture);

}  // namespace troupe::bench
