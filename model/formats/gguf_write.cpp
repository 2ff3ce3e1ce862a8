#include <string_view>

#include "model/formats/gguf.hpp"
#include "model/formats/gguf_facts.hpp"

namespace troupe {
namespace {

// The format's numbers of the value types that are written here.
constexpr std::uint32_t boolean_type = 7, text_type = 8, array_type = 9, integer_type = 11, float_type = 12;

/// Appends little-endian values.
class gguf_writer {
 public:
  template <class T>
  void number(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number<std::uint64_t>(value.size());
    out.append(value);
  }

  void value(std::int64_t integer) { number(integer); }
  void value(double real) { number(real); }
  void value(bool truth) { number<std::uint8_t>(truth ? 1 : 0); }
  void value(const std::string& words) { text(words); }

  template <class T>
  void list(std::uint32_t type, const std::vector<T>& values) {
    number(array_type);
    number(type);
    number<std::uint64_t>(values.size());
    for (const auto& each : values) value(each);
  }

  void typed(std::int64_t integer) { number(integer_type), value(integer); }
  void typed(double real) { number(float_type), value(real); }
  void typed(bool truth) { number(boolean_type), value(truth); }
  void typed(const std::string& words) { number(text_type), value(words); }
  void typed(const std::vector<std::int64_t>& values) { list(integer_type, values); }
  void typed(const std::vector<double>& values) { list(float_type, values); }
  void typed(const std::vector<bool>& values) { list(boolean_type, values); }
  void typed(const std::vector<std::string>& values) { list(text_type, values); }

  std::string out;
};

}  // namespace

std::string metadata_only_gguf(const gguf_file& source) {
  gguf_file bare;
  bare.metadata = source.metadata;
  detail::write_facts(detail::read_facts(source, "GGUF metadata"), bare);
  gguf_writer to;
  to.out = "GGUF";
  to.number<std::uint32_t>(3);
  to.number<std::uint64_t>(0);
  to.number<std::uint64_t>(bare.metadata.size());
  for (const auto& [key, value] : bare.metadata) {
    to.text(key);
    std::visit([&](const auto& held) { to.typed(held); }, value);
  }
  return std::move(to.out);
}

}  // namespace troupe
