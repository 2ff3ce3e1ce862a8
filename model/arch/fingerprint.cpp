#include "model/arch/fingerprint.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {
namespace {

constexpr std::size_t head_bytes = 1 << 20, sample_bytes = 4096, samples = 64;

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 29;
}

std::uint64_t mix_bytes(std::uint64_t hash, std::span<const std::byte> bytes) {
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    hash = mix(hash, word);
  }
  return hash;
}

}  // namespace

std::uint64_t fingerprint_of(const loaded_model& model) {
  const auto bytes = model.file.bytes();
  std::uint64_t hash = mix_bytes(mix(0x7472, bytes.size()), bytes.first(std::min(bytes.size(), head_bytes)));
  const std::size_t step = bytes.size() / samples;
  for (std::size_t i = 0; i < samples && step > sample_bytes; ++i)
    hash = mix_bytes(hash, bytes.subspan(i * step / 8 * 8, sample_bytes));
  return hash ? hash : 1;
}

}  // namespace troupe
