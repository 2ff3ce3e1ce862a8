#include <string_view>

#include "model/formats/gguf_facts.hpp"
#include "model/formats/gguf_reader.hpp"

namespace troupe {
namespace {

using detail::gguf_type;

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
  void list(gguf_type type, const std::vector<T>& values) {
    number(gguf_type::array);
    number(type);
    number<std::uint64_t>(values.size());
    for (const auto& each : values) value(each);
  }

  void typed(std::int64_t integer) { number(gguf_type::i64), value(integer); }
  void typed(double real) { number(gguf_type::f64), value(real); }
  void typed(bool truth) { number(gguf_type::boolean), value(truth); }
  void typed(const std::string& words) { number(gguf_type::text), value(words); }
  void typed(const std::vector<std::int64_t>& values) { list(gguf_type::i64, values); }
  void typed(const std::vector<double>& values) { list(gguf_type::f64, values); }
  void typed(const std::vector<bool>& values) { list(gguf_type::boolean, values); }
  void typed(const std::vector<std::string>& values) { list(gguf_type::text, values); }

  std::string out;
};

}  // namespace

std::string metadata_only_gguf(const gguf_file& source) {
  gguf_file bare;
  bare.metadata = source.metadata;
  detail::write_facts(detail::read_facts(source), bare);
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
