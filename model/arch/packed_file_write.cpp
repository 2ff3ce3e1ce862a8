#include "base/rounding.hpp"
#include "base/to_size.hpp"
#include "model/arch/packed_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.hpp"
#include "model/arch/byte_digest.hpp"
#include "model/arch/stored_scheme.hpp"
#include "model/arch/weight_list.hpp"
#include "model/formats/safetensors.hpp"
#include "model/ops/pack.hpp"

namespace troupe {
namespace {

struct planned_matrix {
  scheme kind;
  std::int64_t outs, ins;
};

const weight_source& source_of(const model_files& files, const std::string& name) {
  const auto found = files.weights.find(name);
  if (found == files.weights.end()) refuse("{}: weight {} is missing", files.path.string(), name);
  return found->second;
}

/// Compared in pieces that are let go again: neither has to be in memory as a whole.
bool are_same(std::span<const std::byte> a, std::span<const std::byte> b) {
  constexpr std::size_t most = std::size_t{16} << 20;
  if (a.size() != b.size()) return false;
  for (std::size_t at = 0; at < a.size(); at += most) {
    const auto piece = a.subspan(at, std::min(most, a.size() - at)), other = b.subspan(at, piece.size());
    if (std::memcmp(piece.data(), other.data(), piece.size()) != 0) return false;
    for (const auto& read : {piece, other}) mapped_file::release(read);
  }
  return true;
}

/// A head of its own would be lost where the configuration makes the embeddings the head.
void refuse_lost_head(const model_files& source) {
  const tensor_view* head = source.tensors.find("lm_head.weight");
  if (!source.config.tied_embeddings || !head) return;
  const auto embeddings = source_of(source, "model.embed_tokens.weight").tensor.data;
  if (!are_same(head->data, embeddings))
    refuse(
        "{}: lm_head.weight differs from the embeddings, which \"tie_word_embeddings\" makes the head: set that to "
        "false in config.json to use it, or remove the tensor",
        source.path.string());
}

/// A file that is being filled through a shared mapping; pages that are done need not stay resident.
class output_mapping {
 public:
  output_mapping(const packed_target& to, std::size_t size) : size_(size) {
    constexpr std::size_t mib = 1 << 20;
    if (::ftruncate(to.descriptor, static_cast<off_t>(size)) != 0 ||
        ::posix_fallocate(to.descriptor, 0, static_cast<off_t>(size)) != 0)
      throw std::runtime_error(
          fmt::format("{}: no room for {} MiB of packed weights: {}", to.place, ceil_div(size, mib), to.remedy));
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, to.descriptor, 0);
    if (data == MAP_FAILED)
      throw std::runtime_error(fmt::format("{}: cannot be mapped ({})", to.place, std::strerror(errno)));
    data_ = static_cast<std::byte*>(data);
  }
  ~output_mapping() { ::munmap(data_, size_); }
  output_mapping(const output_mapping&) = delete;
  output_mapping& operator=(const output_mapping&) = delete;

