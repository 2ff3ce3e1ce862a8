#include "base/error.hpp"
#include "base/paths.hpp"
#include "model/formats/gguf.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/sentencepiece_model.hpp"
#include "model/tokenizer/tokenizer.hpp"
#include "model/tokenizer/tokenizer_config.hpp"

namespace troupe {

std::shared_ptr<const tokenizer> load_tokenizer(const std::filesystem::path& model) {
  const auto read = [](const std::filesystem::path& file) { return detail::read_text(file, std::size_t{256} << 20); };
  const std::string config = detail::tokenizer_config_text(model);
  if (const auto file = model / "tokenizer.json"; path_exists(file))
    return parse_tokenizer_json(read(file), config, file.string());
  if (const auto file = model / "tokenizer.model"; path_exists(file))
    return detail::parse_tokenizer_model(read(file), config, file.string());
  if (const auto metadata = find_gguf_metadata(model)) return tokenizer_from_gguf(*metadata);
  refuse("{}: has no tokenizer: put tokenizer.json or tokenizer.model there", model.string());
}

}  // namespace troupe
