#include "model/arch/loaded_model.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>

#include <sys/mman.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "base/field_error.hpp"
#include "base/file_descriptor.hpp"
#include "base/fnv_hash.hpp"
#include "base/paths.hpp"
#include "base/unfinished_file.hpp"
#include "model/arch/packed_file.hpp"
#include "model/formats/model_files.hpp"
#include "model/formats/row_order.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;

/// Files of an image or an archive may have the same time and size as others had: fine-tunes of one model.
void add_samples(std::span<const std::byte> bytes, fnv_hash& print) {
  constexpr std::size_t samples = 64, length = 64;
  if (bytes.size() < length)
    return print.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  for (std::size_t i = 0; i < samples; ++i) {
    const auto part = bytes.subspan((bytes.size() - length) / (samples - 1) * i, length);
    print.add(std::string_view(reinterpret_cast<const char*>(part.data()), part.size()));
  }
}

/// What config.json says of how weights are read, and the packed file's head does not show: what codes mean, and in
/// which order rows of queries and keys are, and those of linear attention.
void add_reading(const model_config& config, fnv_hash& print) {
  if (const code_settings& codes = config.codes; codes.format != code_format::none)
    print.add(fmt::format("{} {} {}x{}", name_of(codes.format), codes.is_symmetric, codes.block_outs, codes.block_ins));
  const row_order queries = order_in_class(config, linear_kind::q);
  if (const turned_neighbours* heads = queries.neighbours())
    print.add(fmt::format("{} of {}", heads->turned, heads->dim));
  if (config.attention_gate) print.add(fmt::format("gates of {}", config.head_dim));
  if (const delta_config& delta = config.delta; config.keeps_states())
    print.add(fmt::format("{} of {}, {} of {}", delta.key_heads, delta.key_dim, delta.value_heads, delta.value_dim));
}

void warn_of_memory(const load_options& options, const std::string& why) {
  constexpr std::string_view rest =
      ": each process packs the model into memory of its own: set TROUPE_CACHE to a folder that can be written";
  if (options.warn) options.warn(why + std::string(rest));
}

/// Changes whenever a source file does, or what this program makes of it.
std::string cache_name(const model_files& source, const load_options& options) {
  fnv_hash print;
  print.add(packed_header(source, options));
  add_reading(source.config, print);
  for (const auto& file : source.file_tensors().files) {
    struct stat status {};
    ::stat(file.name().c_str(), &status);
    print.add(plain_path(file.name()).string());
    print.add(fmt::format("{} {} {}", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec));
    add_samples(file.bytes(), print);
  }
  const std::string stem = plain_path(source.path).stem().string();
  return fmt::format("{}-{}-{:016x}.safetensors", stem.empty() ? "model" : stem,
                     options.quant ? name_of(*options.quant) : "native", print.value());
}

bool pack_into_cache(const model_files& source, const load_options& options, thread_pool& pool,
                     const fs::path& final_path) {
  const std::string folder = final_path.parent_path().string();
  std::error_code error;
  fs::create_directories(folder, error);
  unfinished_file file(final_path);
  if (file.descriptor() < 0) {
    const int cause = error ? error.value() : errno;
    warn_of_memory(options, fmt::format("{}: cannot be written: {}", folder, std::strerror(cause)));
    return false;
  }
  write_packed(source, options, pool, {file.descriptor(), folder, "free some space, or set TROUPE_CACHE elsewhere"});
  file.finish("set TROUPE_CACHE elsewhere");
  return true;
}

mapped_file pack_into_memory(const model_files& source, const load_options& options, thread_pool& pool) {
  const file_descriptor file(::memfd_create("troupe-packed", MFD_CLOEXEC));
  if (!file.is_open()) throw std::runtime_error(fmt::format("no memory for packed weights ({})", std::strerror(errno)));
  write_packed(source, options, pool, {file.number(), "memory", "free some, or choose a smaller --quant"});
  return mapped_file(file.number(), source.path.string() + " (packed)");
}

/// Nothing if the model was never packed, or if the file was damaged since: then it is packed again.
std::optional<loaded_model> find_in_cache(const model_files& source, const fs::path& cached) {
  std::error_code ignored;
  if (!is_seen(cached)) return std::nullopt;
  try {
    return read_packed(mapped_file(cached), source.config);
  } catch (const input_error&) {
    fs::remove(cached, ignored);
    return std::nullopt;
  }
}

loaded_model packed_form(const model_files& source, const load_options& options, thread_pool& pool) {
  const fs::path folder = options.cache.empty() ? cache_folder() : options.cache;
  if (folder.empty()) {
    warn_of_memory(options, "there is no folder for packed models");
    return read_packed(pack_into_memory(source, options, pool), source.config);
  }
  const fs::path cached = folder / cache_name(source, options);
  if (auto found = find_in_cache(source, cached)) return std::move(*found);
  return read_packed(
      pack_into_cache(source, options, pool, cached) ? mapped_file(cached) : pack_into_memory(source, options, pool),
      source.config);
}

void refuse_requantizing(const model_files& source, const load_options& options, const std::string& quantization) {
  if (options.quant && name_of(*options.quant) != quantization)
    refuse("{}: is already quantized as {}: run it as it is, or quantize the original", source.path.string(),
           quantization);
  if (!options.keep.empty())
    refuse_field("keep", fmt::format("{}: is already quantized as {}: keep has no effect: leave it out, or quantize "
                                     "the original with it",
                                     source.path.string(), quantization));
}

}  // namespace

scheme usual_scheme(const loaded_model& model) {
  const layer_weights& first = model.layers.front();
  const auto reads_rows = [&](linear_kind kind) { return first[kind].w.weights != nullptr; };
  return first[*std::find_if(every_linear.begin(), every_linear.end(), reads_rows)].w.kind;
}

fs::path cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (fs::path own = variable("TROUPE_CACHE"); !own.empty()) return own;
  if (const fs::path xdg = variable("XDG_CACHE_HOME"); !xdg.empty()) return xdg / "troupe";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".cache" / "troupe";
  return {};
}

std::shared_ptr<const loaded_model> load_model(const fs::path& path, const load_options& options, thread_pool& pool) {
  model_files source = open_model(path);
  const bool packed = is_packed(source.tensors);
  auto model = std::make_shared<loaded_model>(
      packed ? read_packed(mapped_file(source.tensors.files.front().name()), source.config)
             : packed_form(source, options, pool));
  if (packed) refuse_requantizing(source, options, model->quantization);
  if (options.preload) mapped_file::preload(model->file.bytes());
  return model;
}

}  // namespace troupe
