// SPDX-License-Identifier: Apache-2.0
//
// Live: the objects that live as long as the service, for the code that explains and shows them.
#pragma once

#include "cluster/claims/mig_offers.h"
#include "cluster/state/cluster_state.h"
#include "cluster/state/node_domains.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/waste/learned_mix.h"
#include "scoring/waste/waste_report.h"
#include "server/extender/device_rooms.h"
#include "server/extender/extender.h"
#include "server/extender/gang_table.h"
#include "server/extender/room_maker.h"
#include "server/why/readiness.h"
#include "server/why/recent_binds.h"
#include "server/why/room_outlook.h"
#include "server/wire/node/node_json.h"
#include "server/wire/pod/pod_rules.h"

namespace berth {

// References and pointers: they outlive what is made from it. Any thread may use all of it.
struct Live {
  const Extender& extender;
  const ClusterState& state;
  const WaitingPods& waiting;
  const GangTable& gangs;
  NodeDomains& domains;
  const wire::PodRules& pod_rules;
  const wire::NodeRules& node_rules;
  const Readiness& readiness;
  // An API server shows all pods that wait: a pod that it does not show is gone.
  bool shows_waiting = false;
  LeaderName leader = {};                 // while this process does not
  const RecentBinds* binds = nullptr;     // nullptr: the last binds are not kept
  const LearnedMix* mix = nullptr;        // what arriving pods ask for; nullptr: not learned
  WasteReport* waste = nullptr;           // of that mix
  const MigOffers* mig_offers = nullptr;  // nullptr: nothing is offered
  const DeviceRooms* rooms = nullptr;     // nullptr: nobody is evicted for devices
  RoomOutlook* room = nullptr;            // what moves would make idle; nullptr: not looked at
  const RoomMaker* maker = nullptr;       // moves pods; nullptr: there is no API server
};

}  // namespace berth
