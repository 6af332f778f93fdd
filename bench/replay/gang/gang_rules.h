// SPDX-License-Identifier: Apache-2.0
//
// GangRule: how a scheduler finds nodes for the members of a job.
//
//   berth          the plan of scoring/gangs; singles by the engine
//   berth-packing  the same, and a single goes to the tightest rack, as a gang of one would
//   greedy         pod by pod, each to the node that kube-scheduler likes best; of a group with a
//                  required domain to that of the first. Members that have a node hold it for 60 s.
//                  One that finds none ends the attempt for all, unless a tenth or less is missing
//                  (kubernetes-sigs/scheduler-plugins, pkg/coscheduling, PostFilter); attempts
//                  after it are 1, 2, 4 ... 10 s apart
//   volcano-like   job by job, its tasks one by one to the fullest node (binpack), kept only if
//                  there are enough; domains (HyperNodes) tried one after the other, narrow to wide
//   kueue-tas-like admitted by counts (topology/domains/domain_tree.h), role after role, what a
//                  node has free being a sum; a pod whose node turns out not to have its devices
//                  waits there, and after 300 s the job is evicted (waitForPodsReady) and comes
//                  back 60 s later
//
// All are asked whenever something has left, in the order of arrival, and later jobs may pass (best
// effort FIFO). None of them takes time. So what differs is where jobs go.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/gang/gang_workload.h"
#include "cluster/state/snapshot.h"
#include "cluster/values/placement.h"
#include "topology/domains/domain_tree.h"

namespace berth::replay {

struct GangAttempt {
  struct Place {
    std::size_t member = 0;
    Placement placement;
  };
  std::vector<Place> places;  // members that found a node in this attempt
  Millis hold{0};             // if that is not all: how long they are held; zero: not at all
  Millis back_off{0};         // after the attempt failed, or the hold ended: none before that
};

class GangRule {
 public:
  virtual ~GangRule() = default;
  // A job has come: told once.
  virtual void Hear(const GangJob&, const std::shared_ptr<const Snapshot>&) {}
  // pods: the members of the job, in the order of its roles. has_node: those that are held already
  // and are in the snapshot. attempts: that have failed before.
  virtual GangAttempt Try(const std::shared_ptr<const Snapshot>& snapshot, const DomainTree& tree,
                          const GangJob& job, const std::vector<PodRequest>& pods,
                          const std::vector<char>& has_node, int attempts) = 0;
};

std::vector<std::string_view> GangRuleNames();
// On a fleet as in the snapshot. Error: kInvalidArgument naming those there are.
Result<std::unique_ptr<GangRule>> MakeGangRule(const std::string& name, const Snapshot& fleet);

}  // namespace berth::replay
