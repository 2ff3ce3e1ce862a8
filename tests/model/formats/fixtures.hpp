#pragma once
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "model/formats/tensors/safetensors.hpp"
#include "tests/base/refusal.hpp"
#include "tests/base/temp_folder.hpp"

namespace troupe::test {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// Float tensors with distinct values, written as a safetensors file.
class weight_writer {
 public:
  void add(const std::string& name, std::vector<std::int64_t> shape, dtype type = dtype::f32) {
    std::string data(byte_size(type, shape, name), '\0');
    if (type == dtype::f32)
      for (std::size_t i = 0; i < data.size() / 4; ++i) {
        const float value = static_cast<float>(next_++) * 0.25f;
        std::memcpy(data.data() + 4 * i, &value, 4);
      }
    order_.push_back({name, type, std::move(shape)});
    data_.push_back(std::move(data));
  }
  void erase(const std::string& name) {
    for (std::size_t i = 0; i < order_.size(); ++i)
      if (order_[i].name == name) {
        order_.erase(order_.begin() + static_cast<std::ptrdiff_t>(i));
        data_.erase(data_.begin() + static_cast<std::ptrdiff_t>(i));
        return;
      }
  }
  void write(const std::filesystem::path& path, const std::map<std::string, std::string>& metadata = {}) const {
    std::vector<std::span<const std::byte>> parts;
    for (const auto& each : data_) parts.push_back(bytes_of(each));
    write_safetensors(path, order_, parts, metadata);
  }

 private:
  std::vector<tensor_description> order_;
  std::vector<std::string> data_;
  int next_ = 1;
};

}  // namespace troupe::test
