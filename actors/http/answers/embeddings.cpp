#include <bit>
#include <cmath>

#include "actors/http/answers/answering_paths.hpp"
#include "actors/http/answers/order_fields.hpp"
#include "actors/http/json_text.hpp"
#include "actors/requests/request_fields_impl.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "embeddings are sent as little-endian floats");

std::string base64_of(const std::vector<float>& values) {
  static constexpr char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  const std::size_t size = values.size() * sizeof(float);
  std::string text;
  text.reserve((size + 2) / 3 * 4);
  for (std::size_t i = 0; i < size; i += 3) {
    const auto byte = [&](std::size_t at) { return at < size ? std::uint32_t{bytes[at]} : 0u; };
    const std::uint32_t bits = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    for (int shift = 18; shift >= 0; shift -= 6) text += letters[bits >> shift & 63];
  }
  for (std::size_t i = size; i % 3 != 0; ++i) text[text.size() - 1 - (i - size)] = '=';
  return text;
}

void make_unit_length(std::vector<float>& values) {
  double sum = 0;
  for (const float each : values) sum += static_cast<double>(each) * static_cast<double>(each);
  if (sum == 0) return;
  const double length = std::sqrt(sum);
  for (float& each : values) each = static_cast<float>(static_cast<double>(each) / length);
}

/// Like [0.1,0.2…]; each number reads back as exactly the same float.
std::string list_of(const std::vector<float>& values) {
  std::string text = "[";
  for (const float each : values) {
    if (text.size() > 1) text += ',';
    fmt::format_to(std::back_inserter(text), "{}", std::isfinite(each) ? each : 0.0f);
  }
  return text + "]";
}

class embedding_format final : public answer_format {
 public:
  embedding_format(const std::string& model, bool base64, bool normalize)
      : model_(json_text(model)), base64_(base64), normalize_(normalize) {}

  std::string whole(const std::vector<answer_choice>& choices, const answer_usage& usage) override {
    std::string text = R"({"object":"list","data":[)";
    for (std::size_t i = 0; i < choices.size(); ++i) {
      std::vector<float> values = choices[i].hidden;
      if (normalize_) make_unit_length(values);
      fmt::format_to(std::back_inserter(text), R"({}{{"object":"embedding","index":{},"embedding":)", i > 0 ? "," : "",
                     i);
      text += base64_ ? '"' + base64_of(values) + '"' : list_of(values);
      text += '}';
    }
    return text + fmt::format(R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})", model_,
                              usage.prompt_tokens, usage.prompt_tokens);
  }

 private:
  std::string model_;  ///< as JSON
  bool base64_, normalize_;
};

hidden_pooling pooling_of(const request_fields& from) {
  const std::string named = from.text("pooling").value_or("last");
  if (named != "last" && named != "mean") refuse_field("pooling", "pooling should be last or mean");
  return named == "mean" ? hidden_pooling::mean : hidden_pooling::last;
}

bool wants_base64(const request_fields& from) {
  const std::string named = from.text("encoding_format").value_or("float");
  if (named != "float" && named != "base64")
    refuse_field("encoding_format", "encoding_format should be float or base64", "unsupported_value");
  return named == "base64";
}

/// Base64 is of floats here, their lowest bytes first: what vLLM makes of other fields is refused.
void check_bytes(const request_fields& from) {
  if (const auto type = from.text("embed_dtype"); type && *type != "float32")
    refuse_field("embed_dtype", "embed_dtype is served only as float32", "unsupported_value");
  if (const auto order = from.text("endianness"); order && *order != "native" && *order != "little")
    refuse_field("endianness", "endianness is served only as native and little", "unsupported_value");
}

/// Refuses shorter embeddings: no model here is trained to have them cut.
void check_dimensions(const request_fields& from, std::int64_t hidden) {
  const auto wanted = from.integer("dimensions", 1, INT32_MAX);
  if (wanted && *wanted != hidden)
    refuse_field("dimensions", fmt::format("dimensions is {}: embeddings of this model have {}", *wanted, hidden),
                 "unsupported_value");
}

}  // namespace

asked_answer read_embeddings(const request_fields& from, const served_model& served) {
  answer_order order = read_order(from, served);
  if (order.n != 1 || order.stream)
    refuse_field(order.stream ? "stream" : "n", "embeddings have neither n nor a stream");
  if (order.sampling.constraint) refuse_field(order.form_field, "embeddings are no answers: leave out their form");
  if (order.prompt_logprobs) refuse_field("prompt_logprobs", "embeddings have no prompt_logprobs: leave it out");
  if (order.token_ids) refuse_field("return_token_ids", "embeddings have no return_token_ids: leave it out");
  if (wants_base64(from)) check_bytes(from);
  check_dimensions(from, served.prompts->config().hidden);
  read_prompts(from, "input", order);
  order.sampling.pooling = pooling_of(from);
  order.sampling.max_tokens = 0;
  auto format =
      std::make_unique<embedding_format>(order.model, wants_base64(from), from.boolean("normalize").value_or(true));
  return {std::move(order), std::move(format)};
}

}  // namespace troupe
