// Reads the input as a tokenizer.json, and what follows a zero byte as the tokenizer_config.json beside it; a tokenizer
// that is accepted must then take any text without a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace {

using namespace troupe;

constexpr std::string_view texts[] = {"", " Hello  world's 123 \n\n", "e\u0301\u1100\u1161 \u6c34\U0001f600",
                                      "\xFF\xC3 a\x80 <s>b</s>", "aaaaaaaaaaaaaaaa"};

void use(const tokenizer& tokens, std::string_view text) {
  const auto ids = tokens.encode(text);
  const auto unread = tokens.encode(text, {.add_special = false, .parse_special = false});
  stream_decoder decoder(tokens);
  for (const auto id : ids) decoder.push(id);
  decoder.finish();
  tokens.decode(unread, false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const auto end = input.find('\0');
    const auto config = end == input.npos ? std::string_view() : input.substr(end + 1);
    const auto tokens = parse_tokenizer_json(input.substr(0, end), config, "fuzz/tokenizer.json");
    for (const auto text : texts) use(*tokens, text);
    use(*tokens, input.substr(0, 512));
  } catch (const input_error&) {
    // Refused, at parsing or when a pattern takes too many steps: as it should be.
  }
  return 0;
}
