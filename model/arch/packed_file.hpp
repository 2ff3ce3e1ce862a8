#pragma once
#include <string>
#include <string_view>

#include "base/thread_pool.hpp"
#include "model/arch/loaded_model.hpp"
#include "model/formats/model_files.hpp"

namespace troupe {

/// The packed form of a model is a safetensors file whose matrices lie as the kernels read them (model/ops/matrix.hpp).
/// Each matrix is a U8 tensor of its packed bytes, described in __metadata__ under its name ("u8 2304x768"); each
/// vector an F32 tensor, padded with zeros. All tensors start at multiples of 64 bytes, so the mapped file is used as
/// it is. The last tensor has a u64 for each of the others, in their order: the digest of its bytes. (Files of early
/// builds lack it, and are read.) `troupe.layout` in __metadata__ names this arrangement; a file with another number is
/// refused, never misread.
constexpr std::string_view packed_layout = "1";
constexpr std::string_view packed_digests_key = "troupe.digests";

/// The head of the packed file that write_packed would write: differs where the layout, or any weight's scheme or size
/// does. Refuses `keep` where it names nothing.
std::string packed_header(const model_files& source, const load_options& options);

/// An open, empty file, where it lies, and what gives it room there.
struct packed_target {
  int descriptor;
  std::string place;
  std::string_view remedy;
};

/// Writes the packed form of `source`. Throws runtime_error where there is no room for it.
void write_packed(const model_files& source, const load_options& options, thread_pool& pool, const packed_target& to);

/// The views of a packed file that was mapped; refuses it where a tensor is missing or of another size than `config`
/// asks.
loaded_model read_packed(mapped_file file, const model_config& config);

namespace detail {
/// How __metadata__ describes a matrix.
std::string packed_matrix_text(scheme kind, std::int64_t outs, std::int64_t ins);
}  // namespace detail

}  // namespace troupe
