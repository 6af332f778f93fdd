// SPDX-License-Identifier: Apache-2.0
//
// Builders: nodes, pods and snapshots; a test says only what matters to it.
//
//   ANode("n1").Gpus(8).Cpu(96).Model("T4").Holding(APod("a").Share(300), {0})
//   APod("p").Whole(2).Cpu(8).Models({"A100", "T4"})
//
// What is not said is ample and harmless: 64 cores, 256 GiB, no GPU; pods ask for nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/groups/pod_groups.h"
#include "cluster/node/node.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "cluster/values/pod_record.h"
#include "cluster/values/pod_request.h"

namespace berth::test {

constexpr std::int64_t kGib = std::int64_t{1} << 30;

// MIG devices without a name, of any plain profile that has at least so much.
inline MigSlices MigWith(int slices, std::int64_t memory_mib = 0, int count = 1) {
  return {{{.profile = {}, .min_slices = slices, .min_memory_mib = memory_mib, .count = count}}};
}

class APod {
 public:
  explicit APod(const std::string& name) : pod_{{"uid-" + name, "default", name}, {}, {}, 0, ""} {}

  APod& Whole(int count) { return Asks(WholeGpus{count}); }
  APod& Share(int milli, std::int64_t memory_mib = 0) { return Asks(GpuShare{milli, memory_mib}); }
  APod& Shares(int count, int milli, std::int64_t memory_mib = 0) {
    return Asks(GpuShare{.milli = milli, .memory_mib = memory_mib, .count = count});
  }
  // Only these GPUs / none of these.
  APod& OnGpus(const std::vector<std::string>& uuids) { return NamesGpus(false, uuids); }
  APod& NotOnGpus(const std::vector<std::string>& uuids) { return NamesGpus(true, uuids); }
  APod& ShareByMemory(std::int64_t memory_mib) { return Asks(GpuShare{0, memory_mib}); }
  // Devices of that profile, in addition to those of others.
  APod& Mig(const std::string& profile, int count = 1, bool shared = false) {
    MigSlices ask = pod_.shape.mig() == nullptr ? MigSlices{} : *pod_.shape.mig();
    ask.wants.push_back({ParseMigProfile(profile).value(), shared, 0, 0, count});
    std::ranges::sort(ask.wants);
    return Asks(ask);
  }
  APod& MigNeeding(int slices, std::int64_t memory_mib, int count = 1) {
    return Asks(MigWith(slices, memory_mib, count));
  }
  // In its gang, whose roles have such minimums.
  APod& Role(const std::string& name, std::vector<GangRole> roles) {
    pod_.role = name;
    pod_.gang.has_roles = true;
    pod_.gang.roles = std::move(roles);
    return *this;
  }
  // Of that role in a gang whose parts have domains; its own is the pod's.
  APod& Parts(const std::string& role, std::vector<GangPart> parts) {
    pod_.role = role;
    pod_.gang.parts = std::move(parts);
    const GangPart* const own = PartOf(pod_.gang, pod_.role);
    if (own != nullptr) pod_.domain.required = own->level;
    return *this;
  }
  // So many pods come when the leader of its gang runs.
  APod& Followers(int count, bool leads) {
    pod_.gang.followers = count;
    pod_.leads = leads;
    return *this;
  }
  APod& Cpu(std::int64_t cores) { return CpuMilli(cores * 1000); }
  APod& CpuMilli(std::int64_t milli) {
    pod_.shape.cpu_milli = milli;
    return *this;
  }
  APod& MemoryGib(std::int64_t gib) {
    pod_.shape.memory_bytes = gib * kGib;
    return *this;
  }
  APod& DiskGib(std::int64_t gib) {
    pod_.shape.ephemeral_bytes = gib * kGib;
    return *this;
  }
  APod& Models(std::vector<std::string> sorted) {
    pod_.shape.models = std::move(sorted);
    return *this;
  }
  APod& Links(const LinkAsk& ask) {
    pod_.shape.links = ask;
    return *this;
  }
  APod& Isolated(Isolation isolation) {
    pod_.shape.isolation = isolation;
    return *this;
  }
  APod& Spreads(Spread spread, const std::string& workload) {
    pod_.shape.spread = spread;
    pod_.shape.workload = workload;
    return *this;
  }
  APod& Wishes(const TraitWish& wish) {
    pod_.shape.nodes.wishes.push_back(wish);
    std::ranges::sort(pod_.shape.nodes.wishes);
    return *this;
  }
  // Beside the GPUs of the pods of its namespace with that label / away from them.
  APod& Near(const std::string& key, const std::string& value) {
    return Minds(pod_.shape.neighbours.near, key, value);
  }
  APod& Far(const std::string& key, const std::string& value) {
    return Minds(pod_.shape.neighbours.far, key, value);
  }
  APod& BesideNic() {
    pod_.shape.beside_nic = true;
    return *this;
  }
  APod& Container(const std::string& name, const GpuAsk& gpus) {
    pod_.containers.push_back({name, gpus, false});
    return *this;
  }
  APod& InitContainer(const std::string& name, const GpuAsk& gpus) {
    pod_.containers.push_back({name, gpus, true});
    return *this;
  }

