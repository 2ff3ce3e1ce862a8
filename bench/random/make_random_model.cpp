// usage: make-random-model SHAPE DIR. Called by scripts/make-random-model.
#include <cstdio>
#include <exception>

#include "base/error.hpp"
#include "bench/random/random_model.hpp"

int main(int count, char** words) {
  try {
    if (count != 3) troupe::refuse("usage: make-random-model tiny|S|M|MoE|8B|8B-4 DIR");
    troupe::bench::write_random_model(words[1], words[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make-random-model: %s\n", error.what());
    return 2;
  }
}
