#pragma once
#include <string>

#include "model/tokenizer/text_tokenizer.hpp"

namespace troupe::detail {

/// Collects tokens in any order and makes sure that each has an id and a text of its own and that ids run from 0. The
/// model's own may leave some holes: such an id has an empty text.
class vocabulary_builder {
 public:
  explicit vocabulary_builder(std::string where) : where_(std::move(where)) {}

  void add(token_id id, const std::string& written, std::string bytes);
  /// It may be known already, by the same id.
  void add_added(const added_token& token, std::string bytes);
  /// One that stands for what is written.
  void add_added(const added_token& token) { add_added(token, token.content); }
  vocabulary take();

 private:
  void put(token_id id, const std::string& written, std::string bytes);
  std::size_t end_of_ids() const;

  struct entry {
    token_id id;
    std::string written;
    std::string bytes;
    bool special;
  };

  std::string where_;
  std::vector<entry> entries_;
  token_id own_end_ = 0;          ///< behind the ids of tokens that are not added
  text_map<std::size_t> places_;  ///< written form → index into entries_
};

}  // namespace troupe::detail
