#include "model/chat/chat_template.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/utf8.hpp"
#include "model/chat/evaluator.hpp"
#include "model/chat/parser.hpp"

namespace troupe {
namespace {

using namespace detail::jinja;
using json = nlohmann::ordered_json;

// Every level is paid for again where its value is made; this bounds the recursion before that.
constexpr std::size_t deepest_variable = 150;

value from_json(const json& source, std::size_t depth);

value list_from(const json& source, std::size_t depth) {
  std::vector<value> items;
  items.reserve(source.size());
  for (const json& item : source) items.push_back(from_json(item, depth));
  return make_sequence(sequence_kind::list, std::move(items));
}

value dict_from(const json& source, std::size_t depth) {
  std::vector<std::pair<value, value>> entries;
  entries.reserve(source.size());
  for (const auto& [key, item] : source.items()) entries.emplace_back(make_text(key), from_json(item, depth));
  return make_mapping(std::move(entries));
}

value from_json(const json& source, std::size_t depth) {
  if (depth > deepest_variable) refuse("a template's variables are nested more than {} levels deep", deepest_variable);
  switch (source.type()) {
    case json::value_t::boolean:
      return make_bool(source.get<bool>());
    case json::value_t::number_integer:
      return make_integer(source.get<std::int64_t>());
    case json::value_t::number_unsigned:
      return make_integer(source.get<std::uint64_t>());
    case json::value_t::number_float:
      return {source.get<double>()};
    case json::value_t::string:
      return make_text(source.get<std::string>());
    case json::value_t::array:
      return list_from(source, depth + 1);
    case json::value_t::object:
      return dict_from(source, depth + 1);
    default:
      return {none{}};
  }
}

}  // namespace

struct chat_template::impl {
  std::string where;
  block body;
};

chat_template::chat_template(std::string_view source, const std::string& where) : impl_(new impl{where, {}}) {
  if (!is_utf8(source)) refuse("{}: the chat template is not UTF-8", where);
  impl_->body = parser(tokenize(source, where), where).parse_template();
}

chat_template::~chat_template() = default;
chat_template::chat_template(chat_template&&) noexcept = default;
chat_template& chat_template::operator=(chat_template&&) noexcept = default;

std::string chat_template::render(const nlohmann::ordered_json& variables, const render_options& options) const {
  if (!variables.is_object()) refuse("{}: a template's variables are an object", impl_->where);
  std::vector<std::pair<std::string_view, value>> names;
  for (const auto& [name, item] : variables.get_ref<const json::object_t&>())
    names.emplace_back(name, from_json(item, 0));
  return evaluator(impl_->where, options).render(impl_->body, std::move(names));
}

}  // namespace troupe
