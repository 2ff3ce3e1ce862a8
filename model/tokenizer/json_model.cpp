#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/json_parts.hpp"

namespace troupe::detail {
namespace {

using json = nlohmann::json;
using fields = json_fields<json>;

void read_vocabulary(const fields& model, bpe_part& out) {
  const auto* table = model.find("vocab");
  if (!table || !table->is_object() || table->empty())
    refuse("{}: \"vocab\" should be an object that is not empty", model.where());
  out.tokens.reserve(table->size());
  out.ids.reserve(table->size());
  const std::string where = model.where() + ".vocab";
  for (const auto& [token, value] : table->items()) {
    const token_id id = checked_id(value, where, token);
    out.tokens.emplace_back(token, id);
    out.ids.emplace(token, id);
  }
}

using two_texts = std::pair<std::string_view, std::string_view>;

/// "a b" or ["a", "b"].
two_texts read_pair(const json& merge, const std::string& where, std::size_t index) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>()};
  if (merge.is_string()) {
    const std::string_view text = merge.get_ref<const std::string&>();
    const auto space = text.find(' ');
    if (space != std::string_view::npos && text.find(' ', space + 1) == std::string_view::npos)
      return {text.substr(0, space), text.substr(space + 1)};
  }
  refuse("{}: merge {} should be two tokens, \"a b\" or [\"a\", \"b\"]", where, index);
}

token_id merged_id(const bpe_part& model, std::string_view token, const std::string& where, std::size_t index) {
  const auto found = model.ids.find(token);
  if (found == model.ids.end())
    refuse("{}: merge {} needs the token \"{}\", which the vocabulary lacks", where, index, token.substr(0, 100));
  return found->second;
}

void read_merges(const fields& model, bpe_part& out) {
  const auto& list = model.list("merges");
  out.merges.reserve(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto [left, right] = read_pair(list[i], model.where(), i);
    const auto whole = std::string(left) + std::string(right);
    out.merges.push_back({.left = merged_id(out, left, model.where(), i),
                          .right = merged_id(out, right, model.where(), i),
                          .result = merged_id(out, whole, model.where(), i),
                          .rank = static_cast<std::int32_t>(i)});
  }
}

bool spells_all_bytes(const bpe_part& model) {
  for (int byte = 0; byte < 256; ++byte) {
    std::string letter;
    append_utf8(letter, letter_of(static_cast<std::uint8_t>(byte)));
    if (!model.ids.contains(letter)) return false;
  }
  return true;
}

/// The token of what no other token spells: some models name one that they lack, since nothing is unknown to them.
std::optional<token_id> read_unknown(const fields& model, bool byte_level, const bpe_part& part) {
  const auto name = model.text("unk_token");
  if (!name) return std::nullopt;
  if (const auto found = part.ids.find(*name); found != part.ids.end()) return found->second;
  if (byte_level && spells_all_bytes(part)) return std::nullopt;
  refuse("{}: \"unk_token\" is \"{}\", which the vocabulary lacks", model.where(), name->substr(0, 100));
}

void refuse_unsupported(const fields& model) {
  if (const auto type = model.text("type"); type.value_or("BPE") != "BPE")
    refuse("{}: the model \"{}\" is not supported (BPE is)", model.where(), *type);
  if (model.number("dropout").value_or(0) != 0) refuse("{}: \"dropout\" is not supported", model.where());
  for (const auto* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!model.text(key).value_or("").empty()) refuse("{}: \"{}\" is not supported", model.where(), key);
}

}  // namespace

token_id checked_id(const json& value, const std::string& where, std::string_view token) {
  const auto id = to_integer(value);
  if (!id || *id < 0 || *id >= most_vocabulary)
    refuse("{}: the id of \"{}\" should be an integer from 0 to {}", where, token.substr(0, 100), most_vocabulary - 1);
  return static_cast<token_id>(*id);
}

bpe_part read_model(const json* part, bool byte_level, const std::string& where) {
  if (!part) refuse("{}: is missing", where);
  const fields model(*part, where);
  refuse_unsupported(model);
  bpe_part out;
  read_vocabulary(model, out);
  read_merges(model, out);
  out.rules.byte_fallback = model.boolean("byte_fallback").value_or(false);
  out.rules.fuse_unknown = model.boolean("fuse_unk").value_or(false);
  out.rules.ignore_merges = model.boolean("ignore_merges").value_or(false);
  out.rules.unknown = read_unknown(model, byte_level, out);
  return out;
}

added_token read_added_token(const json& entry, token_id id, const std::string& where) {
  const fields token(entry, where);
  added_token out;
  out.id = id;
  out.content = token.text("content").value_or("");
  if (out.content.empty() || out.content.size() > added_token_splitter::longest_content)
    refuse("{}: \"content\" should be a text of 1 to {} bytes", where, added_token_splitter::longest_content);
  out.special = token.boolean("special").value_or(false);
  out.single_word = token.boolean("single_word").value_or(false);
  out.lstrip = token.boolean("lstrip").value_or(false);
  out.rstrip = token.boolean("rstrip").value_or(false);
  out.normalized = token.boolean("normalized").value_or(!out.special);
  return out;
}

std::vector<added_token> read_added_tokens(const json* part, const std::string& where) {
  std::vector<added_token> out;
  if (!part) return out;
  if (!part->is_array()) refuse("{}: should be a list", where);
  for (std::size_t i = 0; i < part->size(); ++i) {
    const auto place = fmt::format("{}[{}]", where, i);
    const auto* id = fields((*part)[i], place).find("id");
    if (!id) refuse("{}: has no \"id\"", place);
    out.push_back(read_added_token((*part)[i], checked_id(*id, place, "an added token"), place));
  }
  return out;
}

}  // namespace troupe::detail
