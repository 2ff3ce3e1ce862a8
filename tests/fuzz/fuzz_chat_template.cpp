// A model's chat template is whatever its file says. This renders arbitrary sources, as far as they parse, over a small
// conversation: none may crash, hang or exhaust memory.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/chat/chat_template.hpp"

namespace {

const nlohmann::ordered_json& conversation() {
  static const nlohmann::ordered_json variables = nlohmann::ordered_json::parse(R"({
    "messages": [
      {"role": "system", "content": " Be brief. "},
      {"role": "user", "content": "Hé 你好 🙂"},
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "abcdef123", "function": {"name": "add", "arguments": {"a": 1, "b": [2.5, true, null]}}}]},
      {"role": "tool", "content": "3.5", "tool_call_id": "abcdef123"}],
    "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}],
    "add_generation_prompt": true, "bos_token": "<s>", "eos_token": "</s>"})");
  return variables;
}

troupe::render_options small_limits() {
  troupe::render_options options;
  options.now = std::chrono::system_clock::from_time_t(0);
  options.limits.steps = 200'000;
  options.limits.bytes = 4'000'000;
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const troupe::chat_template parsed(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    parsed.render(conversation(), small_limits());
  } catch (const troupe::input_error&) {
    // Refusing is what most inputs deserve.
  }
  return 0;
}
