// SPDX-License-Identifier: Apache-2.0
//
// What the device plugins of all vendors say by numbers alone. Whether a device is a GPU, a fixed
// part of one that counts as one (topology/gpu_vendor.h), or a place on a GPU that has several
// users, is for the inventory to say (cluster/node/inventory.h), by what the vendor's labels, the
// machine type and other dialects (GpuDraft) say, and of NVIDIA's and of an unknown vendor's by
//
//   berth.dev/gpu-uuids
//   nvidia.com/gpu.replicas, nvidia.com/gpu.sharing-strategy other than none
//   cloud.google.com/gke-max-shared-clients-per-gpu, gke-gpu-sharing-strategy
//   cloud.google.com/gke-gpu-partition-size
//   the product ends in -SHARED, or the resource in .shared
//
// Each place has its part of the memory. Of MPS the places beyond its most clients on a GPU do not
// count: 48, and 60 from driver 610 on. (NVIDIA, Multi-Process Service, Client-Server Connection
// Limits; the device plugin refuses more than 48: cmd/mps-control-daemon/mps/device.go at b5b9ab7.)
// Of several resources Berth chooses GPUs of that of wire::CountedOf. (Labels: GFD 0.20.)
#include <algorithm>
#include <array>
#include <memory>

#include "base/text.h"
#include "cluster/node/inventory.h"
#include "server/dialects/registry.h"
#include "server/wire/node/node_gpu_facts.h"
#include "server/wire/pod/dialect.h"
#include "topology/gpu_vendor.h"