  // Whole GPUs in several containers; `total` in all.
  APod& InSteps(int total, const std::vector<GpuStep>& steps) {
    pod_.containers.clear();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      pod_.containers.push_back(
          {"c" + std::to_string(i), WholeGpus{steps[i].count}, steps[i].ends_first});
    }
    pod_.shape.gpu_steps = steps;
    return Whole(total);
  }

  // Shares in several containers, which may be of different GPUs.
  APod& InParts(const std::vector<GpuStep>& steps) {
    pod_.containers.clear();
    for (const GpuStep& step : steps) {
      const int at = pod_.container_count++;
      pod_.containers.push_back({"c" + std::to_string(at), step.share, step.ends_first, at});
    }
    pod_.shape.gpu_steps = steps;
    GpuShare sum = SumOf(steps, 0);
    sum.milli = std::min(sum.milli, kMilliPerGpu);
    sum.memory_milli = std::min(sum.memory_milli, kMilliPerGpu);
    sum.count = std::ranges::max(steps, {}, &GpuStep::count).count;
    return Asks(sum);
  }

  // Of its own, by name.
  APod& Claims(std::vector<std::string> names) {
    pod_.claims = std::move(names);
    return *this;
  }
  APod& Uid(const std::string& uid) {
    pod_.id.uid = uid;
    return *this;
  }
  APod& Namespace(const std::string& name) {
    pod_.id.namespace_name = name;
    return *this;
  }
  APod& Named(const std::string& name) {
    pod_.id.uid = "uid-" + name;
    pod_.id.name = name;
    return *this;
  }
  APod& Others(const OtherResources& others) {
    pod_.others = std::make_shared<const OtherResources>(others);
    return *this;
  }
  APod& Priority(int priority) {
    pod_.priority = priority;
    return *this;
  }
  APod& NeverPreempts() {
    pod_.may_preempt = false;
    return *this;
  }
  APod& Checkpointed(WallTime at) {
    pod_.checkpointed = at;
    return *this;
  }
  APod& Expects(std::chrono::seconds time) {
    pod_.expected_seconds = time.count();
    return *this;
  }
  APod& EndsWithin(std::chrono::seconds deadline) {
    pod_.deadline_seconds = deadline.count();
    return *this;
  }
  APod& Series(std::uint64_t series) {
    pod_.series = series;
    return *this;
  }
  APod& Mobile(Mobility mobility) {
    pod_.mobility = mobility;
    return *this;
  }
  APod& Controller(const std::string& uid) {
    pod_.controller = uid;
    return *this;
  }
  APod& Scheduler(const std::string& name) {
    pod_.scheduler = name;
    return *this;
  }
  APod& LeftToScheduler(const OwnToScheduler& own) {
    pod_.own_to_scheduler = own;
    return *this;
  }
  APod& Gang(const std::string& gang) {
    pod_.gang.id = GangId::Of(gang);
    return *this;
  }
  APod& GangSize(int size) {
    pod_.gang.minimum = pod_.gang.total = size;
    return *this;
  }
  APod& GangMinimum(int minimum) {
    pod_.gang.minimum = minimum;
    return *this;
  }
  APod& WithoutGangObject() {
    pod_.gang.object = berth::Gang::Object::kMissing;
    return *this;
  }
  // As it is read while those groups are there: its gang is named after its PodGroup at first.
  APod& ReadWith(const PodGroups& groups) {
    pod_.role = pod_.gang.id.name;
    WithoutGangObject();
    groups.Read(pod_);
    return *this;
  }
  APod& Requires(std::size_t level) {
    pod_.domain.required = level;
    return *this;
  }
  APod& Prefers(std::size_t level) {
    pod_.domain.preferred = level;
    return *this;
  }
  APod& Unconstrained() {
    pod_.domain.unconstrained = true;
    return *this;
  }
  APod& Labelled(Labels sorted) {
    pod_.labels = std::make_shared<const Labels>(std::move(sorted));
    return *this;
  }
  APod& Constrained(NodeConstraints constraints) {
    pod_.constraints = std::make_shared<const NodeConstraints>(std::move(constraints));
    return *this;
  }

