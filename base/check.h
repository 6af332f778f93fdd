// SPDX-License-Identifier: Apache-2.0
//
// BERTH_CHECK(condition): a broken invariant of our own ends the process with file, line and
// condition (a restart rebuilds the state; carrying on would grant GPUs twice). Never for input.
#pragma once

#include <cstdio>
#include <cstdlib>

#define BERTH_CHECK(condition)                                                               \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: invariant broken: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
