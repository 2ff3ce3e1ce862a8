#include "tests/model/grammar/random_schema.hpp"

#include "base/to_size.hpp"

namespace troupe::test {
namespace {

using json = nlohmann::ordered_json;

class schema_maker {
 public:
  explicit schema_maker(std::mt19937& random) : random_(random) {}

  json make(int depth) {
    switch (below(depth > 0 ? 13 : 8)) {
      case 0:
        return string();
      case 1:
        return number("integer");
      case 2:
        return number("number");
      case 3:
        return {{"type", "boolean"}};
      case 4:
        return values();
      case 5:
        return {{"type", json::array({"null", below(2) ? "string" : "integer"})}};
      case 6:
        return below(3) ? json{{"$ref", "#/$defs/node"}} : json{{"type", "null"}};
      case 7:
        return below(4) ? string() : json(true);
      case 8:
      case 9:
        return array(depth);
      case 10:
        return combined(depth);
      default:
        return object(depth);
    }
  }

  json node() {
    json schema = {
        {"type", "object"},
        {"properties",
         {{"value", number("integer")}, {"next", {{"anyOf", {{{"$ref", "#/$defs/node"}}, {{"type", "null"}}}}}}}},
        {"additionalProperties", false}};
    if (below(2)) schema["required"] = {"value", "next"};
    return schema;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  json string() {
    json schema = {{"type", "string"}};
    const int kind = below(6);
    if (kind == 0) schema["minLength"] = below(4);
    if (kind <= 1) schema["maxLength"] = 3 + below(5);
    if (kind == 2) schema["pattern"] = patterns[to_size(below(6))];
    return schema;
  }
  json number(const char* type) {
    json schema = {{"type", type}};
    const bool whole = type == std::string("integer") || below(2);
    const auto bound = [&](int low, int high) -> json {
      const int value = low + below(high - low);
      return whole ? json(value) : json(value + below(1000) / 1000.0);
    };
    if (below(2)) schema[below(4) ? "minimum" : "exclusiveMinimum"] = bound(-120, 100);
    if (below(2)) schema[below(4) ? "maximum" : "exclusiveMaximum"] = bound(102, 12000);
    return schema;
  }
  json values() {
    static const json all = {"red", "green", "gr\"een", 1, 2.5, nullptr, true, "", {{"a", 1}}, {1, 2}, "漢"};
    json list = json::array();
    for (int i = 0; i < 1 + below(4); ++i) list.push_back(all[to_size(below(11))]);
    return below(3) ? json{{"enum", list}} : json{{"const", list[0]}};
  }
  json array(int depth) {
    json schema = {{"type", "array"}};
    if (below(4)) schema["items"] = make(depth - 1);
    if (below(4) == 0) schema["prefixItems"] = {make(depth - 1), make(0)};
    if (below(3) == 0) schema["minItems"] = below(4);
    if (below(2)) schema["maxItems"] = 3 + below(3);
    return schema;
  }
  json object(int depth) {
    static const char* names[] = {"id", "name", "kind", "value", "items", "a\"b", "naïve", "n"};
    json schema = {{"type", "object"}, {"properties", json::object()}};
    for (int i = 0; i < below(5); ++i) {
      const char* name = names[below(8)];
      schema["properties"][name] = make(depth - 1);
      if (below(2)) schema["required"].push_back(name);
    }
    if (below(3) == 0) schema["additionalProperties"] = below(2) ? json(false) : make(0);
    return schema;
  }
  json combined(int depth) {
    const auto tagged = [&](const char* kind) {
      json schema = object(depth);
      schema["properties"]["kind"] = {{"const", kind}};
      schema["required"].push_back("kind");
      return schema;
    };
    switch (below(4)) {
      case 0:
        return {{"anyOf", {make(depth - 1), make(depth - 1)}}};
      case 1:
        return {{"oneOf", {tagged("red"), tagged("blue")}}};
      case 2:
        return {{"allOf", {array(depth), array(depth - 1)}}};
      default:
        return {{"allOf", {object(depth), object(depth - 1)}}};
    }
  }

  static constexpr const char* patterns[] = {"^[a-z]{2,5}$", "^(red|blue)[0-9]+", "ab?c", "^\\d{3}-\\d{2}$",
                                             "x|y$",         "^[^a-z]*$"};
  std::mt19937& random_;
};

}  // namespace

json random_schema(std::mt19937& random) {
  schema_maker maker(random);
  json schema = maker.make(3);
  if (!schema.is_object()) schema = json::object();
  schema["$defs"] = {{"node", maker.node()}};
  return schema;
}

}  // namespace troupe::test
