#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/model/formats/fixtures.hpp"

namespace troupe::test {

/// Puts a GGUF file together field by field, so that it can also be wrong.
class gguf_builder {
 public:
  static std::string text(const std::string& value) { return raw<std::uint64_t>(value.size()) + value; }

  gguf_builder& key(const std::string& name, std::uint32_t type, const std::string& value) {
    keys_ += text(name) + raw(type) + value;
    ++key_count;
    return *this;
  }
  gguf_builder& u32(const std::string& name, std::uint32_t value) { return key(name, 4, raw(value)); }
  gguf_builder& f32(const std::string& name, float value) { return key(name, 6, raw(value)); }
  gguf_builder& string(const std::string& name, const std::string& value) { return key(name, 8, text(value)); }
  gguf_builder& strings(const std::string& name, const std::vector<std::string>& values) {
    auto list = raw<std::uint32_t>(8) + raw<std::uint64_t>(values.size());
    for (const auto& value : values) list += text(value);
    return key(name, 9, list);
  }
  gguf_builder& u32s(const std::string& name, const std::vector<std::uint32_t>& values) {
    auto list = raw<std::uint32_t>(4) + raw<std::uint64_t>(values.size());
    for (const auto value : values) list += raw(value);
    return key(name, 9, list);
  }
  gguf_builder& booleans(const std::string& name, const std::vector<bool>& values) {
    auto list = raw<std::uint32_t>(7) + raw<std::uint64_t>(values.size());
    for (const bool value : values) list += static_cast<char>(value);
    return key(name, 9, list);
  }

  /// `sizes` in the order of the file: the contiguous dimension first.
  gguf_builder& tensor_at(const std::string& name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                          std::uint64_t offset) {
    tensors_ += text(name) + raw(static_cast<std::uint32_t>(sizes.size()));
    for (const auto size : sizes) tensors_ += raw(size);
    tensors_ += raw(type) + raw(offset);
    ++tensor_count;
    return *this;
  }
  gguf_builder& tensor(const std::string& name, const std::vector<std::uint64_t>& sizes, std::uint32_t type,
                       const std::string& data) {
    tensor_at(name, sizes, type, data_.size());
    data_ += data;
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  /// An F32 tensor with the values first, first + 1, …
  gguf_builder& floats(const std::string& name, const std::vector<std::uint64_t>& sizes, float first = 0) {
    std::uint64_t count = 1;
    for (const auto size : sizes) count *= size;
    std::string data;
    for (std::uint64_t i = 0; i < count; ++i) data += raw(first + static_cast<float>(i));
    return tensor(name, sizes, 0, data);
  }

  std::string build() const {
    auto file = magic + raw(version) + raw(tensor_count) + raw(key_count) + keys_ + tensors_;
    file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data_;
  }

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t tensor_count = 0;
  std::uint64_t key_count = 0;
  std::size_t alignment = 32;

 private:
  std::string keys_, tensors_, data_;
};

}  // namespace troupe::test
