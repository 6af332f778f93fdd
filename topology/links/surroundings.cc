// SPDX-License-Identifier: Apache-2.0
#include "topology/links/surroundings.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "topology/links/wiring.h"

namespace berth {
namespace {

bool UnderOneRoot(LinkType pcie) { return pcie >= LinkType::kPxb && pcie <= LinkType::kBoard; }

bool UnderOneRoot(const LinkMatrix& matrix, int a, int b) {
  const LinkType pcie = matrix.link(a, b).pcie;
  if (a == b || pcie != LinkType::kUnknown) return a == b || UnderOneRoot(pcie);
  for (int nic = 0; nic < static_cast<int>(matrix.nics.size()); ++nic) {
    if (UnderOneRoot(matrix.gpu_nic(a, nic).pcie) && UnderOneRoot(matrix.gpu_nic(b, nic).pcie)) {
      return true;
    }
  }
  return false;
}

LinkType BestNic(const LinkMatrix& matrix, int gpu) {
  LinkType best = LinkType::kUnknown;
  for (int nic = 0; nic < static_cast<int>(matrix.nics.size()); ++nic) {
    best = std::max(best, matrix.gpu_nic(gpu, nic).pcie);
  }
  return best;
}

}  // namespace

std::vector<Surroundings> SurroundingsOf(const LinkMatrix& matrix) {
  const std::optional<std::vector<int>> numa = NumaGroupsOf(matrix);
  const auto group = [&numa](int gpu) { return numa ? (*numa)[static_cast<std::size_t>(gpu)] : 0; };
  std::vector<Surroundings> all(matrix.gpus.size());
  for (int gpu = 0; gpu < matrix.gpu_count(); ++gpu) {
    Surroundings& around = all[static_cast<std::size_t>(gpu)];
    around.nic = BestNic(matrix, gpu);
    for (int other = 0; other < matrix.gpu_count(); ++other) {
      const bool linked = matrix.link(gpu, other).fabric != LinkType::kUnknown;
      if (linked || other == gpu) around.fabric |= GpuBit(other);
      if (UnderOneRoot(matrix, gpu, other)) around.root |= GpuBit(other);
      if (group(other) == group(gpu)) around.numa |= GpuBit(other);
    }
  }
  return all;
}

}  // namespace berth
