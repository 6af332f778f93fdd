// SPDX-License-Identifier: Apache-2.0
//
// GangModel: the real Extender, GangTable and ClusterState between a simulated API server and a
// simulated kube-scheduler, in one thread, on a virtual clock, with every choice drawn from one
// seed. A step is one thing that happens: an event of the watch arrives, a job runs, a pod is
// scheduled, time passes, a pod or a node comes or goes, Berth or kube-scheduler is killed.
//
// What may never be is looked for after every step, in the API server's own books:
//   whole      pods of a gang get nodes only when enough of them are there; what has begun becomes
//              whole when nothing disturbs it
//   once       no GPU has two pods
//   live       a gang for which there is room runs when nothing disturbs it
//   clean      when all pods are gone nothing is held
//   answered   every bind is answered once, unless its client has gone
//   truthful   what was answered "bound" is bound
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "cluster/cluster_state.h"
#include "cluster/node_domains.h"
#include "cluster/waiting_pods.h"
#include "server/extender/extender.h"

namespace berth::test {

// What one of the simulated parts does wrong, so that the checks can be checked.
enum class Planted {
  kNothing,
  kSizeTooSmall,       // a gang says one pod less than it needs
  kLosesJobs,          // every 50th job never runs
  kHidesDeletions,     // the watch does not show that pods are deleted
  kSaysBoundTooEarly,  // a Binding is answered with success and not done
  kForgetsBoundPods,   // a list at a restart does not show pods that are bound
  kBindsTwice,         // a Binding to a GPU that is taken is accepted, and given where it was not
  kNeverWakes,         // nobody is woken, and refused binds wake nobody
};

struct ModelReport {
  std::string violation;  // the first; "" = none
  std::uint64_t steps = 0;
  int whole = 0;     // gangs that ran
  int bindings = 0;  // of single pods too
  int restarts = 0;
};

// Runs so many steps from the seed, then lets the dust settle and looks at the end.
ModelReport RunGangModel(std::uint64_t seed, std::uint64_t steps, Planted planted);

}  // namespace berth::test
