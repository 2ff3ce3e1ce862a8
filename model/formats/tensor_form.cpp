#include "model/formats/tensor_form.hpp"

namespace troupe::detail {
namespace {

/// Without the dimension of experts or heads.
std::vector<std::int64_t> own_shape(const tensor_form& form, const wanted_weight& weight, bool transposed) {
  if (weight.vector && form.columns > 0) return {form.all_outs / form.columns, form.columns};
  if (weight.vector) return {form.all_outs};
  if (form.is_flat) return {weight.ins};
  if (transposed) return {form.all_ins > 0 ? form.all_ins : weight.ins, form.all_outs};
  return {form.all_outs, weight.ins};
}

}  // namespace

std::vector<std::int64_t> tensor_form::shape(const wanted_weight& weight, bool transposed) const {
  std::vector<std::int64_t> shape = own_shape(*this, weight, transposed);
  if (members > 0) shape.insert(shape.begin(), members);
  if (has_unit) shape.insert(shape.end() - 1, 1);
  return shape;
}

}  // namespace troupe::detail
