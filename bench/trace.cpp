#include "bench/trace.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/number_in.hpp"
#include "base/to_size.hpp"
#include "model/formats/json_input.hpp"

namespace troupe::bench {
namespace {

constexpr std::size_t most_bytes = 256 << 20;
constexpr std::size_t most_line = 1 << 20;
constexpr std::int64_t most_tokens = 1 << 24;
constexpr std::string_view csv_header = "TIMESTAMP,ContextTokens,GeneratedTokens";

/// The lines of a text, counted from 1, without what ends them.
class line_reader {
 public:
  line_reader(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  /// The next line that is not empty.
  std::optional<std::string_view> next() {
    while (!rest_.empty()) {
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.size() > most_line) refuse("{}: the line has {} bytes, more than {}", where(), line.size(), most_line);
      if (!line.empty()) return line;
    }
    return std::nullopt;
  }
  std::string where() const { return fmt::format("{}:{}", name_, number_); }

 private:
  std::string_view rest_;
  const std::string& name_;
  std::size_t number_ = 0;
};

std::int64_t checked_length(std::int64_t length, std::string_view field, const std::string& where) {
  if (length < 1 || length > most_tokens)
    refuse("{}: {} is {}: a length is 1 to {} tokens", where, field, length, most_tokens);
  return length;
}

std::int64_t csv_length(std::string_view text, std::string_view field, const std::string& where) {
  const auto value = number_in<std::int64_t>(text);
  if (!value) refuse("{}: {} is \"{}\", which is no number", where, field, text.substr(0, 40));
  return checked_length(*value, field, where);
}

/// "2023-11-16 18:15:46.6805900" as seconds.
std::optional<double> seconds_of(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != ' ' || text[13] != ':' || text[16] != ':')
    return std::nullopt;
  const auto year = number_in<int>(text.substr(0, 4));
  const auto month = number_in<unsigned>(text.substr(5, 2)), day = number_in<unsigned>(text.substr(8, 2));
  const auto hour = number_in<unsigned>(text.substr(11, 2)), minute = number_in<unsigned>(text.substr(14, 2));
  const auto second = number_in<double>(text.substr(17));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok() || *hour > 23 || *minute > 59 || !(*second >= 0 && *second < 61)) return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return static_cast<double>(days) * 86400.0 + *hour * 3600.0 + *minute * 60.0 + *second;
}

trace_request csv_request(std::string_view line, const std::string& where) {
  const std::size_t first = line.find(','), second = line.find(',', first + 1);
  if (first == line.npos || second == line.npos || line.find(',', second + 1) != line.npos)
    refuse("{}: should be three fields, {}", where, csv_header);
  const std::string_view time = line.substr(0, first);
  const auto at = seconds_of(time);
  if (!at) refuse("{}: TIMESTAMP is \"{}\", not like 2023-11-16 18:15:46.68", where, time.substr(0, 40));
  return {*at,
          csv_length(line.substr(first + 1, second - first - 1), "ContextTokens", where),
          csv_length(line.substr(second + 1), "GeneratedTokens", where),
          {}};
}

std::vector<std::uint64_t> block_names(const nlohmann::json& object, std::int64_t prompt, const std::string& where) {
  const auto found = object.find("hash_ids");
  if (found == object.end()) return {};
  const auto expected = to_size((prompt + trace_block - 1) / trace_block);
  if (!found->is_array() || found->size() != expected)
    refuse("{}: hash_ids should be a list of {}, one for each {} tokens of input_length", where, expected, trace_block);
  std::vector<std::uint64_t> names;
  for (const auto& name : *found) {
    const auto value = detail::to_integer(name);
    if (!value || *value < 0) refuse("{}: hash_ids holds what is no whole number from 0 on", where);
    names.push_back(static_cast<std::uint64_t>(*value));
  }
  return names;
}

trace_request json_request(std::string_view line, const std::string& where) {
  const nlohmann::json object = detail::parse_json(line, where);
  if (!object.is_object()) refuse("{}: is no JSON object", where);
  const detail::json_fields fields(object, where);
  const auto at = fields.number("timestamp");
  const auto prompt = fields.integer("input_length"), answer = fields.integer("output_length");
  if (!at || !prompt || !answer) refuse("{}: should have timestamp, input_length and output_length", where);
  if (!(*at >= 0 && *at < 1e15)) refuse("{}: timestamp is {}: milliseconds from 0 on", where, *at);
  trace_request request{
      *at / 1000, checked_length(*prompt, "input_length", where), checked_length(*answer, "output_length", where), {}};
  request.blocks = block_names(object, request.prompt, where);
  return request;
}

}  // namespace

std::vector<trace_request> parse_trace(std::string_view text, const std::string& where, std::size_t most) {
  line_reader lines(text, where);
  const bool csv = text.starts_with(csv_header);
  if (!csv && !text.starts_with('{'))
    refuse("{}:1: is neither CSV with the header {} nor JSON lines: give a trace in one of these", where, csv_header);
  if (csv) (void)lines.next();
  std::vector<trace_request> requests;
  double first = 0, last = 0;
  while (requests.size() < most) {
    const auto line = lines.next();
    if (!line) break;
    trace_request request = csv ? csv_request(*line, lines.where()) : json_request(*line, lines.where());
    if (requests.empty()) first = last = request.at;
    if (request.at < last) refuse("{}: came before the request of the line before it", lines.where());
    last = request.at;
    request.at -= first;
    requests.push_back(std::move(request));
  }
  if (requests.empty()) refuse("{}: holds no request", where);
  return requests;
}

std::vector<trace_request> read_trace(const std::filesystem::path& path, std::size_t most) {
  return parse_trace(detail::read_text(path, most_bytes), path.string(), most);
}

}  // namespace troupe::bench
