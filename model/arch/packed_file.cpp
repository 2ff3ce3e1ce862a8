#include "model/arch/packed_file.hpp"

#include <map>

#include "base/error.hpp"
#include "base/to_size.hpp"
#include "model/arch/weight_list.hpp"
#include "model/formats/tensors/safetensors.hpp"

namespace troupe {
namespace {

/// The weights of a packed file by name, each checked against what the configuration asks for.
class packed_weights {
 public:
  packed_weights(const std::string& file, tensor_set tensors, const model_config& config)
      : file_(file), tensors_(std::move(tensors)) {
    visit_weights(config, {[this](const std::string& name, std::int64_t outs, std::int64_t ins) {
                             matrices_[name] = read_matrix(name, outs, ins);
                           },
                           [this](const std::string& name, std::int64_t rows, std::int64_t size) {
                             vectors_[name] = read_vector(name, rows, size);
                           }});
  }

  matrix_view matrix(const std::string& name) const {
    const auto found = matrices_.find(name);
    return found == matrices_.end() ? matrix_view() : found->second;
  }
  const float* vector(const std::string& name) const {
    const auto found = vectors_.find(name);
    return found == vectors_.end() ? nullptr : found->second;
  }
  norm_weights norm(const std::string& module) const { return {vector(module + ".weight"), vector(module + ".bias")}; }
  linear_weights linear(const std::string& module) const {
    return {matrix(module + ".weight"), vector(module + ".bias")};
  }

 private:
  matrix_view read_matrix(const std::string& name, std::int64_t outs, std::int64_t ins) const {
    const auto described = tensors_.metadata.find(name);
    if (described == tensors_.metadata.end()) refuse("{}: weight {} is missing: quantize the model again", file_, name);
    const std::string kind = described->second.substr(0, described->second.find(' '));
    const scheme stored = scheme_from_name(kind, file_ + ": " + name);
    if (const auto expected = detail::packed_matrix_text(stored, outs, ins); described->second != expected)
      refuse("{}: weight {} is {} where the configuration asks for {}", file_, name, described->second, expected);
    return view_of(stored, outs, ins, find(name, dtype::u8, packed_bytes(stored, outs, ins).total()).data.data());
  }
  const float* read_vector(const std::string& name, std::int64_t rows, std::int64_t size) const {
    const auto& tensor = find(name, dtype::f32, to_size(rows * padded_row(size)) * sizeof(float));
    return reinterpret_cast<const float*>(tensor.data.data());
  }
  const tensor_view& find(const std::string& name, dtype type, std::size_t bytes) const {
    const tensor_view* tensor = tensors_.find(name);
    if (!tensor) refuse("{}: weight {} is missing: quantize the model again", file_, name);
    if (tensor->type != type || tensor->data.size() != bytes ||
        reinterpret_cast<std::uintptr_t>(tensor->data.data()) % 64)
      refuse("{}: weight {} has the wrong size or place: quantize the model again", file_, name);
    return *tensor;
  }

  std::string file_;
  tensor_set tensors_;
  std::map<std::string, matrix_view> matrices_;
  std::map<std::string, const float*> vectors_;
};

void check_layout(const tensor_set& tensors, const std::string& file) {
  const auto layout = tensors.metadata.find(std::string(packed_layout_key));
  if (layout == tensors.metadata.end() || layout->second != packed_layout)
    refuse("{}: packed by another version of troupe: quantize the model again", file);
}

}  // namespace

std::string detail::packed_matrix_text(scheme kind, std::int64_t outs, std::int64_t ins) {
  return fmt::format("{} {}x{}", name_of(kind), outs, ins);
}

loaded_model read_packed(mapped_file file, const model_config& config) {
  tensor_set tensors;
  parse_safetensors(file.bytes(), file.name(), tensors);
  check_layout(tensors, file.name());
  loaded_model model;
  model.config = config;
  model.quantization = tensors.metadata[std::string(packed_quantization_key)];
  const packed_weights weights(file.name(), std::move(tensors), config);
  place_weights(model, weights);
  model.positions = weights.vector("model.embed_positions.weight");
  model.file = std::move(file);
  return model;
}

}  // namespace troupe
