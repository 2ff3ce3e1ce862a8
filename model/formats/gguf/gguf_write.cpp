#include <string_view>

#include "model/formats/gguf/gguf_facts.hpp"
#include "model/formats/gguf/gguf_reader.hpp"

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

  /// A value of any type, its type first.
  template <class T>
  void value(const T& held) {
    number(type_of(held));
    bare(held);
  }
  template <class T>
  void value(const std::vector<T>& list) {
    number(gguf_type::array);
    number(type_of(T()));
    number<std::uint64_t>(list.size());
    for (const auto& each : list) bare(each);
  }

  std::string out;

 private:
  static gguf_type type_of(std::int64_t) { return gguf_type::i64; }
  static gguf_type type_of(double) { return gguf_type::f64; }
  static gguf_type type_of(bool) { return gguf_type::boolean; }
  static gguf_type type_of(const std::string&) { return gguf_type::text; }
  void bare(std::int64_t integer) { number(integer); }
  void bare(double real) { number(real); }
  void bare(bool truth) { number<std::uint8_t>(truth ? 1 : 0); }
  void bare(const std::string& words) { text(words); }
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
    std::visit([&](const auto& held) { to.value(held); }, value);
  }
  return std::move(to.out);
}

}  // namespace troupe
