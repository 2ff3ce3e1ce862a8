// JSON schemas brought into a shape that a grammar can be made of: what refers, combines and chooses is resolved.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/grammar/byte_grammar.hpp"

namespace troupe::detail {

using schema_json = nlohmann::ordered_json;

/// Null where `object` has none of that name.
inline const schema_json* member(const schema_json& object, std::string_view key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// Whatever the order of an object's members.
inline bool is_same_value(const schema_json& a, const schema_json& b) {
  return a == b || (a.is_structured() && nlohmann::json(a) == nlohmann::json(b));
}

/// Leaves out keywords that are null, as some libraries write those that are not set. `const` may mean it.
void drop_nulls(schema_json& schema);

/// Whether a keyword's value is of a kind that it cannot have.
bool is_misshapen(std::string_view key, const schema_json& value);

/// Throws input_error where `schema` (called `where`) is no schema, or uses a keyword that constrains and is not
/// supported.
void check_schema_keywords(const schema_json& schema, const std::string& where);

/// Whether a keyword of `schema` would constrain and is not supported.
bool is_unsupported(std::string_view key, const schema_json& value, const schema_json& schema);

/// Whether a keyword says of itself what a value must be; not by combining schemas.
bool is_constraining(std::string_view key);

/// Only annotations beside `keyword`.
bool says_only(const schema_json& schema, std::string_view keyword);

/// A schema document, whose parts refer to each other.
class schema_document {
 public:
  /// `work`: what resolving took so far, here and elsewhere.
  schema_document(schema_json root, std::size_t& work) : root_(std::move(root)), work_(work) {}

  const schema_json& root() const { return root_; }
  const schema_json& find(const std::string& reference, const std::string& where) const;
  /// Schemas without $ref, allOf, anyOf and oneOf: a value satisfies `schema` exactly if it satisfies one of these.
  /// Empty if no value does.
  std::vector<schema_json> branches(const schema_json& schema, const std::string& where, int depth = 0) const;
  /// Throws input_error where a value could satisfy two of the schemas.
  void check_one_of(const schema_json& choices, const std::string& where) const;

 private:
  schema_json root_;
  std::size_t& work_;
};

/// The rule of a part of a document, as read_schema has it of a whole one.
grammar_builder::rule_id write_schema(grammar_builder& to, const schema_document& document, const schema_json& part);

}  // namespace troupe::detail
