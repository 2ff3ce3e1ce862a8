// What PCRE2 gives out, with an owner.
#pragma once
#include <memory>
#include <new>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace troupe::detail {

struct pcre2_release {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_compile_context* context) const { pcre2_compile_context_free(context); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};
template <class Handle>
using pcre2_owned = std::unique_ptr<Handle, pcre2_release>;

template <class Handle>
pcre2_owned<Handle> own(Handle* handle) {
  if (!handle) throw std::bad_alloc();
  return pcre2_owned<Handle>(handle);
}

}  // namespace troupe::detail
