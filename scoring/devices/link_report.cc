// SPDX-License-Identifier: Apache-2.0
#include "scoring/devices/link_report.h"

#include <algorithm>
#include <bit>

#include "scoring/devices/device_picker.h"

namespace berth {
namespace {

// 62500 MB/s -> "62.5".
std::string Gigabytes(int megabytes_per_s) {
  std::string text = std::to_string(megabytes_per_s / 1000);
  if (const int tenths = megabytes_per_s % 1000 / 100; tenths > 0) {
    text += "." + std::to_string(tenths);
  }
  return text;
}

}  // namespace

std::string LinkShortage(const Node& node, const RequestShape& shape) {
  const int size = shape.gpu_count();
  const LinkAsk& ask = shape.links;
  if (size < 2 || !ask.limits()) return "";
  const GpuLinks& links = node.spec().links;
  if (!links.known()) return "the links of the node's GPUs are not known";
  const GpuMask free = FreeGpus(node, shape);
  if (links.Choose(free, size, ask) != 0) return "";
  const std::string needs = "needs " + std::to_string(size);
  const std::string has = std::to_string(std::popcount(free)) + " free, ";
  if (std::popcount(free) < size) return needs + " GPUs; " + has + "too few";
  const int linked = std::popcount(links.LargestLinked(free));
  if (ask.link == LinkWish::kRequired && linked < size) {
    return needs + " linked GPUs; " + has + "largest linked set " + std::to_string(linked);
  }
  if (ask.numa == NumaWish::kRequired) {
    if (!links.knows_numa()) return "the NUMA groups of the node's GPUs are not known";
    const int most = links.MostOfOneGroup(free);
    if (most < size) {
      return needs + " GPUs of one NUMA group; " + has + "at most " + std::to_string(most) +
             " of one";
    }
  }
  const LinkAsk fastest_ring = {.pattern = LinkPattern::kRing};
  const int ring = links.Ring(links.Choose(free, size, fastest_ring));
  if (ring < ask.min_megabytes_per_s) {
    return "needs a ring of " + Gigabytes(ask.min_megabytes_per_s) + " GB/s through " +
           std::to_string(size) + " GPUs; " + has + "best ring " + Gigabytes(ring) + " GB/s";
  }
  return needs + " GPUs; " + has + "no set has all at once that the pod asks of their links";
}

std::optional<double> LinkQualityRatio(const Node& node, const Placement& placement) {
  const GpuLinks& links = node.spec().links;
  if (placement.grants.size() < 2 || !links.known()) return std::nullopt;
  const GpuMask gpus = GpusAmong(placement.grants, node.gpus().size());
  const int best = links.BestQuality(IdleGpus(node), static_cast<int>(placement.grants.size()));
  return best == 0 ? 1.0 : std::min(1.0, links.quality(gpus) / double(best));
}

}  // namespace berth
