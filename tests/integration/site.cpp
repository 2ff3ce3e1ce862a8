#include "tests/integration/site.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "bench/random/random_adapter.hpp"
#include "model/engine/generate.hpp"
#include "model/ops/isa.hpp"
#include "model/text/model_text.hpp"

namespace troupe::test {
namespace {

constexpr int vocabulary = 256;  // of prompts: the bytes
constexpr int context = 4096;

/// Longer answers than the shape's own context allows.
void set_context(const std::filesystem::path& file) {
  auto config = nlohmann::ordered_json::parse(read_file(file));
  config["max_position_embeddings"] = context;
  std::ofstream(file) << config.dump();
}

}  // namespace

test_site::test_site() {
  process made({TROUPE_RANDOM_MODEL, "tiny", model().string()}, path("random_model"));
  if (made.wait() != 0) throw std::runtime_error(made.error());
  set_context(model() / "config.json");
  loaded_ = load_model(model(), {.quant = scheme::u8, .keep = {}, .cache = path("cache"), .progress = {}}, pool_);
  std::uint32_t seed = 0;
  for (const char* name : {"red", "blue"}) {
    bench::write_random_adapter(adapter(name), loaded_->config, 4, ++seed);
    take_adapter(name, adapter(name));
  }
}

void test_site::give_chat_template() const {
  const auto file = model() / "tokenizer_config.json";
  auto config = nlohmann::ordered_json::parse(read_file(file));
  config["chat_template"] = R"({%- if tools %}<tools>{{ tools | tojson }}</tools>
Calls are written as <tool_call>{"name", "arguments"}</tool_call>
{%- endif %}
{%- for message in messages %}<{{ message.role }}>
{%- if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}
{% endfor %}<assistant>)";
  std::ofstream(file) << config.dump();
}

client_request test_site::request(int i, std::int64_t tokens) const {
  client_request made;
  for (int k = 0; k < 3 + (i * 37) % 90; ++k) made.tokens.push_back((i * 31 + k * 7) % vocabulary);
  made.sampling.max_tokens = tokens;
  made.sampling.seed = static_cast<std::uint64_t>(i) * 1000;
  made.sampling.temperature = i % 4 == 0 ? 0 : 0.5 + 0.1 * (i % 7);
  made.sampling.ignore_eos = true;
  if (i % 3 == 1) made.sampling.top_k = 40;
  if (i % 5 == 2) made.sampling.top_p = 0.9;
  if (i % 6 == 3) made.sampling.repetition_penalty = 1.2;
  if (i % 7 == 4) made.sampling.presence_penalty = 0.5;
  if (i % 7 == 5) made.sampling.frequency_penalty = 0.3;
  if (i % 8 == 6) made.answers = 3;
  if (i % 8 == 3) made.adapter = "red";
  if (i % 8 == 5) made.adapter = "blue";
  made.batch = i % 9 == 8;
  return made;
}

void test_site::take_adapter(const std::string& name, const std::filesystem::path& folder) {
  adapters_[name] = std::make_shared<const lora_adapter>(read_adapter(folder, loaded_->config), loaded_->config.layers,
                                                         precision_beside(loaded_->quantization));
}

std::vector<token_id> test_site::expected(const client_request& request, std::int32_t index) const {
  sampling_params params = request.sampling;
  params.seed += static_cast<std::uint64_t>(index);
  const lora_adapter* adapter = request.adapter.empty() ? nullptr : adapters_.at(request.adapter).get();
  const auto positions = static_cast<std::int64_t>(request.tokens.size()) + params.max_tokens;
  single_sequence sequence(loaded_, {.adapter = adapter, .positions = positions, .kv = kv_kind::f16},
                           {pool_, kernels()});
  const auto tokens = load_tokenizer(model());
  const auto end_tokens = end_tokens_of(loaded_->config, *tokens);
  return generate(sequence, kernels(), {request.tokens, end_tokens, params, tokens}).tokens;
}

}  // namespace troupe::test
