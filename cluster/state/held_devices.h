// SPDX-License-Identifier: Apache-2.0
//
// HeldDevices: what pods are known to hold of each GPU and each MIG device of each node, as sums.
// So one question about a GPU costs the same whether three pods name it or three thousand: any
// tenant may create pods that name a node and a GPU.
//
// Assumed devices (given_grants.h) are left out, and those of pods that were given theirs: they
// need no record of who said what, and Node sees to what others claim of them (given_grants.h).
// Nodes need not be known; MIG devices are counted on known nodes alone.
//
// Most pods hold a GPU each, so what is kept of one is small: two entries of 24 bytes in arrays of
// the node. To add and to remove one moves the entries behind it, which is less than what Node does
// with its pods then.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cluster/node/mig_use.h"
#include "cluster/node/node.h"
#include "cluster/state/cluster_event.h"
#include "cluster/values/pod_record.h"

namespace berth {

// Arrays that grow by an eighth and not to double their size: where there is one for each of many
// nodes, what a vector takes in advance would be a third of all their memory.

// Makes room for one more entry. Iterators are valid no longer.
template <class T>
void ReserveOneMore(std::vector<T>& entries) {
  if (entries.size() < entries.capacity()) return;
  entries.reserve(entries.size() + entries.size() / 8 + 1);
}

// What one pod holds of a GPU, or that it holds a MIG device (0, 1000, 0).
struct HeldPart {
  int gpu = 0;  // its index
  int milli = 0;
  std::int64_t memory_mib = 0;
  const PodRecord* pod = nullptr;
  // By GPU, the largest first; equal ones by the pod's UID.
  friend bool operator<(const HeldPart& a, const HeldPart& b);
};

// What all pods hold of a GPU.
struct HeldGpu {
  int gpu = 0;
  std::int64_t milli = 0;
  std::int64_t memory_mib = 0;
};

struct HeldOnNode {
  std::vector<HeldGpu> gpus = {};                         // where pods hold something, by index
  std::vector<HeldPart> parts = {};                       // in their order
  std::map<MigSlot, std::multiset<HeldPart>> slots = {};  // devices of one user
  [[nodiscard]] bool empty() const { return gpus.empty() && slots.empty(); }
  // nullptr: nobody holds any of it.
  [[nodiscard]] const HeldGpu* Find(int gpu) const;
  [[nodiscard]] std::span<const HeldPart> PartsOf(int gpu) const;
};

// ClusterState guards it. Records are those of its books: they stay where they are until they are
// removed here.
class HeldDevices {
 public:
  // node: as the books have it when the record is added; nullptr: not known.
  void Add(const PodRecord& record, const NodeSpec* node);
  // Requires: added, with the same node.
  void Remove(const PodRecord& record, const NodeSpec* node);
  // The node has changed, or is not known any more (nullptr). pods: all that are on it.
  void Recount(const std::string& name, const PodRecords& pods, const NodeSpec* node);
  // Valid until the next change.
  [[nodiscard]] const HeldOnNode& On(const std::string& node) const;

 private:
  std::unordered_map<std::string, HeldOnNode> by_node_;
};

// NodeClaims: what ResourceClaims hold on each node and what pods can get there by new ones, as the
// last events of each source had it. Also of nodes that are not known (yet). ClusterState guards
// it.

class NodeClaims {
 public:
  // Returns whether that changed anything.
  bool Put(const GpusClaimed& claimed);
  bool Put(const GpusOffered& offered);
  bool Put(const SliceGpusOffered& offered);

  // What claims hold on the node, of all sources; nullptr: nothing.
  [[nodiscard]] Node::Claims HeldOn(const std::string& node) const;
  // The spec with what is offered on its node, unless the Node publishes MIG devices, or GPUs, of
  // its own. A spec that this made may come again.
  [[nodiscard]] NodeSpec WithOffers(NodeSpec spec);
  // The node is gone; what is offered there stays.
  void Forget(const std::string& node) { said_.erase(node); }

 private:
  struct Held {
    std::map<std::string, std::vector<ClaimedGpu>> by_source;
    Node::Claims all;  // of these, one after the other
  };
  std::unordered_map<std::string, Held> held_;
  std::unordered_map<std::string, NodeMig> offered_;
  std::unordered_map<std::string, SliceGpus> in_slices_;
  // What the Node said, of nodes that got GPUs here.
  std::unordered_map<std::string, NodeSpec> said_;
};

// UnwellGpus: the GPUs and MIG devices of each node that the status of a pod calls unhealthy
// (pod_record.h). They are closed by name. They do not count as `missing` any more, whose names
// nobody knows: the kubelet takes the same GPUs from what is allocatable.
//
// A GPU stays unwell after its pod has gone, until a status says that it is healthy again, or the
// node has all of its GPUs again and no pod there says otherwise. One that a claim holds as a whole
// stays unwell until a status says that it is healthy, or its driver publishes other GPUs.

// ClusterState guards it. Bounded by the pods and GPUs in the books.
class UnwellGpus {
 public:
  // A pod on that node says that now, and said that before; nullptr: nothing. spec: the node as
  // the books have it; nullptr: not known. Returns whether the node has to be closed anew (Close).
  bool Hear(const std::string& node, const GivenDevices* before, const GivenDevices* now,
            const NodeSpec* spec);
  // Closes what is unwell there in the node, as it was said. pods, claims: that are on it.
  void Close(NodeSpec& said, const PodRecords& pods, const Node::Claims& claims);
  // Whether anything is unwell there.
  [[nodiscard]] bool Knows(std::string_view node) const { return by_node_.contains(node); }
  // The node as it was said last; `spec` where nothing is closed here.
  [[nodiscard]] const NodeSpec& SaidOf(const NodeSpec& spec) const;
  void Forget(std::string_view node);
  // Its driver has published its GPUs anew.
  void ForgetClaimed(std::string_view node);

 private:
  struct Entry {
    std::set<std::string> ids;             // that are not well, by the last status about each
    std::set<std::string> claimed = {};    // UUIDs of the GPUs that claims had, of these
    std::shared_ptr<const NodeSpec> said;  // nullptr: as in the books
  };
  std::map<std::string, Entry, std::less<>> by_node_;
};

}  // namespace berth
