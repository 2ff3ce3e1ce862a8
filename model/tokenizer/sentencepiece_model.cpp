#include "model/tokenizer/sentencepiece_model.hpp"

#include <sentencepiece_processor.h>

#include "base/error.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/text_tokenizer.hpp"
#include "model/tokenizer/tokenizer_config.hpp"
#include "model/tokenizer/vocabulary_builder.hpp"

namespace troupe::detail {
namespace {

using processor = sentencepiece::SentencePieceProcessor;

class sentencepiece_model final : public text_encoder {
 public:
  sentencepiece_model(std::shared_ptr<const processor> pieces, std::string where)
      : pieces_(std::move(pieces)), where_(std::move(where)) {}

  void encode(std::string_view text, bool, bool, std::vector<token_id>& out) const override {
    std::vector<int> ids;
    const auto status = pieces_->Encode(text, &ids);
    if (!status.ok()) refuse("{}: cannot tokenize a text: {}", where_, status.ToString());
    out.insert(out.end(), ids.begin(), ids.end());
  }

 private:
  std::shared_ptr<const processor> pieces_;
  std::string where_;
};

std::shared_ptr<const processor> load(std::string_view bytes, const std::string& where) {
  auto pieces = std::make_shared<processor>();
  const auto status = pieces->LoadFromSerializedProto(bytes);
  if (!status.ok()) refuse("{}: is no SentencePiece model: {}", where, status.ToString());
  return pieces;
}

bool is_looked_for(const processor& pieces, int id) {
  return pieces.IsControl(id) || pieces.IsUnknown(id);
}

/// The library does not tell its settings; what it does to a letter shows this one.
bool adds_leading_space(const processor& pieces) {
  const auto spelled = pieces.EncodeAsPieces("a");
  return !spelled.empty() && spelled.front().starts_with(visible_space);
}

void add_pieces(const processor& pieces, const tokenizer_config& config, const std::string& where,
                tokenizer_parts& parts) {
  vocabulary_builder builder(where);
  std::vector<added_token> added = config.added;
  for (const auto& token : config.further)
    if (pieces.IdToPiece(pieces.PieceToId(token.content)) != token.content) added.push_back(token);
  for (const auto& token : added) parts.added.add(token, token.content);  // before the model's own: its flags count
  for (int id = 0; id < pieces.GetPieceSize(); ++id) {
    if (!is_looked_for(pieces, id)) {
      builder.add(id, pieces.IdToPiece(id), sentencepiece_bytes(pieces.IdToPiece(id), pieces.IsByte(id)));
      continue;
    }
    added_token token;
    token.id = id;
    token.content = pieces.IdToPiece(id);
    token.special = true;
    builder.add_added(token);
    if (!token.content.empty()) parts.added.add(token, token.content);
  }
  for (const auto& token : added) builder.add_added(token);
  parts.tokens = builder.take();
}

}  // namespace

std::shared_ptr<const tokenizer> parse_tokenizer_model(std::string_view bytes, std::string_view config_text,
                                                       const std::string& where) {
  const auto pieces = load(bytes, where);
  auto config = read_tokenizer_config(config_text, where);
  if (!config.legacy.value_or(true) || !config.add_prefix_space.value_or(true))
    refuse(
        "{}: tokenizer_config.json sets legacy or add_prefix_space to false, which needs a tokenizer.json: save the "
        "tokenizer with transformers' save_pretrained",
        where);
  tokenizer_parts parts;
  add_pieces(*pieces, config, where, parts);
  parts.model = std::make_shared<sentencepiece_model>(pieces, where);
  parts.strips_leading_space = adds_leading_space(*pieces);
  if (pieces->bos_id() >= 0) parts.bos = pieces->bos_id();
  if (pieces->eos_id() >= 0) parts.eos = pieces->eos_id();
  if (!config.bos.add) config.bos.add = parts.bos.has_value() || config.bos.name.has_value();
  apply_config(config, parts);
  return std::make_shared<text_tokenizer>(std::move(parts));
}

}  // namespace troupe::detail
