// The text of one call of a tool, as models write it: an object of JSON, or Qwen3-Coder's or GLM's tags, or
// Gemma 4's notation, or a call of Python.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "actors/http/chats/tool_calls.hpp"

namespace troupe {

/// {"name": …, "arguments": {…}}, or "parameters" in place of "arguments". None if it is anything else, or calls what
/// is not offered. `name_key`: what is in place of "name".
std::optional<tool_call> read_json_call(std::string_view text, std::span<const tool_offer> offers,
                                        std::string_view name_key = "name");
/// Of a call of which the end is missing: with the arguments as far as they go; none if they have not begun.
std::optional<tool_call> read_cut_json_call(std::string_view text, std::span<const tool_offer> offers,
                                            std::string_view name_key = "name");

/// NAME, `body` and the arguments. `is_cut`: the end may be missing.
std::optional<tool_call> read_addressed_call(std::string_view text, std::string_view body,
                                             std::span<const tool_offer> offers, bool is_cut);

/// `address`, NAME and the arguments as Gemma 4 writes them. `is_cut`: the end may be missing.
std::optional<tool_call> read_unquoted_call(std::string_view text, std::string_view address,
                                            std::span<const tool_offer> offers, bool is_cut);

/// NAME(key=value, …) as Python has it; moves `text` past it. `is_cut`: the end may be missing.
std::optional<tool_call> take_pythonic_call(std::string_view& text, std::span<const tool_offer> offers, bool is_cut);

/// <function=NAME><parameter=KEY>value</parameter>…</function>. `is_cut`: the end may be missing.
std::optional<tool_call> read_function_tags(std::string_view text, std::span<const tool_offer> offers, bool is_cut);

/// <invoke name="NAME"><parameter name="KEY">value</parameter>…</invoke>; moves `text` past it. `is_cut`: the end may
/// be missing.
std::optional<tool_call> take_invocation(std::string_view& text, std::span<const tool_offer> offers, bool is_cut);

/// NAME, and <arg_key>KEY</arg_key><arg_value>value</arg_value> for each argument. `is_cut`: the end may be missing.
std::optional<tool_call> read_key_tags(std::string_view text, std::span<const tool_offer> offers, bool is_cut);

}  // namespace troupe
