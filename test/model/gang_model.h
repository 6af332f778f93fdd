// SPDX-License-Identifier: Apache-2.0
//
// GangModel: the real Extender, GangTable and ClusterState between a simulated API server and a
// simulated kube-scheduler, in one thread, on a virtual clock, with every choice drawn from one
// seed. A step is one thing that happens: an event of the watch arrives, a job runs, a pod is
// scheduled, time passes, a pod or a node comes or goes, a gang is created anew under the names
// that it had, Berth or kube-scheduler is killed, another Berth leads from now on. Pods of some
// gangs have a port that one pod of a node can have; an extender after Berth takes a node out for
// some; and now and then Reserve or PreBind fails.
//
// What may never be is looked for in the API server's own books, with every Binding and answer:
//   whole      pods of a gang get nodes only when enough of them are there
//   once       no GPU has two pods
//   live       when nothing disturbs, a gang for which there is room runs, and one that has begun
//              becomes whole
//   clean      when all pods are gone nothing is held
//   answered   every bind is answered once and in time, unless its client has gone
//   truthful   what was answered "bound" is bound
//   quiet      kube-scheduler does not ask again and again while nothing changes
//   domain     a gang that has to be in one rack is
//   evictions  nobody is evicted for a pod of no higher priority, or for a gang that would not fit
//              even so
//   order      a Binding is one that was asked for, by a Berth that leads; a gang begins only while
//              enough clients wait
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/model/sim_world.h"

namespace berth::test {

// Runs so many steps from the seed, then lets the dust settle and looks at the end. Appends to the
// log, where there is one, what has happened.
ModelReport RunGangModel(std::uint64_t seed, std::uint64_t steps, Planted planted,
                         std::vector<std::string>* log = nullptr);

}  // namespace berth::test