  [[nodiscard]] const PodRequest& Request() const { return pod_; }
  [[nodiscard]] const RequestShape& Shape() const { return pod_.shape; }

  // What it takes on these GPUs of that node; memory of a GPU only where a share names it.
  [[nodiscard]] Placement On(const std::string& node, const std::vector<int>& gpus = {}) const {
    Placement placement{node, pod_.shape.cpu_milli, pod_.shape.memory_bytes, {}};
    placement.ephemeral_bytes = pod_.shape.ephemeral_bytes;
    const auto* share = std::get_if<GpuShare>(&pod_.shape.gpus);
    for (const int gpu : gpus) {
      placement.grants.push_back(
          {gpu, pod_.shape.milli_per_gpu(), share == nullptr ? 0 : share->memory_mib});
    }
    return placement;
  }

  // The pod as it is there, bound or reserved.
  [[nodiscard]] std::shared_ptr<const PodRecord> BoundOn(const std::string& node,
                                                         const std::vector<int>& gpus = {}) const {
    return std::make_shared<const PodRecord>(PodRecord{pod_, On(node, gpus), PodState::kBound, {}});
  }
  [[nodiscard]] std::shared_ptr<const PodRecord> ReservedOn(
      const std::string& node, const std::vector<int>& gpus = {}) const {
    return std::make_shared<const PodRecord>(
        PodRecord{pod_, On(node, gpus), PodState::kReserved, Instant::max()});
  }

 private:
  APod& Asks(const GpuAsk& ask) {
    pod_.shape.gpus = ask;
    return *this;
  }
  APod& Minds(LabelSelector& selector, const std::string& key, const std::string& value) {
    selector.push_back({key, LabelOperator::kIn, {value}});
    pod_.shape.neighbours.namespace_name = pod_.id.namespace_name;
    return *this;
  }
  APod& NamesGpus(bool refused, const std::vector<std::string>& uuids) {
    for (const std::string& uuid : uuids) pod_.shape.gpu_rules.push_back({refused, uuid});
    std::ranges::sort(pod_.shape.gpu_rules);
    return *this;
  }

  PodRequest pod_;
};

class ANode {
 public:
  explicit ANode(const std::string& name) {
    spec_.name = name;
    spec_.cpu_milli = 64'000;
    spec_.memory_bytes = 256 * kGib;
  }

