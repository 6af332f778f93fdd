// SPDX-License-Identifier: Apache-2.0
//
// What /debug/live answers: all that the live page shows at one moment, as one small JSON object
// (INTERNALS.md has every field). Nodes are in columns, their GPUs a text (GpuCells), and names
// that many nodes share are said once, so that 5,000 nodes of 8 GPUs compress to some kilobytes.
//
// Nothing in it changes by time alone: moments are seconds since 1970, so that two answers about
// the same state are the same text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/mig/repartition_report.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/planners/moves/room_run.h"
#include "topology/domains/domain_tree.h"

namespace berth::wire {

// Why a pod waits, in short.
struct WaitingWhy {
  std::string text;  // empty: not known yet
  std::string fits;  // "on n17 with berth.dev/link: preferred"; empty: nothing small would help
};

struct WaitingRow {
  WaitingPod pod;
  WaitingWhy why;
};

// A pod that got its node.
struct BoundRow {
  std::string pod;  // "namespace/name"
  std::string node;
  std::string devices;  // "GPUs 0-3", "1g.5gb at 4 of GPU 2"
  std::int64_t at = 0;  // seconds since 1970
  // Of the last filter of the pod, nodes that were asked about and those that fit; 0: not known.
  std::size_t candidates = 0, fitting = 0;
};

// So many of the pods that wait are listed, those that have waited longest.
inline constexpr std::size_t kMostWaitingRows = 1000;

// So many namespaces and so many workload classes are listed, those that hold the most GPUs.
inline constexpr std::size_t kMostOwnerRows = 200;

// All but the nodes.
struct LiveNews {
  std::string berth;      // the version of the program
  std::string not_ready;  // why there is nothing to see; empty: there is
  std::string title;      // of a picture that is no live one; empty: it is live
  std::string cluster;    // its name; empty: nobody gave it one
  std::vector<WaitingRow> waiting;
  std::size_t waiting_in_all = 0;  // `waiting` is a part of them
  bool explains_more = false;      // some `why` is on its way
  std::vector<GangView> gangs;     // age: since when, counted from `now`
  WallTime now{};
  std::vector<BoundRow> bound;  // newest first
  std::vector<NodeAdvice> recuts;
  std::shared_ptr<const RoomProgress> room;  // nullptr: Berth has moved nobody
};

// The beginning of the answer, for EncodeLive.
std::string EncodeNews(const LiveNews& news);

// What stays while no node comes, goes or changes its labels: names, models and places. It is most
// of the text, so who has it already is not sent it again.
struct NodeSet {
  std::string text;
  std::string tag;  // equal texts have equal tags
};
// tree: of the snapshot and the levels; nullptr: no levels.
NodeSet EncodeNodeSet(const Snapshot& snapshot, const TopologyLevels& levels,
                      const DomainTree* tree);

// The answer; whole: with the text of the set, else with its tag alone. set: of the snapshot.
std::string EncodeLive(const std::string& news, const Snapshot& snapshot, const NodeSet& set,
                       bool whole);

// "GPUs 0-3,6"; MIG devices and places in words.
std::string DevicesText(const Placement& placement);

}  // namespace berth::wire