namespace berth::dialects {
namespace {

using wire::DeviceCount;
using wire::GpuDraft;
using wire::NodeFacts;

// Of GKE: how GPUs are shared, and by how many.
// (docs.cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus)
constexpr std::string_view kGkeStrategy = "cloud.google.com/gke-gpu-sharing-strategy";
constexpr std::string_view kMpsCapable = "nvidia.com/mps.capable";
constexpr std::string_view kGkeClients = "cloud.google.com/gke-max-shared-clients-per-gpu";
constexpr std::string_view kNvidiaStrategy = "nvidia.com/gpu.sharing-strategy";

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

// Replicas of each GPU, by the labels of NVIDIA's plugin or of GKE's.
std::int64_t ReplicasOf(const Labels& labels, std::string& problem) {
  return std::max(wire::CountLabel(labels, "nvidia.com/gpu.replicas", problem).value_or(0),
                  wire::CountLabel(labels, kGkeClients, problem).value_or(0));
}

// How the GPUs are shared, by the first of the two labels that says so; "": neither does. What is
// none of their words says so too: the users are there, and nothing is known to keep them apart.
std::string_view StrategyOf(const Labels& labels, std::string& problem) {
  constexpr std::array kWords = {"", "none", "mps", "time-slicing", "time-sharing"};
  for (const std::string_view key : {kNvidiaStrategy, kGkeStrategy}) {
    const std::string_view strategy = LabelText(labels, key);
    if (std::ranges::find(kWords, strategy) == kWords.end()) {
      AddFact(problem, "label " + std::string(key) + ": want time-slicing, time-sharing, mps or " +
                           "none, got \"" + std::string(strategy.substr(0, 40)) + "\"");
    }
    if (!strategy.empty() && strategy != "none") return strategy;
  }
  return "";
}

// What cannot be read is added to the problems of the draft.
GpuEvidence EvidenceOf(const NodeFacts& facts, std::int64_t devices, GpuDraft& draft) {
  GpuEvidence said{.resource = draft.resource, .devices = devices};
  said.registered = draft.registered;
  said.machine = facts.machine_gpus;
  said.labelled = GpusByLabel(facts.labels, draft.resource);
  said.shared = draft.shared_by_other;
  said.parts = draft.parts;
  if (!MayBeNvidias(draft.resource)) return said;
  if (draft.uuids && draft.uuids->by_gpu) said.uuids = std::ssize(*draft.uuids->by_gpu);
  said.replicas = ReplicasOf(facts.labels, draft.problem);
  said.shared = said.shared || !StrategyOf(facts.labels, draft.problem).empty() ||
                facts.product.ends_with("-SHARED") || draft.resource.ends_with(".shared");
  said.of_one_product = true;
  said.parts = said.parts || facts.product.find("-MIG-") != std::string_view::npos ||
               !LabelText(facts.labels, wire::kGkePartitionLabel).empty();
  return said;
}

GpuSharing SharingOf(const Labels& labels) {
  std::string known;  // to EvidenceOf
  const std::string_view strategy = StrategyOf(labels, known);
  if (strategy == "time-slicing" || strategy == "time-sharing") return GpuSharing::kTimeSlicing;
  const std::string_view capable = LabelText(labels, kMpsCapable);
  const bool mps = strategy.empty() ? capable == "true" : strategy == "mps" && capable != "false";
  return mps ? GpuSharing::kMps : GpuSharing::kUnknown;
}

std::int64_t MostClients(const Labels& labels) {
  constexpr std::int64_t kClients = 48, kMoreClients = 60, kFromDriver = 610;
  const auto driver = ParseInt(LabelText(labels, "nvidia.com/cuda.driver-version.major"), 0, 9999);
  return driver.value_or(0) >= kFromDriver ? kMoreClients : kClients;
}

// What a place has of its GPU.
void FillPlaces(const NodeFacts& facts, const GpuInventory& found, GpuDraft& draft) {
  GpuPlaces& places = draft.places;
  const bool nvidias = MayBeNvidias(draft.resource);
  if (nvidias) places.sharing = SharingOf(facts.labels);
  if (nvidias && LabelText(facts.labels, kNvidiaStrategy) == "mps" &&
      places.sharing != GpuSharing::kMps) {
    draft.AddProblem("label " + std::string(kMpsCapable) +
                     ": want true where MPS shares the GPUs, got false, so nothing keeps their " +
                     "users apart; look at MPS' control daemon");
  }
  if (found.gpus <= 0) return;
  places.gpus = static_cast<int>(found.gpus);
  places.several =
      LabelText(facts.labels, kGkeStrategy).empty() && places.sharing != GpuSharing::kMps;
  const std::int64_t each = places.each();
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

// Whether two resources are never the same GPUs: of known vendors whose plugins offer a device by
// one name. NVIDIA's leaves names over, and of AWS' devices the cores have names too.
bool AreOtherGpus(std::string_view one, std::string_view other) {
  const GpuVendor *const first = FindGpuVendor(one), *const second = FindGpuVendor(other);
  if (first == nullptr || second == nullptr) return false;
  return first != second || (first->name != kNvidiaVendor && first->name != "aws");
}

// Fills in the outcome.
void CountNodeGpus(const NodeFacts& facts, GpuDraft& draft) {
  const DeviceCount* const most = wire::CountedOf(draft.devices);
  if (most == nullptr) return;
  for (const DeviceCount& other : draft.devices) {
    if (draft.shared ? other.resource == draft.shared->resource : &other == most) continue;
    if (!draft.shared && AreOtherGpus(other.resource, most->resource)) {
      if (other.allocatable > 0 || other.capacity > 0) draft.others.push_back(other);
      continue;
    }
    if (other.allocatable == 0) continue;
    const std::string& counted = draft.shared ? draft.shared->resource : most->resource;
    if (draft.shared && MayBeNvidias(other.resource)) {
      draft.contradiction = "offers its GPUs both as " + other.resource + " and as " + counted +
                            ", so each is given twice; stop one of the two device plugins";
      continue;
    }
    draft.AddProblem("allocatable " + other.resource + ": want GPUs of one resource on a node, " +
                     "those of " + counted + " count alone");
  }
  if (draft.shared) return;
  const std::int64_t all = std::max(most->capacity, most->allocatable);
  const std::int64_t devices = std::min<std::int64_t>(
      all - std::clamp<std::int64_t>(draft.partitioned, 0, all), kMaxGpuPlaces);
  draft.resource = most->resource;
  draft.missing = static_cast<int>(std::min(all - most->allocatable, devices));
  GpuInventory found = TakeInventory(EvidenceOf(facts, devices, draft));
  if (found.whole && devices <= kMaxGpusPerNode) {
    draft.gpus = static_cast<int>(devices);
  } else {
    draft.places.count = static_cast<int>(devices);
    FillPlaces(facts, found, draft);
  }
  if (!draft.served_by_other) draft.contradiction = std::move(found.contradiction);
  draft.places.foreign = draft.served_by_other && devices > 0;
}

class CountedNode final : public wire::NodeReading {
 public:
  explicit CountedNode(const wire::NodeFacts& facts) : facts_(facts) {}
  void CountGpus(wire::GpuDraft& draft) override { CountNodeGpus(facts_, draft); }

 private:
  const wire::NodeFacts facts_;
};

class DevicesDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "devices"; }
  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    return std::make_unique<CountedNode>(facts);
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeDevices() { return std::make_unique<DevicesDialect>(); }

}  // namespace berth::dialects