  // How many pods it takes, and what it has beside.
  ANode& Counts(int pods, const OtherResources& others) {
    spec_.most_pods = pods;
    spec_.others = others;
    return *this;
  }
  ANode& Gpus(int count, std::int64_t memory_mib = 16'000) {
    spec_.gpus.assign(static_cast<std::size_t>(count), GpuSpec{"", memory_mib, true});
    return *this;
  }
  ANode& GpuMemory(std::size_t gpu, std::int64_t memory_mib) {
    spec_.gpus[gpu].memory_mib = memory_mib;
    return *this;
  }
  // Its GPUs are "GPU-0", "GPU-1", and so on. An agent hands them out to all pods bound there;
  // "": the device plugin does.
  ANode& Named(const std::string& agent = "koordinator") {
    spec_.share_agent = agent;
    spec_.agent_serves_all = !agent.empty();
    for (std::size_t gpu = 0; gpu < spec_.gpus.size(); ++gpu) {
      spec_.gpus[gpu].uuid = "GPU-" + std::to_string(gpu);
    }
    return *this;
  }
  // Its agent counts their memory in units of so many MiB.
  ANode& MemoryUnit(int mib) {
    for (GpuSpec& gpu : spec_.gpus) gpu.unit_mib = mib;
    return *this;
  }
  ANode& Linked(GpuLinks links) {
    spec_.links = std::move(links);
    return *this;
  }
  ANode& Kubelet(TopologyPolicy policy, bool by_pod = false) {
    spec_.topology_manager = {policy, by_pod};
    return *this;
  }
  ANode& CarriesOut() {
    spec_.carries_out = true;
    return *this;
  }
  ANode& Mig(MigSpec spec) {
    spec_.mig = NodeMig(std::move(spec));
    return *this;
  }
  ANode& Cpu(std::int64_t cores) {
    spec_.cpu_milli = cores * 1000;
    return *this;
  }
  ANode& MemoryGib(std::int64_t gib) {
    spec_.memory_bytes = gib * kGib;
    return *this;
  }
  // It says how much disk it has for pods; else that is not tracked.
  ANode& DiskGib(std::int64_t gib) {
    spec_.ephemeral_bytes = gib * kGib;
    return *this;
  }
  ANode& Model(const std::string& model) {
    spec_.gpu_model = model;
    return *this;
  }
  ANode& Unhealthy(std::size_t gpu) {
    spec_.gpus[gpu].healthy = false;
    return *this;
  }
  // So many are out of order, and nobody says which.
  ANode& Missing(int gpus) {
    spec_.missing = gpus;
    return *this;
  }
  // GPUs with so many users in all.
  ANode& Places(int count, bool foreign = false) {
    spec_.places = {count, foreign};
    return *this;
  }
  ANode& NotReady() {
    spec_.ready = false;
    return *this;
  }
  ANode& Holding(const APod& pod, const std::vector<int>& gpus = {}) {
    held_.push_back(pod.BoundOn(spec_.name, gpus));
    return *this;
  }
  // One with an end is ending.
  ANode& Holding(const APod& pod, const std::vector<int>& gpus, const PodLife& life) {
    PodRecord record = *pod.BoundOn(spec_.name, gpus);
    record.life = life;
    record.leaving = life.ends.has_value();
    held_.push_back(std::make_shared<const PodRecord>(std::move(record)));
    return *this;
  }
  ANode& HoldingReserved(const APod& pod, const std::vector<int>& gpus = {}) {
    held_.push_back(pod.ReservedOn(spec_.name, gpus));
    return *this;
  }
  ANode& HoldingPlanned(const APod& pod, const std::vector<int>& gpus) {
    PodRecord record = *pod.BoundOn(spec_.name, gpus);
    record.state = PodState::kPlanned;
    held_.push_back(std::make_shared<const PodRecord>(std::move(record)));
    return *this;
  }
  ANode& HoldingMig(const APod& pod, std::vector<MigGrant> mig = {}) {
    PodRecord record = *pod.BoundOn(spec_.name);
    record.placement.mig = std::move(mig);
    std::ranges::sort(record.placement.mig);
    held_.push_back(std::make_shared<const PodRecord>(std::move(record)));
    return *this;
  }
  // By ResourceClaims.
  ANode& Claimed(const std::vector<int>& gpus, const std::string& claim = "ns/claim") {
    for (const int gpu : gpus) {
      claims_.push_back({claim, "gpu-" + std::to_string(gpu), "", gpu, "", -1});
    }
    return *this;
  }
  ANode& ClaimedMig(int gpu, const std::string& profile, int start) {
    claims_.push_back({"ns/claim", "gpu-" + std::to_string(gpu) + "-mig", "", gpu, profile, start});
    return *this;
  }
  ANode& Traits(std::vector<std::string> sorted) {
    spec_.traits = std::move(sorted);
    return *this;
  }
  ANode& Labelled(Labels sorted) {
    spec_.labels = std::move(sorted);
    return *this;
  }
  ANode& Tainted(const std::string& key, const std::string& value = "",
                 TaintEffect effect = TaintEffect::kNoSchedule) {
    const bool soft = effect == TaintEffect::kPreferNoSchedule;
    (soft ? spec_.soft_taints : spec_.taints).push_back({key, value, effect});
    return *this;
  }

  [[nodiscard]] const NodeSpec& Spec() const { return spec_; }
  [[nodiscard]] Node Build() const {
    Node node(std::make_shared<const NodeSpec>(spec_), {},
              std::make_shared<const std::vector<ClaimedGpu>>(claims_));
    for (const auto& pod : held_) node.Put(pod);
    return node;
  }

 private:
  NodeSpec spec_;
  std::vector<ClaimedGpu> claims_;
  std::vector<std::shared_ptr<const PodRecord>> held_;
};

// Requires: nodes in name order.
inline std::shared_ptr<const Snapshot> SnapshotOf(const std::vector<ANode>& nodes) {
  std::vector<std::shared_ptr<const Node>> built;
  for (const ANode& node : nodes) built.push_back(std::make_shared<const Node>(node.Build()));
  return std::make_shared<const Snapshot>(built);
}

}  // namespace berth::test
