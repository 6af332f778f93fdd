// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/devices/node_gpus.h"

#include <algorithm>

#include "base/number.h"
#include "server/wire/node/node_gpu_facts.h"
#include "server/wire/pod/gpu_words.h"
#include "topology/gpu_vendor.h"

namespace berth::dialects {
namespace {

using wire::DeviceCount;
using wire::GpuDraft;
using wire::NodeFacts;

std::string_view LabelOf(const Labels& labels, std::string_view key) {
  const std::string* const value = FindLabel(labels, key);
  return value == nullptr ? std::string_view() : *value;
}

std::int64_t NumberOf(const Labels& labels, std::string_view key) {
  const auto number = ParseInt(LabelOf(labels, key), 0, kMaxGpuPlaces);
  return number ? *number : 0;
}

// Whether NVIDIA's labels are about GPUs of that resource.
bool MayBeNvidias(const std::string& resource) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  return vendor == nullptr || vendor->name == kNvidiaVendor;
}

// How many GPUs the node's labels say that there are; 0 = they do not.
std::int64_t GpusByLabel(const Labels& labels, const std::string& resource) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  return wire::LabelledGpus(labels, vendor == nullptr ? GpuVendors().front() : *vendor);
}

bool SaySoThemselves(const NodeFacts& facts, const std::string& resource) {
  if (!MayBeNvidias(resource)) return false;
  const std::string_view strategy = LabelOf(facts.labels, "nvidia.com/gpu.sharing-strategy");
  if (!strategy.empty() && strategy != "none") return true;
  if (NumberOf(facts.labels, "nvidia.com/gpu.replicas") > 1) return true;
  return facts.product.ends_with("-SHARED") || resource.ends_with(".shared");
}

bool HaveSeveralUsers(const NodeFacts& facts, const GpuDraft& draft, std::int64_t devices,
                      std::int64_t healthy) {
  if (SaySoThemselves(facts, draft.resource)) return true;
  const bool each_is_cut = draft.parts || facts.product.find("-MIG-") != std::string_view::npos;
  const std::int64_t gpus = GpusByLabel(facts.labels, draft.resource);
  return (!each_is_cut && gpus > 0 && healthy >= 2 * gpus) || devices > kMaxGpusPerNode;
}

GpuSharing SharingOf(const Labels& labels) {
  const std::string_view strategy = LabelOf(labels, "nvidia.com/gpu.sharing-strategy");
  if (strategy == "time-slicing") return GpuSharing::kTimeSlicing;
  const bool mps = strategy.empty() && LabelOf(labels, "nvidia.com/mps.capable") == "true";
  return mps || strategy == "mps" ? GpuSharing::kMps : GpuSharing::kUnknown;
}

std::int64_t MostClients(const Labels& labels) {
  constexpr std::int64_t kClients = 48, kMoreClients = 60, kFromDriver = 610;
  const std::int64_t driver = NumberOf(labels, "nvidia.com/cuda.driver-version.major");
  return driver >= kFromDriver ? kMoreClients : kClients;
}

// Which GPUs the places are on. On each there are as many.
void SpreadPlaces(const NodeFacts& facts, GpuDraft& draft) {
  GpuPlaces& places = draft.places;
  const bool nvidias = MayBeNvidias(draft.resource);
  if (nvidias) places.sharing = SharingOf(facts.labels);
  const std::int64_t labelled = GpusByLabel(facts.labels, draft.resource);
  std::int64_t each = nvidias ? NumberOf(facts.labels, "nvidia.com/gpu.replicas") : 0;
  if (each <= 1 && labelled > 0) each = places.count / labelled;
  if (each <= 0 || (each == 1 && SaySoThemselves(facts, draft.resource))) return;
  places.gpus = static_cast<int>((places.count + each - 1) / each);
  places.memory_mib = draft.gpu_memory_mib / each;
  const std::int64_t most = MostClients(facts.labels);
  if (places.sharing != GpuSharing::kMps || each <= most) return;
  const auto within = [&](int number) {
    return static_cast<int>((number * most + each - 1) / each);
  };
  draft.missing = within(draft.missing);
  places.count = within(places.count);
  draft.AddProblem("nvidia.com/gpu.replicas: want at most " + std::to_string(most) +
                   " clients of MPS on a GPU, got " + std::to_string(each) +
                   "; Berth ignores the others");
}

}  // namespace

void CountNodeGpus(const NodeFacts& facts, GpuDraft& draft) {
  const DeviceCount* const most = wire::CountedOf(draft.devices);
  if (most == nullptr) return;
  for (const DeviceCount& other : draft.devices) {
    if (&other == most || other.allocatable == 0) continue;
    draft.AddProblem("allocatable " + other.resource + ": want GPUs of one resource on a node, " +
                     "those of " + most->resource + " count alone");
  }
  if (draft.shared) {
    if (most->allocatable == 0 || most->resource == draft.shared->resource) return;
    draft.AddProblem("allocatable " + most->resource + ": want GPUs of one resource on a node, " +
                     "those of " + draft.shared->resource + " count alone");
    return;
  }
  const std::int64_t all = std::max(most->capacity, most->allocatable);
  const std::int64_t devices = std::min<std::int64_t>(
      all - std::clamp<std::int64_t>(draft.partitioned, 0, all), kMaxGpuPlaces);
  draft.resource = most->resource;
  draft.missing = static_cast<int>(std::min(all - most->allocatable, devices));
  const std::int64_t healthy = devices - draft.missing;
  if (draft.shared_by_other || HaveSeveralUsers(facts, draft, devices, healthy)) {
    draft.places.count = static_cast<int>(devices);
    SpreadPlaces(facts, draft);
  } else {
    draft.gpus = static_cast<int>(devices);
  }
  draft.places.foreign = draft.served_by_other && devices > 0;
}

}  // namespace berth::dialects
