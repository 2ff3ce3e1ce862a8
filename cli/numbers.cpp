#include "cli/numbers.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/number_in.hpp"

namespace troupe {
namespace {

constexpr std::array<std::string_view, 10> numbers{"INT", "FLOAT", "N", "N,…", "R,…", "T", "K", "P", "X", "ID"};
constexpr std::array<std::string_view, 2> unsigned_numbers{"UINT", "S"};

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

std::string number_problem(const std::string& text) {
  const auto digits = std::string_view(text).substr(text.starts_with('-') ? 1 : 0);
  if (has_leading_zero(digits) || !is_finite_number(text)) return fmt::format("'{}' is no decimal number", text);
  if (has_digits_only(digits) && !number_in<std::int64_t>(text)) return fmt::format("'{}' is too large", text);
  return "";
}

std::string unsigned_problem(const std::string& text) {
  const bool fits = number_in<std::uint64_t>(text) && !has_leading_zero(text);
  return fits ? "" : fmt::format("'{}' is no whole number from 0 to 2^64-1", text);
}

/// Runs before all other checks: their messages would show the converted value, not what was typed.
void check_first(CLI::Option& option, std::string (*problem)(const std::string&)) {
  option.transform(CLI::Validator([problem](std::string& text) { return problem(text); }, ""));
}

void check_numbers_of(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string described = option->get_type_name();
    const auto type = std::string_view(described).substr(0, described.find(':'));
    if (std::find(numbers.begin(), numbers.end(), type) != numbers.end()) check_first(*option, number_problem);
    if (std::find(unsigned_numbers.begin(), unsigned_numbers.end(), type) != unsigned_numbers.end())
      check_first(*option, unsigned_problem);
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
