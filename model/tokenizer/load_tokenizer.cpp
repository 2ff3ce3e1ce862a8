#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "model/formats/gguf.hpp"
#include "model/tokenizer/sentencepiece_model.hpp"
#include "model/tokenizer/tokenizer.hpp"

namespace troupe {
namespace {

constexpr std::size_t largest_file = std::size_t{256} << 20;

std::string_view text_of(const mapped_file& file) {
  const auto bytes = file.bytes();
  if (bytes.size() > largest_file) refuse("{}: is larger than {} bytes", file.name(), largest_file);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::shared_ptr<const tokenizer> load_tokenizer(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const auto path = [&](const char* name) { return folder / name; };
  mapped_file config_file;
  if (fs::exists(path("tokenizer_config.json"))) config_file = mapped_file(path("tokenizer_config.json"));
  const auto config = text_of(config_file);
  if (const auto file = path("tokenizer.json"); fs::exists(file))
    return parse_tokenizer_json(text_of(mapped_file(file)), config, file.string());
  if (const auto file = path("tokenizer.model"); fs::exists(file))
    return detail::parse_tokenizer_model(text_of(mapped_file(file)), config, file.string());
  if (const auto file = path("metadata.gguf"); fs::exists(file)) return tokenizer_from_gguf(open_gguf(file));
  refuse("{}: has no tokenizer: put tokenizer.json or tokenizer.model there", folder.string());
}

}  // namespace troupe
