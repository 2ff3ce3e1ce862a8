#pragma once
#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "model/chat/chat_template.hpp"
#include "tests/base/places.hpp"
#include "tests/base/refusal.hpp"

namespace troupe {

/// The reference rendered with its clock at this time: 26 July 2024, 12:00 UTC.
inline render_options at_fixed_time() {
  render_options options;
  options.now = std::chrono::system_clock::from_time_t(1721995200);
  return options;
}

inline std::string render(std::string_view source, const nlohmann::ordered_json& variables = {{"unused", 0}},
                          const render_options& options = at_fixed_time()) {
  return chat_template(source, "test").render(variables, options);
}

/// The error of parsing or rendering a template; empty if there is none.
inline std::string refusal_of(std::string_view source, const nlohmann::ordered_json& variables = {{"unused", 0}},
                              const render_options& options = at_fixed_time()) {
  return test::refusal([&] { render(source, variables, options); });
}

inline const std::filesystem::path template_folder = test::fixtures.parent_path() / "model" / "chat" / "templates";

}  // namespace troupe
