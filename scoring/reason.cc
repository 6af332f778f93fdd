// SPDX-License-Identifier: Apache-2.0
#include "scoring/reason.h"

#include <algorithm>
#include <array>

namespace berth {
namespace {

constexpr std::string_view kNodes = "node(s) ";  // kube-scheduler writes the number before it

struct Row {
  Verdict verdict;
  std::string_view code;
  std::string_view text;
};

struct Held {
  Reason now;
  Reason for_good;
  std::string_view code;
};
constexpr Held kHeld[] = {
    {Reason::kCpuShort, Reason::kCpuHeld, "cpu_held"},
    {Reason::kMemoryShort, Reason::kMemoryHeld, "memory_held"},
    {Reason::kDiskShort, Reason::kDiskHeld, "disk_held"},
    {Reason::kGpusBusy, Reason::kGpusHeld, "gpus_held"},
    {Reason::kShareBusy, Reason::kShareHeld, "share_held"},
    {Reason::kLinkedBusy, Reason::kLinkedHeld, "linked_held"},
    {Reason::kNumaBusy, Reason::kNumaHeld, "numa_held"},
    {Reason::kMigBusy, Reason::kMigHeld, "mig_held"},
};

constexpr auto kRows = [] {
  std::array<Row, static_cast<std::size_t>(Reason::kCount)> rows{};
  const auto set = [&rows](Reason reason, Verdict verdict, std::string_view code,
                           std::string_view text) {
    rows[static_cast<std::size_t>(reason)] = {verdict, code, text};
  };
  using enum Reason;
  constexpr Verdict kNow = Verdict::kUnschedulable;
  constexpr Verdict kNever = Verdict::kUnresolvable;
  set(kFits, Verdict::kFits, "fits", "");
  set(kNodeUnknown, kNow, "node_unknown", "node(s) not known to Berth yet");
  set(kNodeNotReady, kNever, "node_not_ready", "node(s) not ready");
  set(kRefusesGpuPods, kNever, "refuses_gpu_pods",
      "node(s) had a kubelet that rejected the last GPU pods");
  set(kAskRefused, kNever, "ask_refused",
      "node(s) had a kubelet that rejected the last pods asking for the same resources");
  set(kGpuCondition, kNever, "gpu_condition", "node(s) had a condition that reports broken GPUs");
  set(kNoGpu, kNever, "no_gpu", "node(s) had no GPUs");
  set(kNoGpuOffered, kNever, "no_gpu_offered",
      "node(s) had GPUs, but the device plugin offered none");
  set(kOtherResource, kNever, "other_resource",
      "node(s) had no GPUs of the resource that the pod asks for");
  set(kGpusForeign, kNever, "gpus_foreign", "node(s) had GPUs managed by another scheduler");
  set(kOnePlaceEach, kNever, "one_place_each",
      "node(s) had shared GPUs, whose replicas may all be of one GPU; Berth gives a container one");
  set(kGpusUncertain, kNever, "gpus_uncertain",
      "node(s) contradicted itself about how many GPUs it has; the pod requires whole GPUs or a "
      "model");
  set(kPlacesOnly, kNever, "places_only",
      "node(s) had GPU replicas only; the pod asks for a GPU share");
  set(kTimeSliced, kNever, "time_sliced",
      "node(s) had time-sliced GPUs; the pod requires memory isolation");
  set(kSharedSomehow, kNever, "shared_somehow",
      "node(s) had shared GPUs of unknown sharing strategy; the pod requires memory isolation");
  set(kSharesUnguarded, kNever, "shares_unguarded",
      "node(s) had no agent that enforces GPU shares; the pod requires memory isolation");
  set(kSharesNotCarriedOut, kNever, "shares_not_carried_out",
      "node(s) had no agent that assigns or enforces GPU shares");
  set(kShareOfOtherAgent, kNever, "share_of_other_agent",
      "node(s) had no agent for GPU shares of the resource that the pod asks for");
  set(kShareAgentNotReady, kNever, "share_agent_not_ready",
      "node(s) had an agent for GPU shares that was not ready");
  set(kNotItsOwn, kNever, "not_its_own",
      "node(s) had shared GPUs; the pod requires a GPU or MIG device of its own");
  set(kGpuTooSmall, kNever, "gpu_too_small",
      "node(s) had GPUs or GPU replicas with less memory than the pod requires");
  set(kModelMismatch, kNever, "model_mismatch", "node(s) had no GPU model that the pod accepts");
  set(kTraitMissing, kNever, "trait_missing",
      "node(s) lacked a trait that the pod's workload class requires");
  set(kTraitForbidden, kNever, "trait_forbidden",
      "node(s) had a trait that the pod's workload class forbids");
  set(kGpuMismatch, kNever, "gpu_mismatch",
      "node(s) had too few GPUs with UUIDs that the pod accepts");
  set(kTooFewGpus, kNever, "too_few_gpus", "node(s) had fewer healthy GPUs than the pod asks for");
  set(kShareNeverFits, kNever, "share_never_fits", "node(s) had no GPU large enough for the share");
  set(kGpuMemoryUnknown, kNever, "gpu_memory_unknown", "node(s) did not publish GPU memory");
  set(kTooFewCpus, kNever, "too_few_cpus", "node(s) had less CPU in total than the pod asks for");
  set(kTooLittleMemory, kNever, "too_little_memory",
      "node(s) had less memory in total than the pod asks for");
  set(kTooLittleDisk, kNever, "too_little_disk",
      "node(s) had less ephemeral storage in total than the pod asks for");
  set(kLinksUnknown, kNever, "links_unknown",
      "node(s) did not publish the GPU links or NUMA nodes that the pod requires");
  set(kNeverLinked, kNever, "never_linked", "node(s) had no GPUs linked as the pod requires");
  set(kNumaNever, kNever, "numa_never",
      "node(s) had too few GPUs in one NUMA node for the kubelet's Topology Manager policy");
  set(kNoMig, kNever, "no_mig", "node(s) had no MIG devices");
  set(kNoMigProfile, kNever, "no_mig_profile",
      "node(s) had no MIG device of a profile that the pod asks for");
  set(kTooFewMig, kNever, "too_few_mig", "node(s) had fewer MIG devices than the pod asks for");
  set(kMigByNameOnly, kNever, "mig_by_name_only",
      "node(s) offered MIG devices only by profile name");
  set(kMigByNeedOnly, kNever, "mig_by_need_only",
      "node(s) offered MIG devices only by required size, not by profile name");
  set(kMigForeign, kNever, "mig_foreign", "node(s) had MIG devices managed by another scheduler");
  set(kMigNotShared, kNever, "mig_not_shared",
      "node(s) had MIG-partitioned GPUs; MIG devices cannot be shared");
  set(kMigChanging, kNever, "mig_changing", "node(s) had a MIG configuration change in progress");
  set(kMigFailed, kNever, "mig_failed", "node(s) had a failed MIG configuration");
  set(kMigInvalid, kNever, "mig_invalid",
      "node(s) had unequal MIG devices, which the MIG strategy single does not allow");
  set(kMigStale, kNever, "mig_stale", "node(s) had MIG labels that contradict the MIG devices");
  set(kCpuShort, kNow, "cpu_short", "node(s) had too little free CPU");
  set(kMemoryShort, kNow, "memory_short", "node(s) had too little free memory");
  set(kDiskShort, kNow, "disk_short", "node(s) had too little free ephemeral storage");
  set(kGpusBusy, kNow, "gpus_busy", "node(s) had too few idle GPUs");
  set(kShareBusy, kNow, "share_busy", "node(s) had no GPU with enough free share");
  set(kLinkedBusy, kNow, "linked_busy", "node(s) had no idle GPUs linked as the pod requires");
  set(kNumaBusy, kNow, "numa_busy",
      "node(s) had too few idle GPUs in one NUMA node for the kubelet's Topology Manager policy");
  set(kMigBusy, kNow, "mig_busy",
      "node(s) had no free MIG device of a profile that the pod asks for");
  for (const auto& [now, for_good, held_code] : kHeld) {
    set(for_good, kNever, held_code, rows[static_cast<std::size_t>(now)].text);
  }
  set(kTaintNotTolerated, kNever, "taint_not_tolerated",
      "node(s) had a taint that the pod does not tolerate");
  set(kDriverTooOld, kNever, "driver_too_old",
      "node(s) had a GPU driver that is too old for the pod, or of unknown version");
  set(kCudaTooOld, kNever, "cuda_too_old",
      "node(s) had a driver whose CUDA version is too old for the pod, or unknown");
  set(kCapabilityTooLow, kNever, "capability_too_low",
      "node(s) had GPUs whose compute capability is too low for the pod, or unknown");
  set(kKeptForWaiting, kNever, "kept_for_waiting",
      "node(s) had room that is kept for other pods that wait");
  set(kKeptForGpuPods, kNever, "kept_for_gpu_pods",
      "node(s) had GPUs, and the guard keeps them for pods that ask for GPUs");
  set(kNodeNotSelected, kNever, "node_not_selected",
      "node(s) did not match the pod's node selector or affinity");
  set(kNoTopologyDomain, kNever, "no_topology_domain",
      "node(s) had no label of the topology level that the pod requires");
  set(kOutsideDomain, kNever, "outside_domain",
      "node(s) lay outside the topology domain of the pod's group");
  set(kNoDomainHasRoom, kNow, "no_domain_has_room",
      "node(s) had no topology domain with room for the pod's group");
  set(kGangUnknown, kNever, "gang_unknown",
      "node(s) not offered: the pod's PodGroup was not found");
  set(kGangIncomplete, kNever, "gang_incomplete",
      "node(s) not offered: the pod's gang has fewer pods than must start together");
  set(kGangNoRoom, kNever, "gang_no_room",
      "node(s) not offered: no room for all pods of the gang that must start together");
  set(kBetterElsewhere, Verdict::kPassedOver, "better_elsewhere",
      "node(s) fit, but enough other nodes fit better");
  set(kPodRefused, kNever, "pod_refused", "");
  return rows;
}();

const Row& RowOf(Reason reason) { return kRows[static_cast<std::size_t>(reason)]; }

}  // namespace

Verdict VerdictOf(Reason reason) { return RowOf(reason).verdict; }

Reason HeldForGood(Reason reason) {
  const auto held = std::ranges::find(kHeld, reason, &Held::now);
  return held == std::end(kHeld) ? reason : held->for_good;
}

Reason ShortageOf(Reason reason) {
  const auto held = std::ranges::find(kHeld, reason, &Held::for_good);
  return held == std::end(kHeld) ? reason : held->now;
}

bool IsAboutLinks(Reason reason) {
  return reason == Reason::kLinksUnknown || reason == Reason::kNeverLinked ||
         reason == Reason::kLinkedBusy || reason == Reason::kLinkedHeld;
}

std::string_view TextOf(Reason reason) { return RowOf(reason).text; }

std::string TextOf(Reason reason, std::int64_t nodes) {
  return std::to_string(nodes) + (nodes == 1 ? " node " : " nodes ") +
         std::string(PredicateOf(reason));
}

std::string_view PredicateOf(Reason reason) {
  const std::string_view text = TextOf(reason);
  return text.substr(std::min(kNodes.size(), text.size()));
}

std::string_view CodeOf(Reason reason) { return RowOf(reason).code; }

}  // namespace berth
