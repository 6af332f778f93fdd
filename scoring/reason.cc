// SPDX-License-Identifier: Apache-2.0
#include "scoring/reason.h"

namespace berth {
namespace {

struct Row {
  Verdict verdict;
  std::string_view code;
  std::string_view text;
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
  set(kNodeUnknown, kNow, "node_unknown", "node not known to berth yet");
  set(kNodeNotReady, kNever, "node_not_ready", "node is not ready");
  set(kRefusesGpuPods, kNever, "refuses_gpu_pods",
      "the kubelet of the node refused the pods with GPUs that were bound there last");
  set(kAskRefused, kNever, "ask_refused",
      "the Topology Manager of the node refused the last pods that ask for the same GPUs");
  set(kGpuCondition, kNever, "gpu_condition",
      "a condition of the node says that its GPUs are out of order");
  set(kNoGpu, kNever, "no_gpu", "node has no GPU");
  set(kNoGpuOffered, kNever, "no_gpu_offered", "the device plugin of the node offers no GPU");
  set(kOtherResource, kNever, "other_resource",
      "node has no GPUs of the resource that the pod asks for");
  set(kGpusForeign, kNever, "gpus_foreign", "GPUs of the node are given out by another scheduler");
  set(kOnePlaceEach, kNever, "one_place_each",
      "GPUs of the node have several users: of several places the device plugin gives no more than "
      "of one, or fails the pod");
  set(kPlacesOnly, kNever, "places_only",
      "GPUs of the node have several users with a place each, and are not shared otherwise");
  set(kTimeSliced, kNever, "time_sliced",
      "the node shares its GPUs by time slicing; the pod needs memory protection");
  set(kSharedSomehow, kNever, "shared_somehow",
      "the node does not say how it shares its GPUs; the pod needs memory protection");
  set(kSharesUnguarded, kNever, "shares_unguarded",
      "nothing on the node enforces shares of a GPU; the pod needs memory protection");
  set(kSharesNotCarriedOut, kNever, "shares_not_carried_out",
      "nobody on the node carries out shares of a GPU");
  set(kShareOfOtherAgent, kNever, "share_of_other_agent",
      "nobody on the node carries out a share of a GPU that is asked for by that resource");
  set(kNotItsOwn, kNever, "not_its_own",
      "the node shares its GPUs; the pod needs a GPU or MIG device of its own");
  set(kGpuTooSmall, kNever, "gpu_too_small",
      "GPUs of the node, or the parts of them that it gives, have less memory than the pod needs");
  set(kModelMismatch, kNever, "model_mismatch", "GPU model is not one the pod accepts");
  set(kTraitMissing, kNever, "trait_missing",
      "node lacks a trait that the workload class of the pod requires");
  set(kTraitForbidden, kNever, "trait_forbidden",
      "node has a trait that the workload class of the pod forbids");
  set(kGpuMismatch, kNever, "gpu_mismatch",
      "node cannot give as many of the GPUs that the pod accepts by UUID");
  set(kTooFewGpus, kNever, "too_few_gpus", "node has fewer healthy GPUs than the pod asks for");
  set(kShareNeverFits, kNever, "share_never_fits",
      "no GPU of the node is large enough for the share");
  set(kGpuMemoryUnknown, kNever, "gpu_memory_unknown", "node does not publish its GPU memory");
  set(kTooFewCpus, kNever, "too_few_cpus", "node has less CPU than the pod asks for");
  set(kTooLittleMemory, kNever, "too_little_memory", "node has less memory than the pod asks for");
  set(kTooLittleDisk, kNever, "too_little_disk",
      "node has less ephemeral storage than the pod asks for");
  set(kLinksUnknown, kNever, "links_unknown",
      "node does not publish the GPU links or NUMA groups that the pod asks for");
  set(kNeverLinked, kNever, "never_linked", "node has no GPUs linked as the pod asks");
  set(kNoMig, kNever, "no_mig", "node has no MIG devices");
  set(kNoMigProfile, kNever, "no_mig_profile",
      "node has no MIG device of a profile that the pod asks for");
  set(kTooFewMig, kNever, "too_few_mig", "node has fewer MIG devices than the pod asks for");
  set(kMigByNameOnly, kNever, "mig_by_name_only",
      "node hands out MIG devices only by the name of their profile");
  set(kMigByNeedOnly, kNever, "mig_by_need_only",
      "node hands out MIG devices only by what the pod needs, not by the name of a profile");
  set(kMigForeign, kNever, "mig_foreign",
      "MIG devices of the node are given out by another scheduler");
  set(kMigNotShared, kNever, "mig_not_shared",
      "GPUs of the node are MIG devices, of which there are no shares");
  set(kMigChanging, kNever, "mig_changing", "MIG configuration of the node is being changed");
  set(kMigFailed, kNever, "mig_failed", "MIG configuration of the node has failed");
  set(kMigInvalid, kNever, "mig_invalid",
      "MIG devices of the node are not all alike, as its strategy wants them");
  set(kMigStale, kNever, "mig_stale", "MIG labels and devices of the node contradict each other");
  set(kCpuShort, kNow, "cpu_short", "not enough free CPU");
  set(kMemoryShort, kNow, "memory_short", "not enough free memory");
  set(kDiskShort, kNow, "disk_short", "not enough free ephemeral storage");
  set(kGpusBusy, kNow, "gpus_busy", "not enough idle GPUs");
  set(kShareBusy, kNow, "share_busy", "no GPU with enough free share");
  set(kLinkedBusy, kNow, "linked_busy", "no idle GPUs linked as the pod asks");
  set(kMigBusy, kNow, "mig_busy", "no free MIG device of a profile that the pod asks for");
  const auto held = [&](Reason reason, std::string_view code, Reason short_now) {
    set(reason, kNever, code, rows[static_cast<std::size_t>(short_now)].text);
  };
  held(kCpuHeld, "cpu_held", kCpuShort);
  held(kMemoryHeld, "memory_held", kMemoryShort);
  held(kDiskHeld, "disk_held", kDiskShort);
  held(kGpusHeld, "gpus_held", kGpusBusy);
  held(kShareHeld, "share_held", kShareBusy);
  held(kLinkedHeld, "linked_held", kLinkedBusy);
  held(kMigHeld, "mig_held", kMigBusy);
  set(kTaintNotTolerated, kNever, "taint_not_tolerated",
      "node has a taint that the pod does not tolerate");
  set(kDriverTooOld, kNever, "driver_too_old",
      "driver of the node is older than the pod needs, or its version is not known");
  set(kCudaTooOld, kNever, "cuda_too_old",
      "driver of the node runs no CUDA as new as the pod needs, or does not say which");
  set(kCapabilityTooLow, kNever, "capability_too_low",
      "GPUs of the node have a lower compute capability than the pod needs, or do not say which");
  set(kKeptForGpuPods, kNever, "kept_for_gpu_pods",
      "node has GPUs, and is kept for pods that ask for some");
  set(kNodeNotSelected, kNever, "node_not_selected",
      "node is not one that the pod's node selector or affinity takes");
  set(kNoTopologyDomain, kNever, "no_topology_domain",
      "node has no label of the topology level that the pod requires");
  set(kOutsideDomain, kNever, "outside_domain",
      "node is outside the topology domain of the pod's group");
  set(kNoDomainHasRoom, kNow, "no_domain_has_room",
      "no topology domain of the required level has room for the pod's group");
  set(kGangUnknown, kNever, "gang_unknown", "no PodGroup of the name of the pod's group is known");
  set(kGangIncomplete, kNever, "gang_incomplete",
      "the pod's group has fewer pods than have to start together");
  set(kGangNoRoom, kNever, "gang_no_room",
      "no room for as many pods of the pod's group as have to start together");
  set(kBetterElsewhere, Verdict::kPassedOver, "better_elsewhere",
      "enough other nodes are better for the pod");
  set(kPodRefused, kNever, "pod_refused", "");
  return rows;
}();

const Row& RowOf(Reason reason) { return kRows[static_cast<std::size_t>(reason)]; }

}  // namespace

Verdict VerdictOf(Reason reason) { return RowOf(reason).verdict; }

Reason HeldForGood(Reason reason) {
  switch (reason) {
    case Reason::kCpuShort:
      return Reason::kCpuHeld;
    case Reason::kMemoryShort:
      return Reason::kMemoryHeld;
    case Reason::kDiskShort:
      return Reason::kDiskHeld;
    case Reason::kGpusBusy:
      return Reason::kGpusHeld;
    case Reason::kShareBusy:
      return Reason::kShareHeld;
    case Reason::kLinkedBusy:
      return Reason::kLinkedHeld;
    case Reason::kMigBusy:
      return Reason::kMigHeld;
    default:
      return reason;
  }
}

bool IsAboutLinks(Reason reason) {
  return reason == Reason::kLinksUnknown || reason == Reason::kNeverLinked ||
         reason == Reason::kLinkedBusy || reason == Reason::kLinkedHeld;
}

std::string_view TextOf(Reason reason) { return RowOf(reason).text; }
std::string_view CodeOf(Reason reason) { return RowOf(reason).code; }

}  // namespace berth
