#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/gguf.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/sentencepiece_model.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "model/tokenizer/tokenizer_config.hpp"

namespace troupe {
namespace {

constexpr std::string_view hugging_face_name = "tokenizer.json", sentencepiece_name = "tokenizer.model";

/// Empty where there is none in the folder, or the model is a .gguf file.
std::string_view tokenizer_file_in(const std::filesystem::path& model) {
  for (const std::string_view name : {hugging_face_name, sentencepiece_name})
    if (path_exists(model / name)) return name;
  return {};
}

}  // namespace

std::string tokenizer_kind(const std::filesystem::path& model) {
  if (const std::string_view name = tokenizer_file_in(model); !name.empty()) return std::string(name);
  const auto metadata = find_gguf_metadata(model);
  return metadata && metadata->metadata.contains("tokenizer.ggml.tokens") ? "GGUF" : "";
}

std::shared_ptr<const tokenizer> load_tokenizer(const std::filesystem::path& model) {
  const std::string_view name = tokenizer_file_in(model);
  if (name.empty()) {
    if (const auto metadata = find_gguf_metadata(model)) return tokenizer_from_gguf(*metadata);
    refuse("{}: has no tokenizer: put {} or {} there", model.string(), hugging_face_name, sentencepiece_name);
  }
  const std::string where = (model / name).string(), config = detail::tokenizer_config_text(model);
  const std::string text = detail::read_text(where, std::size_t{256} << 20);
  return name == hugging_face_name ? parse_tokenizer_json(text, config, where)
                                   : detail::parse_tokenizer_model(text, config, where);
}

}  // namespace troupe
