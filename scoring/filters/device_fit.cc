// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/device_fit.h"

#include <algorithm>
#include <bit>

#include "scoring/device_picker.h"
#include "scoring/mig/mig_plan.h"

namespace berth {
namespace {

// Whether GPUs are linked as the pod asks: all that are healthy, and then those that are idle.
Reason CheckLinks(const Node& node, int wanted, const LinkAsk& ask) {
  const GpuLinks& links = node.spec().links;
  if (!links.known()) return Reason::kLinksUnknown;
  if (ask.numa == NumaWish::kRequired && !links.knows_numa()) return Reason::kLinksUnknown;
  GpuMask healthy = 0;
  for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
    if (node.spec().gpus[gpu].healthy) healthy |= GpuBit(static_cast<int>(gpu));
  }
  if (links.Choose(healthy, wanted, ask) == 0) return Reason::kNeverLinked;
  const GpuMask idle = IdleGpus(node);
  if (std::popcount(idle) < wanted) return Reason::kGpusBusy;
  return links.Choose(idle, wanted, ask) == 0 ? Reason::kLinkedBusy : Reason::kFits;
}

Reason CheckWhole(const Node& node, int wanted, const LinkAsk& ask) {
  if (node.healthy_gpus() < wanted) return Reason::kTooFewGpus;
  const int idle = std::popcount(IdleGpus(node));
  if (wanted > 1 && ask.limits()) return CheckLinks(node, wanted, ask);
  return idle < wanted ? Reason::kGpusBusy : Reason::kFits;
}

// A node whose GPUs have several users.
Reason CheckPlaces(const Node& node, const RequestShape& shape) {
  const NodeSpec& spec = node.spec();
  if (shape.is_share() || shape.gpu_count() > 1) return Reason::kOnePlaceEach;
  if (spec.places.count <= spec.missing) return Reason::kNoGpuOffered;
  return node.free_places() > 0 ? Reason::kFits : Reason::kGpusBusy;
}

Reason CheckShare(const Node& node, const GpuShare& share) {
  bool could = false, memory_known = false;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    memory_known = memory_known || node.spec().gpus[static_cast<std::size_t>(gpu)].memory_mib > 0;
    const auto choice = ShareOn(node, gpu, share);
    could = could || choice.has_value();
    if (choice && HasFree(node, gpu, *choice)) return Reason::kFits;
  }
  if (could) return Reason::kShareBusy;
  return share.memory_mib > 0 && !memory_known ? Reason::kGpuMemoryUnknown
                                               : Reason::kShareNeverFits;
}

// A node that has MIG devices, or each of whose GPUs is one, or that is in trouble with them.
Reason CheckWithMig(const Node& node, const RequestShape& shape) {
  const MigSpec& spec = *node.spec().mig;
  if (const Reason trouble = ReasonOf(spec.trouble); trouble != Reason::kFits) return trouble;
  const MigSlices* const ask = shape.mig();
  if (ask == nullptr) {
    return spec.single && shape.is_share() ? Reason::kMigNotShared : Reason::kFits;
  }
  if (const int devices = GpusInsteadOfMig(node, shape); devices > 0) {
    return CheckWhole(node, devices, {});
  }
  if (spec.single && !ask->by_name()) return Reason::kNoMigProfile;
  return CheckMig(node, *ask);
}

Reason CheckGpus(const Node& node, const RequestShape& shape) {
  if (!shape.wants_gpu()) return Reason::kFits;
  if (node.spec().mig.known()) {
    const Reason reason = CheckWithMig(node, shape);
    if (shape.mig() != nullptr || reason != Reason::kFits) return reason;
  }
  if (shape.mig() != nullptr) return Reason::kNoMig;
  if (node.spec().places.foreign) return Reason::kGpusForeign;
  if (node.spec().places.count > 0) return CheckPlaces(node, shape);
  if (node.gpus().empty()) return Reason::kNoGpu;
  if (node.healthy_gpus() == 0) return Reason::kNoGpuOffered;
  if (const auto* share = std::get_if<GpuShare>(&shape.gpus)) return CheckShare(node, *share);
  return CheckWhole(node, shape.gpu_count(), shape.links);
}

}  // namespace

Reason DeviceFit::Check(const Node& node, const RequestShape& shape) const {
  const Reason gpus = CheckGpus(node, shape);
  if (VerdictOf(gpus) == Verdict::kUnresolvable) return gpus;
  if (shape.cpu_milli > node.spec().cpu_milli) return Reason::kTooFewCpus;
  if (shape.memory_bytes > node.spec().memory_bytes) return Reason::kTooLittleMemory;
  if (gpus != Reason::kFits) return gpus;
  // A pod that asks for none of a resource fits even if it is overcommitted.
  if (shape.cpu_milli > 0 && shape.cpu_milli > node.free_cpu_milli()) return Reason::kCpuShort;
  if (shape.memory_bytes > 0 && shape.memory_bytes > node.free_memory_bytes()) {
    return Reason::kMemoryShort;
  }
  return Reason::kFits;
}

}  // namespace berth
