#include "cli/numbers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/number_in.hpp"
#include "cli/help_format.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 5> whole_numbers{"INT", "N", "N,...", "K", "ID"};
constexpr std::array<std::string_view, 5> numbers{"FLOAT", "R,...", "T", "P", "X"};
constexpr std::string_view unsigned_number = "UINT", seed = "S";

bool is_finite_number(std::string_view text) {
  const auto number = number_in<double>(text);
  return number && std::isfinite(*number);
}

bool has_digits_only(std::string_view text) {
  return text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// CLI11 would read such a number as octal.
bool has_leading_zero(std::string_view digits) {
  return digits.size() > 1 && digits.front() == '0' && has_digits_only(digits.substr(1, 1));
}

std::string number_problem(const std::string& text, std::string_view kind) {
  const auto digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  if (has_leading_zero(digits) || !is_finite_number(text)) return fmt::format("'{}' is no {}", text, kind);
  if (has_digits_only(digits) && !number_in<std::int64_t>(text)) return fmt::format("'{}' is too large", text);
  return "";
}

/// What is whole is found out when it is converted.
std::string whole_problem(const std::string& text) {
  return number_problem(text, "whole decimal number");
}

std::string decimal_problem(const std::string& text) {
  return number_problem(text, "decimal number");
}

std::string unsigned_problem(const std::string& text) {
  const bool fits = number_in<std::uint64_t>(text) && !has_leading_zero(text);
  return fits ? "" : fmt::format("'{}' is no whole number from 0 to 2^64-1", text);
}

std::string seed_problem(const std::string& text) {
  return text == "-1" ? "" : unsigned_problem(text);
}

/// Runs before all other checks: their messages would show the converted value, not what was typed.
void check_first(CLI::Option& option, std::string (*problem)(const std::string&)) {
  option.transform(CLI::Validator([problem](std::string& text) { return problem(text); }, ""));
}

void check_numbers_of(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string type = type_of(*option);
    const auto is_one_of = [&](const auto& types) { return std::ranges::find(types, type) != types.end(); };
    if (is_one_of(whole_numbers)) check_first(*option, whole_problem);
    if (is_one_of(numbers)) check_first(*option, decimal_problem);
    if (type == unsigned_number) check_first(*option, unsigned_problem);
    if (type == seed) check_first(*option, seed_problem);
  }
}

}  // namespace

void check_numbers(CLI::App& program) {
  check_numbers_of(program);
  for (CLI::App* each : program.get_subcommands([](CLI::App*) { return true; })) check_numbers(*each);
}

std::vector<std::int32_t> read_token_list(const std::string& option, const std::string& text) {
  std::vector<std::int32_t> tokens;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    const auto [stop, error] = std::from_chars(at, end, tokens.emplace_back());
    if (error != std::errc() || (stop != end && *stop != ','))
      throw CLI::ValidationError(option, fmt::format("'{}' is no list of token ids: write 1,2,3", text));
    if (stop == end) return tokens;
    at = stop + 1;
  }
}

}  // namespace troupe
