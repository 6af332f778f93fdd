// SPDX-License-Identifier: Apache-2.0
#include "cluster/node/first_fit.h"

#include <algorithm>

namespace berth {

const GpusByName* FindByName(std::span<const GpusByName> names, std::string_view resource) {
  const auto found =
      resource.empty() ? names.begin() : std::ranges::find(names, resource, &GpusByName::resource);
  return found == names.end() ? nullptr : &*found;
}

GpuMask GpusOf(const GpusByName& name) {
  GpuMask gpus = 0;
  for (const int gpu : name.order) gpus |= GpuBit(gpu);
  return gpus;
}

GpuMask FirstFree(const GpusByName& name, GpuMask free, int count) {
  GpuMask taken = 0;
  for (const int gpu : name.order) {
    if (count == 0) break;
    if ((free & GpuBit(gpu)) == 0) continue;
    taken |= GpuBit(gpu);
    --count;
  }
  return count == 0 ? taken : 0;
}

}  // namespace berth
