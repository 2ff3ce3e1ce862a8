#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/formats/json_input.hpp"
#include "model/tokenizer/byte_alphabet.hpp"
#include "model/tokenizer/json_parts.hpp"

namespace troupe::detail {
namespace {

using json = nlohmann::json;
using fields = json_fields<json>;

constexpr std::size_t most_replacements = 64;
constexpr std::size_t longest_replacement = 64;
constexpr std::size_t most_around = 64;

std::string replaced_text(const fields& part) {
  const auto* pattern = part.find("pattern");
  const auto text = pattern ? fields(*pattern, part.where() + ".pattern").text("String") : std::nullopt;
  if (!text || text->empty()) refuse("{}: needs a \"pattern\" with a \"String\" that is not empty", part.where());
  return *text;
}

void add_replacement(std::string from, std::string to, const std::string& where, decoder_part& out) {
  if (to.size() > longest_replacement) refuse("{}: \"content\" has more than {} bytes", where, longest_replacement);
  if (out.replacements.size() == most_replacements)
    refuse("{}: there are more than {} replacements", where, most_replacements);
  out.replacements.emplace_back(std::move(from), std::move(to));
}

void add_strip(const fields& part, decoder_part& out) {
  const auto start = part.integer("start").value_or(0);
  const auto content = part.text("content").value_or("");
  if (content != " " || start < 0 || start > 1 || part.integer("stop").value_or(0) != 0)
    refuse("{}: only a Strip of one space at the start is supported", part.where());
  out.strips_leading_space = start == 1;
}

void add_metaspace(const fields& part, decoder_part& out) {
  const auto mark = part.text("replacement").value_or("");
  if (mark.empty()) refuse("{}: has no \"replacement\"", part.where());
  add_replacement(mark, " ", part.where(), out);
  out.strips_leading_space =
      part.text("prepend_scheme").value_or("always") != "never" && part.boolean("add_prefix_space").value_or(true);
}

void add_decoder(const json& value, const std::string& where, decoder_part& out) {
  const fields part(value, where);
  const auto type = part.text("type").value_or("");
  if (type == "Sequence")
    return part.for_each_in("decoders",
                            [&](const json& each, const std::string& place) { add_decoder(each, place, out); });
  if (out.strips_leading_space) refuse("{}: a decoder behind the one that strips is not supported", where);
  if (type == "ByteLevel")
    out.byte_level = true;
  else if (type == "ByteFallback")
    out.byte_fallback = true;
  else if (type == "Replace")
    add_replacement(replaced_text(part), part.text("content").value_or(""), where, out);
  else if (type == "Strip")
    add_strip(part, out);
  else if (type == "Metaspace")
    add_metaspace(part, out);
  else if (type != "Fuse")
    refuse(
        "{}: the decoder \"{}\" is not supported (ByteLevel, ByteFallback, Replace, Fuse, Strip, Metaspace and "
        "Sequence are)",
        where, type);
}

/// The ids of one of the template's special tokens.
std::vector<token_id> special_ids(const fields& post, const std::string& name) {
  const auto* table = post.find("special_tokens");
  if (!table) refuse("{}: has no \"special_tokens\"", post.where());
  const auto* entry = fields(*table, post.where() + ".special_tokens").find(name);
  if (!entry) refuse("{}: names the token \"{}\", which its special_tokens lack", post.where(), name);
  const fields token(*entry, post.where() + ".special_tokens[\"" + name + "\"]");
  std::vector<token_id> ids;
  for (const auto& id : token.list("ids")) ids.push_back(checked_id(id, token.where() + ".ids", name));
  return ids;
}

void add_template(const fields& post, template_part& out) {
  out.present = true;
  bool seen_text = false;
  for (const auto& piece : post.list("single")) {
    const fields element(piece, post.where() + ".single");
    if (const auto* token = element.find("SpecialToken")) {
      const auto name = fields(*token, element.where()).text("id").value_or("");
      const auto ids = special_ids(post, name);
      auto& list = seen_text ? out.after : out.before;
      list.insert(list.end(), ids.begin(), ids.end());
      if (list.size() > most_around)
        refuse("{}.single: puts more than {} tokens around a text", post.where(), most_around);
    } else if (element.has("Sequence") && !seen_text) {
      seen_text = true;
    } else {
      refuse("{}: should be special tokens around one Sequence", element.where());
    }
  }
  if (!seen_text) refuse("{}.single: has no Sequence", post.where());
}

void add_post_processor(const json& value, const std::string& where, template_part& out) {
  const fields part(value, where);
  const auto type = part.text("type").value_or("");
  if (type == "ByteLevel") return;  // it moves offsets alone
  if (type == "TemplateProcessing") {
    // The reference takes what the first one made for a pair of texts and puts the second one's tokens between them.
    if (out.present) refuse("{}: a second template is not supported", where);
    return add_template(part, out);
  }
  if (type != "Sequence")
    refuse("{}: the post-processor \"{}\" is not supported (TemplateProcessing, ByteLevel and Sequence are)", where,
           type);
  part.for_each_in("processors",
                   [&](const json& each, const std::string& place) { add_post_processor(each, place, out); });
}

}  // namespace

std::string decoder_part::bytes_of(const std::string& token) const {
  if (byte_level) return bytes_of_spelling(token).value_or(token);
  if (byte_fallback)
    if (const auto byte = fallback_byte(token)) return {static_cast<char>(*byte)};
  auto text = token;
  for (const auto& [from, to] : replacements) {
    text = replace_all(text, from, to);
    if (text.size() > most_grown(token.size()))
      refuse("tokenizer: its decoder makes the token \"{}\" grow without measure", token.substr(0, 100));
  }
  return text;
}

decoder_part read_decoder(const json* part, bool byte_level, const std::string& where) {
  decoder_part out;
  if (part)
    add_decoder(*part, where, out);
  else
    out.byte_level = byte_level;
  return out;
}

template_part read_post_processor(const json* part, const std::string& where) {
  template_part out;
  if (part) add_post_processor(*part, where, out);
  return out;
}

}  // namespace troupe::detail
