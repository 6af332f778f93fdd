// SPDX-License-Identifier: Apache-2.0
//
// What every matrix promises, however odd the text was that it was read from.
#pragma once

#include <cstddef>
#include <vector>

#include "base/check.h"
#include "topology/links/link_matrix.h"
#include "topology/links/wiring.h"

namespace berth::fuzz {

inline void CheckMatrix(const LinkMatrix& matrix) {
  const int gpus = matrix.gpu_count(), devices = matrix.device_count();
  BERTH_CHECK(gpus >= 1 && gpus <= kMaxGpus && matrix.nics.size() <= kMaxNics);
  BERTH_CHECK(matrix.cells.size() ==
              static_cast<std::size_t>(devices) * static_cast<std::size_t>(devices));
  BERTH_CHECK(matrix.cpu_affinity.size() == matrix.gpus.size());
  BERTH_CHECK(matrix.numa_affinity.size() == matrix.gpus.size());
  for (int a = 0; a < devices; ++a) {
    BERTH_CHECK(!matrix.link(a, a).known());
    for (int b = 0; b < a; ++b) {
      BERTH_CHECK(matrix.link(a, b) == matrix.link(b, a));
      BERTH_CHECK(matrix.link(a, b).fabric_links <= kMaxNvlinks);
    }
  }
  const Wiring wiring = WiringOf(matrix);
  BERTH_CHECK(wiring.gpus == gpus && wiring.numa.size() == matrix.gpus.size());
}

}  // namespace berth::fuzz
