#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::bench {

/// One request of a recorded load: when it came and how long it was, not what it said.
struct trace_request {
  double at = 0;  ///< seconds since the first of the trace
  std::int64_t prompt = 0, answer = 0;
  /// Names of its blocks of 512 tokens: equal names at the beginning are equal text. Empty where the trace has none.
  std::vector<std::uint64_t> blocks;
};
constexpr std::int64_t trace_block = 512;

/// The first `most` requests of a trace in one of two forms: CSV with the header TIMESTAMP,ContextTokens,
/// GeneratedTokens (Azure), or JSON lines with timestamp (milliseconds), input_length, output_length and hash_ids
/// (Mooncake). Throws input_error with file and line.
std::vector<trace_request> read_trace(const std::filesystem::path& path, std::size_t most);
std::vector<trace_request> parse_trace(std::string_view text, const std::string& where, std::size_t most);

}  // namespace troupe::bench
