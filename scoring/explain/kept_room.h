// SPDX-License-Identifier: Apache-2.0
//
// KeptRoom: what Earmarks keep, for people: what a pod that waits has of it, and who has what on a
// node.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/state/snapshot.h"
#include "cluster/values/pod_request.h"
#include "scoring/reservations/reservations.h"

namespace berth {

// A node that a pod, or its gang, has to itself once pods there have ended.
struct Reservation {
  std::string node;
  std::chrono::minutes in{0};  // it can start then, about
  int ends = 0;                // so many pods of the node have to end before
  int learned = 0;             // of these: by how long pods like them ran
  Duration idle{};             // GPU time for which GPUs stand idle for it until then at most
  // Of these pods the one that is furthest past its end; "": none is.
  std::string late = {};
  PodEnds::Overrun overrun = {};
};
// Empty: there is none.
std::optional<Reservation> ReservationOf(const Earmarks& earmarks, const PodRequest& pod);
// "reserved: starts in about 2 h when 3 pods on n1 end";
// "reserved: starts when ml/a ends, which is 7 min past its word of 2 h".
std::string TextOf(const Reservation& reservation);
// "if they run as long as pods like them did"; empty: the pods say when they end.
std::string ProvisoOf(const Reservation& reservation);
// "up to 4.5 GPU-hours stand idle for it until then"; "": none do.
std::string CostOf(const Reservation& reservation);

// What is kept for a pod that stands alone (no gang).
struct OwnRoom {
  std::string node;
  bool reserved = false;  // pods there have to end first
};
// By UID of the pod. What is said of such a pod holds for no other one, however alike they are.
using OwnRooms = std::map<std::string, OwnRoom, std::less<>>;
OwnRooms OwnRoomsIn(const Earmarks& earmarks);

// For whom room of a node is kept.
struct KeptFor {
  std::string name;                             // "namespace/name" of the pod or gang
  bool is_gang = false;                         // a member of it goes there
  int gpus = 0;                                 // that are idle and kept, begun ones too
  bool awaits = false;                          // pods of the node have to end before it can start
  std::optional<std::chrono::minutes> in = {};  // after which it can; empty: not known
  Duration idle = {};                           // as in Reservation
};
// Of a node of `snapshot`, which may be another one than that of the earmarks; for whom pods are
// evicted or moved first, then the first in line.
std::vector<KeptFor> KeptOn(const Reservations& reservations, const Snapshot& snapshot,
                            NodeIndex node);
// "2 idle GPUs are kept for ml/train-0"; "reserved for ml/train-0, which can start in about 2 h".
std::string TextOf(const KeptFor& kept);

// "40 min", "2 h"; at least a minute.
std::string AboutText(std::chrono::minutes time);
// "4.5 GPU-hours"; "": less than half a tenth.
std::string GpuHoursText(Duration time);
// From here on in whole hours.
inline constexpr std::chrono::minutes kHoursFrom{100};

}  // namespace berth
