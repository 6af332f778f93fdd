// SPDX-License-Identifier: Apache-2.0
//
// UnwellGpus: the GPUs and MIG devices of each node that the status of a pod calls unhealthy
// (pod_record.h). They are closed by name. They do not count as `missing` any more, whose names
// nobody knows: the kubelet takes the same GPUs from what is allocatable.
//
// A GPU stays unwell after its pod has gone, until a status says that it is healthy again, or the
// node has all of its GPUs again and no pod there says otherwise. One that a claim holds as a whole
// stays unwell until a status says that it is healthy, or its driver publishes other GPUs.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "cluster/node/node.h"
#include "cluster/values/pod_record.h"

namespace berth {

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
