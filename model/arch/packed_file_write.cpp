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

#include "base/byte_digest.hpp"
#include "base/error.hpp"
#include "model/arch/stored_scheme.hpp"
#include "model/arch/weight_list.hpp"
#include "model/formats/tensors/safetensors.hpp"
#include "model/ops/coded_row.hpp"
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
  if (!source.config.tied_embeddings) return;
  const std::string name = head_name(source);
  const tensor_view* head = source.tensors.find(name);
  if (!head) return;
  const auto embeddings = source_of(source, "model.embed_tokens.weight").tensor.data;
  if (!are_same(head->data, embeddings))
    refuse(
        "{}: {} differs from the embeddings, which \"tie_word_embeddings\" makes the head: set that to false in "
        "config.json to use it, or remove the tensor",
        source.path.string(), name);
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

constexpr float most_weight = std::numeric_limits<float>::max();
constexpr float most_half = 65504.0f;

/// A weight that is no number makes all answers nonsense.
void check_numbers(std::span<const float> numbers, float most, const weight_source& source, const model_files& files) {
  const auto fits = [most](float number) { return std::fabs(number) <= most; };
  const auto bad = std::find_if_not(numbers.begin(), numbers.end(), fits);
  if (bad != numbers.end())
    refuse("{}: tensor \"{}\" holds {}, where weights are numbers within {}: the file may be damaged",
           files.file_tensors().file_of(source.tensor), source.origin, *bad, most);
}

/// What codes are multiplied by and added to, as the file has it. A code steps less than 256 times.
void check_factors(const coded_row& coded, scheme kind, const weight_source& source, const model_files& files) {
  const float most = factor_bytes(kind) == sizeof(std::uint16_t) ? most_half : most_weight / 256;
  for (const auto& factors : {std::span(coded.scales), std::span(coded.mids)})
    check_numbers(factors, most, source, files);
}

/// A row whose codes the scheme has as the file does.
void copy_row(const weight_source& source, std::int64_t row, coded_row& to) {
  if (source.codes)
    copy_codes(*source.codes, source.rows.file_row(row), to);
  else
    copy_gguf_row(source.tensor.type, source.raw_row(row), source.ins, to);
}

/// Packs 16 rows at a time, each block by one thread.
void pack_matrix(const model_files& files, const weight_source& source, const planned_matrix& plan, thread_pool& pool,
                 std::byte* to) {
  matrix_packer packer(plan.kind, plan.outs, plan.ins, to);
  const auto copy_rows = [&](std::int64_t first, std::int64_t end) {
    coded_row coded;
    for (std::int64_t row = first; row < end; ++row) {
      copy_row(source, row, coded);
      check_factors(coded, plan.kind, source, files);
      packer.put(row, coded);
    }
  };
  const auto encode_rows = [&](std::int64_t first, std::int64_t end) {
    std::vector<float> rows(to_size((end - first) * plan.ins));
    source.read_rows(first, end - first, rows.data());
    check_numbers(rows, is_integer(plan.kind) ? most_half : most_weight, source, files);  // factors may be f16
    coded_row coded;
    for (std::int64_t row = first; row < end; ++row) {
      const float* weights = rows.data() + (row - first) * plan.ins;
      if (!is_integer(plan.kind)) {
        packer.put(row, weights);
        continue;
      }
      encode_row(plan.kind, weights, plan.ins, coded);
      packer.put(row, coded);
    }
  };
  const bool as_is = keeps_bits(source, plan.kind);
  pool.run(static_cast<int>(padded_outs(plan.outs) / outs_per_block), [&](int block, int) {
    const std::int64_t first = block * outs_per_block, end = std::min(first + outs_per_block, plan.outs);
    if (as_is)
      copy_rows(first, end);
    else
      encode_rows(first, end);
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

void copy_vectors(const model_files& files, const weight_source& source, std::int64_t rows, std::int64_t stride,
                  std::byte* to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    float* numbers = reinterpret_cast<float*>(to) + row * stride;
    source.read_rows(row, 1, numbers);
    check_numbers({numbers, to_size(source.ins)}, most_weight, source, files);
  }
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
      copy_vectors(source, from, tensor.shape[0], tensor.shape[1], output.data() + at);
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
