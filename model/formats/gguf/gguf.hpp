#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/formats/tensors/tensor.hpp"

namespace troupe {

/// A metadata value; every integer width is widened to int64, every float to double.
using gguf_value = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, std::vector<double>,
                                std::vector<bool>, std::vector<std::string>>;

/// A GGUF file (version 2 or 3, little-endian): metadata, and tensors under the names the file gives them. Shapes are
/// turned round to row-major order (GGUF lists the contiguous dimension first).
struct gguf_file {
  std::map<std::string, gguf_value, std::less<>> metadata;
  tensor_set tensors;
  std::string name = "GGUF metadata";  ///< of the file, for messages

  /// The value under `key`, nullptr where it is not there; throws input_error when it has another type than T.
  template <class T>
  const T* find(std::string_view key) const;
  template <class T>
  std::optional<T> get(std::string_view key) const {
    const T* found = find<T>(key);
    return found ? std::optional<T>(*found) : std::nullopt;
  }
};

/// In a folder that was quantized from a GGUF file, its metadata.
inline constexpr std::string_view gguf_metadata_name = "metadata.gguf";

/// By its ending, or by its first bytes: Ollama's have no ending. Never a folder.
bool is_gguf_file(const std::filesystem::path& path);
/// By its name: neither the part of a model that sees pictures, nor figures that a quantizer goes by.
bool is_named_as_weights(const std::filesystem::path& file);

/// Of a model in several pieces `path` is the first, and all are in the result.
gguf_file open_gguf(const std::filesystem::path& path);
/// The GGUF file that speaks for a model: itself, or the metadata in a folder that was quantized from one.
std::optional<gguf_file> find_gguf_metadata(const std::filesystem::path& model);
void parse_gguf(std::span<const std::byte> bytes, const std::string& where, gguf_file& into);

/// The metadata of `source` as a GGUF file of its own without tensors: config and vocabulary of a quantized folder.
/// What config_from_gguf otherwise learns from the tensors is added under "troupe." keys.
std::string metadata_only_gguf(const gguf_file& source);

}  // namespace troupe
