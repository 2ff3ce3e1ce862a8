#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/gguf/gguf.hpp"
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

/// Converters write "none" or "no_vocab" where they were told to leave it out.
bool has_vocabulary(const gguf_file& file) {
  const auto model = file.get<std::string>("tokenizer.ggml.model").value_or("");
  return file.metadata.contains("tokenizer.ggml.tokens") && model != "none" && model != "no_vocab";
}

/// Vocabularies that are no whole tokenizer, or not one that is read.
std::string what_to_do(const std::filesystem::path& model) {
  for (const char* name : {"vocab.json", "tekken.json", "vocab.txt", "spiece.model"})
    if (path_exists(model / name))
      return fmt::format("{} is not read: let transformers write a {} (AutoTokenizer.from_pretrained, save_pretrained)",
                         name, hugging_face_name);
  return fmt::format("put {} or {} there", hugging_face_name, sentencepiece_name);
}

}  // namespace

std::string tokenizer_kind(const std::filesystem::path& model) {
  if (const std::string_view name = tokenizer_file_in(model); !name.empty()) return std::string(name);
  const auto metadata = find_gguf_metadata(model);
  return metadata && has_vocabulary(*metadata) ? "GGUF" : "";
}

std::shared_ptr<const tokenizer> load_tokenizer(const std::filesystem::path& model) {
  const std::string_view name = tokenizer_file_in(model);
  if (name.empty()) {
    if (const auto metadata = find_gguf_metadata(model)) return tokenizer_from_gguf(*metadata);
    refuse("{}: has no tokenizer: {}", model.string(), what_to_do(model));
  }
  const std::string where = (model / name).string(), config = detail::tokenizer_config_text(model);
  const std::string text = detail::read_text(where, std::size_t{256} << 20);
  return name == hugging_face_name ? parse_tokenizer_json(text, config, where)
                                   : detail::parse_tokenizer_model(text, config, where);
}

}  // namespace troupe
