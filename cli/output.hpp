#pragma once
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace troupe {

/// Thrown when nobody reads standard output any more: the program ends quietly.
struct output_closed {};

/// Makes sure that standard input, output and error are open, so that no file that is opened later gets their numbers.
void open_standard_files();

/// Writes to standard output at once. Throws output_closed, or runtime_error when it cannot be written.
void print(std::string_view text);
/// The same for what nothing depends on: left out where it cannot be written at once.
void print_if_heard(std::string_view text);
/// On one line, without its end; what is no valid UTF-8 becomes U+FFFD.
std::string json_line(const nlohmann::ordered_json& value);
void print_json(const nlohmann::ordered_json& value);

/// Writes to standard error, where nobody may be reading: the work goes on all the same.
void write_error(std::string_view text);
constexpr std::string_view clear_line = "\r\x1b[K";  ///< on a terminal

/// Text in one line: control characters become spaces, bytes that belong to no character "?".
std::string one_line(std::string_view text);

}  // namespace troupe
