// SPDX-License-Identifier: Apache-2.0
//
// KoordinatorLinks: puts nodes and Koordinator's Devices together. A Device overrides the links
// that the product catalogue has for the node of its name (server/wire/node_links.h has the
// precedence), and names the UUIDs of the GPUs where the node does not. Node and Device may come
// in either order; when the Device is deleted, the catalogue's links return.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cluster/cluster_state.h"
#include "cluster/link_library.h"
#include "server/dialects/koordinator/koordinator_json.h"
#include "server/kube/unreadable_objects.h"
#include "server/kube/watch_source.h"

namespace berth::dialects {

inline constexpr std::string_view kKoordinatorSource = "koordinator Device";

// Any thread may call any function.
class KoordinatorLinks {
 public:
  using Object = KoordinatorDevice;  // a table as a TableSink wants it

  // References: they outlive the object.
  KoordinatorLinks(ClusterState& state, LinkLibrary& library, kube::OnUnreadable report)
      : state_(state), library_(library), unfit_("devices", std::move(report)) {}

  // Publishes what the sink of nodes has, with the links that the nodes have now. Requires: valid
  // specs.
  void Publish(std::vector<ClusterEvent> events, const kube::PublishNodes& next)
      BERTH_EXCLUDES(mutex_);

  void Put(Object device) BERTH_EXCLUDES(mutex_);
  void Remove(std::string_view namespace_name, std::string_view name) BERTH_EXCLUDES(mutex_);
  void Reset(std::vector<Object> devices) BERTH_EXCLUDES(mutex_);

  // Devices with another number of GPUs than their node has.
  [[nodiscard]] std::size_t unfit() const { return unfit_.count(); }

 private:
  void NameGpus(NodeSpec& spec) BERTH_REQUIRES(mutex_);
  void Relink(NodeSpec& spec) BERTH_REQUIRES(mutex_);
  // The nodes of these names that are there, with the links that they have now.
  void RelinkNodes(const std::vector<std::string>& names) BERTH_REQUIRES(mutex_);

  ClusterState& state_;
  LinkLibrary& library_;
  kube::UnreadableObjects unfit_;  // changed under the mutex
  Mutex mutex_;
  std::map<std::string, Object, std::less<>> devices_ BERTH_GUARDED_BY(mutex_);  // by node
  // Nodes whose UUIDs, as the state has them, are those of a Device.
  std::set<std::string, std::less<>> named_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace berth::dialects
