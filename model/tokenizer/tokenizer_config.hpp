#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/tokenizer/added_tokens.hpp"
#include "model/tokenizer/text_tokenizer.hpp"

namespace troupe::detail {

/// Of BOS or EOS.
struct end_rule {
  std::optional<std::string> name;
  std::string_view usual;  ///< of the class, where the file does not name one; perhaps no token of the vocabulary
  std::optional<bool> add;
};

/// What tokenizer_config.json says about BOS, EOS, added tokens and spaces.
struct tokenizer_config {
  bool present = false;
  std::string kind;  ///< tokenizer_class: "GPT2Tokenizer"
  end_rule bos, eos;
  std::optional<bool> legacy;            ///< false: no space is put behind a special token
  std::optional<bool> add_prefix_space;  ///< false: none is put before the text either
  std::vector<added_token> added;        ///< added_tokens_decoder
  std::vector<added_token> special;      ///< listed as special, without their ids
  std::vector<added_token> further;      ///< of added_tokens.json: count where no other file lists them
  std::string where;
};

/// The text of a folder's tokenizer_config.json; empty where there is none. Of a folder that was saved before that file
/// listed added tokens, what special_tokens_map.json says of special tokens goes before what it says itself, and
/// added_tokens.json is a part of it.
std::string tokenizer_config_text(const std::filesystem::path& folder);
/// `text` may be empty: then there is no such file. `beside`: the tokenizer's own file.
tokenizer_config read_tokenizer_config(std::string_view text, const std::string& beside);
/// Whether a space goes before the text, of a tokenizer.json whose words are cut by ByteLevel alone; none: as it says
/// itself.
std::optional<bool> prefix_space_of(const tokenizer_config& config);
/// Of a tokenizer.json: add_bos_token and add_eos_token count for Llama's classes, and where no class is named. Others
/// leave both to the file's post_processor.
void leave_ends_to_file(tokenizer_config& config);
/// Settles `parts.bos`, `.eos`, `.before` and `.after`, which so far hold what the tokenizer's own file says.
void apply_config(const tokenizer_config& config, tokenizer_parts& parts);

}  // namespace troupe::detail
