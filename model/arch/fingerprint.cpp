#include "model/arch/fingerprint.hpp"

#include <algorithm>
#include <cstring>

#include "base/byte_digest.hpp"
#include "model/arch/packed_file.hpp"
#include "model/formats/arithmetic_of.hpp"
#include "model/formats/tensors/safetensors.hpp"

namespace troupe {
namespace {

using byte_span = std::span<const std::byte>;

/// All names, schemes and shapes.
byte_span header_of(byte_span file) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return file.first(sizeof length + length);
}

/// Samples, for files that have no digests or were changed after packing. More than samples would mean to read whole
/// tensors.
std::uint64_t add_samples(byte_span tensor, std::uint64_t hash) {
  const std::size_t size = std::min<std::size_t>(tensor.size(), 4096), left = tensor.size() - size;
  for (const std::size_t at : {std::size_t{0}, left / 2, left}) hash = byte_digest(tensor.subspan(at, size), hash);
  return hash;
}

}  // namespace

std::uint64_t fingerprint_of(const loaded_model& model) {
  tensor_set set;
  parse_safetensors(model.file.bytes(), model.file.name(), set);
  const std::string computed = arithmetic_of(model.config);
  std::uint64_t hash = byte_digest(std::as_bytes(std::span(computed)));
  hash = byte_digest(header_of(model.file.bytes()), hash);
  for (const auto& [name, tensor] : set.tensors)
    hash = name == packed_digests_key ? byte_digest(tensor.data, hash) : add_samples(tensor.data, hash);
  return hash ? hash : 1;
}

}  // namespace troupe
