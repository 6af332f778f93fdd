// SPDX-License-Identifier: Apache-2.0
//
// Reason: why a node does or does not take a pod, and the Verdict that follows from it.
//
// The texts are constants without counters or names: kube-scheduler counts the nodes of each text
// in the pod's condition ("3 node(s) had too few idle GPUs"), and retries without pause if it
// changes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace berth {

enum class Verdict {
  kFits,
  kPassedOver,     // it fits, but enough better nodes do too: not worth comparing
  kUnschedulable,  // not now: pods that leave (or are evicted) can help
  kUnresolvable,   // no eviction helps
};

enum class Reason : std::uint8_t {
  kFits,
  kNodeUnknown,  // not in the snapshot (yet)
  kNodeNotReady,
  kRefusesGpuPods,  // its kubelet refused the last ones
  kAskRefused,      // its kubelet refused the last pods that ask for the same
  kGpuCondition,    // a condition says that its GPUs are out of order
  kNoGpu,
  kNoGpuOffered,         // it has GPUs, and its device plugin offers none of them
  kOtherResource,        // its GPUs are of another resource than the pod asks for
  kGpusForeign,          // another scheduler gives its GPUs out
  kOnePlaceEach,         // its GPUs have several users, and the pod asks for more than one place
  kGpusUncertain,        // its GPUs may have several users: what says how many there are differs
  kPlacesOnly,           // the same, and the pod asks for a share
  kTimeSliced,           // the pod needs memory protection, and its GPUs are shared by time slicing
  kSharedSomehow,        // the same, and nobody says how they are shared
  kSharesUnguarded,      // the same, and the pod asks for a share, which nobody enforces
  kSharesNotCarriedOut,  // the pod asks for a share, and nobody could give it that GPU
  kShareOfOtherAgent,    // the same, by a resource that the node's agent does not read
  kShareAgentNotReady,   // the same, and the agent that the pod asks says that it is not ready
  kNotItsOwn,            // the pod needs a GPU for itself, and these have several users
  kGpuTooSmall,          // the pod needs more memory than its GPUs have, or than their parts
  kModelMismatch,
  kTraitMissing,      // that the pod's workload class requires
  kTraitForbidden,    // that it forbids
  kGpuMismatch,       // too few of its GPUs are accepted by their UUIDs
  kTooFewGpus,        // the whole node has fewer healthy GPUs than asked
  kShareNeverFits,    // no GPU of the node is large enough for the share
  kGpuMemoryUnknown,  // asked by GPU memory, which the node does not publish
  kTooFewCpus,        // the whole node
  kTooLittleMemory,   // the whole node
  kTooLittleDisk,     // the whole node, for ephemeral storage
  kLinksUnknown,      // the pod asks for links or a NUMA group that the node does not publish
  kNeverLinked,       // of all healthy GPUs none are linked as the pod asks
  kNumaNever,         // the node's Topology Manager refuses the pod even if all its GPUs are free
  kNoMig,             // no GPU of the node is partitioned
  kNoMigProfile,      // its GPUs have no MIG device like that
  kTooFewMig,         // the whole node
  kMigByNameOnly,     // the pod names no profile, and the node hands devices out by name
  kMigByNeedOnly,     // the pod names a profile, and the node's agent makes devices by need
  kMigForeign,        // another scheduler gives its MIG devices out
  kMigNotShared,      // its GPUs are MIG devices, and those are not shared by compute or memory
  kMigChanging,       // MigTrouble, in its order
  kMigFailed,
  kMigInvalid,
  kMigStale,
  kCpuShort,
  kMemoryShort,
  kDiskShort,
  kGpusBusy,
  kShareBusy,
  kLinkedBusy,  // enough GPUs are idle, and none of them are linked as the pod asks
  kNumaBusy,    // the node's Topology Manager does not give those that are idle together
  kMigBusy,     // the node has such MIG devices, and too few are free or can be cut now
  kCpuHeld,     // as kCpuShort ... kMigBusy, and no pod that holds it may be evicted for this one
  kMemoryHeld,
  kDiskHeld,
  kGpusHeld,
  kShareHeld,
  kLinkedHeld,
  kNumaHeld,
  kMigHeld,
  kTaintNotTolerated,
  kKeptForWaiting,  // it fits, and pods that have waited longer get what is free (earmarks.h)
  kKeptForGpuPods,  // the pod asks for no GPU, and the node's CPU is for those that do
  kDriverTooOld,    // or not known; so are the next two, in the order of Versioned
  kCudaTooOld,
  kCapabilityTooLow,
  kNodeNotSelected,   // by the pod's node selector or required affinity
  kNoTopologyDomain,  // it has no value at the level that the pod's group requires
  kOutsideDomain,     // it is not in the domain of the pod's group
  kNoDomainHasRoom,   // it fits, and no domain of that level holds the group
  kGangUnknown,       // nothing says how many pods the pod's gang needs
  kGangIncomplete,    // the gang has too few pods
  kGangNoRoom,        // there is no room for all of the gang that has to start together
  kBetterElsewhere,   // it fits, and is passed over
  kPodRefused,        // the pod itself is at fault; PodRequest::refusal is the text
  kCount,
};

Verdict VerdictOf(Reason reason);
// The reason for a current shortage as one that no eviction resolves: same text, other verdict.
Reason HeldForGood(Reason reason);
Reason ShortageOf(Reason reason);  // the other way
// Whether it is the links between GPUs, not their number, that the node lacks.
bool IsAboutLinks(Reason reason);
// "node(s) had no GPUs", for FailedNodes and the like. "" for kFits and kPodRefused.
std::string_view TextOf(Reason reason);
// The same for so many nodes: "1 node had no GPUs", "3 nodes had no GPUs".
std::string TextOf(Reason reason, std::int64_t nodes);
// The same after the name of a node: "had no GPUs".
std::string_view PredicateOf(Reason reason);
// "gpus_busy": for metric labels and logs.
std::string_view CodeOf(Reason reason);

}  // namespace berth
