// SPDX-License-Identifier: Apache-2.0
//
// What the verbs of the Extender need, by what a question is answered, and what filter says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/state/snapshot.h"
#include "scoring/engine/engine.h"
#include "scoring/reservations/reservations.h"
#include "scoring/waste/request_mix.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/extender/kept/earmark_table.h"
#include "server/extender/ports/ports.h"

namespace berth {

// References: they outlive the Extender.
struct ExtenderParts {
  ClusterState& state;
  PodBinder& binder;
  DecisionSink& sink;
  const Clock& clock;
  const DisruptionBudgets* budgets = nullptr;  // nullptr: there are none
  LearnedMix* mix = nullptr;                   // hears of every pod that arrives
  NodeDomains* domains = nullptr;              // nullptr: no levels, and no pod asks for one
  // Arrived tells which pods arrive, as the API server shows them. Without that a pod arrives
  // when it is filtered for the first time.
  bool watches_arrivals = false;
  // kube-scheduler is in front, which knows CPU, memory, taints and which nodes are ready: it
  // decides about pods that ask for no GPU. Where there is none we do.
  bool behind_scheduler = false;
  GangTable* gangs = nullptr;               // nullptr: pods of a gang are pods like others
  WaitingPods* waiting = nullptr;           // hears of members that are asked about
  PodWaker* waker = nullptr;                // of members that sleep; nullptr: nobody wakes them
  GangHistory* history = nullptr;           // nullptr: nothing is known of pods that have ended
  const DeviceRooms* rooms = nullptr;       // nullptr: none is made
  const GangClaims* claims = nullptr;       // nullptr: Berth chooses no devices of claims
  MoveHolds* moves = nullptr;               // nullptr: nobody is moved
  const RunTimeTable* run_times = nullptr;  // nullptr: nobody learns how long pods run
  const JobEndTable* job_ends = nullptr;    // nullptr: nobody knows until when Jobs run
};
// What can be exchanged while it runs.
struct ExtenderPolicy {
  std::shared_ptr<Engine> engine;
  Duration reservation_time;       // how long a bind may take
  std::size_t nodes_to_score = 0;  // that Filter lets pass, see there; 0: all of them
  GangTable::Settings gangs = {};
  NodeGuard guard = NodeGuard::kOff;           // of GPU nodes
  std::optional<EarmarkLimits> earmarks = {};  // empty: nothing is kept for pods that wait
  bool moves_keep_model = true;                // MoveRules::keep_model
};

// What a question is answered by. An answer takes it once, at the beginning, and hands
// it to all functions that the answer needs: what changes meanwhile is for the next question.
struct ExtenderMoment {
  std::shared_ptr<const Snapshot> snapshot;
  std::shared_ptr<const ExtenderPolicy> policy;
  Reservations reservations = {};  // what is kept for pods and gangs that wait
  std::uint64_t openings = 0;      // DeviceRooms::openings before these were taken
};

// What filter says of a pod.
struct FilterAnswer {
  std::vector<Reason> reasons = {};  // one per candidate
  Reason unknown = Reason::kFits;    // of nodes asked about that the snapshot does not have
  bool fits = false;                 // some node takes the pod, one that we do not know perhaps
  // No node does, and...
  bool may_change = false;   // ...a newer state may say otherwise within moments
  bool for_evicted = false;  // ...room is being made for the pod (pending_pods.h)
  // ...but for a room of others' (device_rooms.h): DeviceRooms::openings when it was asked.
  std::optional<std::uint64_t> kept_out = {};
  // The pod's gang keeps it from every node, also from those that are not known: why. "" = it does
  // not. `reasons` tell then for which nodes an eviction may help.
  std::string nowhere = {};
  bool gang_wakes = false;  // ...and GangTable has it asked about again
  // It fits once these are allocated together, and then Extender::Allocated is to be called. It
  // goes on then where `goes_on`, else it has to be asked about anew.
  std::vector<ClaimOrder> allocate = {};
  bool goes_on = false;
};

}  // namespace berth