  std::byte* data() const { return data_; }
  void release() const { ::madvise(data_, size_, MADV_DONTNEED); }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_;
};

/// A weight that is no number makes all answers nonsense. Codes' factors, besides, may be stored in f16.
void check_weights(std::span<const float> rows, scheme kind, const weight_source& source, const model_files& files) {
  const float most = is_integer(kind) ? 65504.0f : std::numeric_limits<float>::max();
  const auto fits = [most](float weight) { return std::fabs(weight) <= most; };
  const auto bad = std::find_if_not(rows.begin(), rows.end(), fits);
  if (bad != rows.end())
    refuse("{}: tensor \"{}\" holds {}, where weights are numbers within {}: the file may be damaged",
           files.file_tensors().file_of(source.tensor), source.origin, *bad, most);
}

/// Packs 16 rows at a time, each block by one thread.
void pack_matrix(const model_files& files, const weight_source& source, const planned_matrix& plan, thread_pool& pool,
                 std::byte* to) {
  matrix_packer packer(plan.kind, plan.outs, plan.ins, to);
  const bool as_is = keeps_bits(source, plan.kind);
  pool.run(static_cast<int>(padded_outs(plan.outs) / outs_per_block), [&](int block, int) {
    const std::int64_t first = block * outs_per_block, count = std::min(outs_per_block, plan.outs - first);
    std::vector<float> rows(to_size(count * plan.ins));
    coded_row coded;
    if (!as_is) source.read_rows(first, count, rows.data());
    if (!as_is) check_weights(rows, plan.kind, source, files);
    for (std::int64_t i = 0; i < count; ++i) {
      const float* row = rows.data() + i * plan.ins;
      if (!is_integer(plan.kind)) {
        packer.put(first + i, row);
        continue;
      }
      if (as_is && source.codes)
        copy_codes(*source.codes, source.file_row(first + i), coded);
      else if (as_is)
        copy_gguf_row(source.tensor.type, source.raw_row(first + i), plan.ins, coded);
      else
        encode_row(plan.kind, row, plan.ins, coded);
      packer.put(first + i, coded);
    }
  });
}

/// What goes into the file, in order; the tensors' digests are last.
struct file_plan {
  std::vector<tensor_description> tensors;
  std::map<std::string, planned_matrix> matrices;
  std::map<std::string, std::string> metadata;
};

file_plan plan_file(const model_files& source, const load_options& chosen) {
  const load_options options = with_tied_head(chosen, source.config);
  check_keep(source, options);
  file_plan plan;
  plan.metadata[std::string(packed_layout_key)] = packed_layout;
  plan.metadata[std::string(packed_quantization_key)] = options.quant ? name_of(*options.quant) : "native";
  visit_weights(source.config,
                {[&](const std::string& name, std::int64_t outs, std::int64_t ins) {
                   const planned_matrix matrix{stored_scheme(options, name, source_of(source, name)), outs, ins};
                   const auto bytes = static_cast<std::int64_t>(packed_bytes(matrix.kind, outs, ins).total());
                   plan.tensors.push_back({name, dtype::u8, {bytes}});
                   plan.metadata[name] = detail::packed_matrix_text(matrix.kind, outs, ins);
                   plan.matrices.emplace(name, matrix);
                 },
                 [&](const std::string& name, std::int64_t rows, std::int64_t size) {
                   plan.tensors.push_back({name, dtype::f32, {rows, padded_row(size)}});
                 }});
  const auto digests = static_cast<std::int64_t>(plan.tensors.size() * sizeof(std::uint64_t));
  plan.tensors.push_back({std::string(packed_digests_key), dtype::u8, {digests}});
  return plan;
}

void copy_vectors(const weight_source& source, std::int64_t rows, std::int64_t stride, std::byte* to) {
  for (std::int64_t row = 0; row < rows; ++row) source.read_rows(row, 1, reinterpret_cast<float*>(to) + row * stride);
}

}  // namespace

std::string packed_header(const model_files& source, const load_options& options) {
  const file_plan plan = plan_file(source, options);
  return safetensors_header(plan.tensors, plan.metadata);
}

void write_packed(const model_files& source, const load_options& options, thread_pool& pool, const packed_target& to) {
  refuse_lost_head(source);
  const file_plan plan = plan_file(source, options);
  const std::string header = safetensors_header(plan.tensors, plan.metadata);
  std::int64_t size = static_cast<std::int64_t>(header.size());
  for (const auto& tensor : plan.tensors)
    size += static_cast<std::int64_t>(byte_size(tensor.type, tensor.shape, tensor.name));
  const output_mapping output(to, to_size(size));
  std::memcpy(output.data(), header.data(), header.size());
  std::int64_t at = static_cast<std::int64_t>(header.size());
  std::vector<std::uint64_t> digests;
  for (const auto& tensor : std::span(plan.tensors).first(plan.tensors.size() - 1)) {
    const weight_source& from = source_of(source, tensor.name);
    if (const auto matrix = plan.matrices.find(tensor.name); matrix != plan.matrices.end())
      pack_matrix(source, from, matrix->second, pool, output.data() + at);
    else
      copy_vectors(from, tensor.shape[0], tensor.shape[1], output.data() + at);
    const std::size_t bytes = byte_size(tensor.type, tensor.shape, tensor.name);
    digests.push_back(byte_digest({output.data() + at, bytes}));
    at += static_cast<std::int64_t>(bytes);
    output.release();
    mapped_file::release(from.tensor.data);
    if (options.progress) options.progress(at, size);
  }
  std::memcpy(output.data() + at, digests.data(), digests.size() * sizeof(std::uint64_t));
}

}  // namespace troupe
