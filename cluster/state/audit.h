// SPDX-License-Identifier: Apache-2.0
//
// Audit: whether the free amounts of ClusterState are what its pods and claims leave free. Every
// number here must be 0; another number is a fault of Berth, of a program that binds past it, or of
// a kubelet that knows no shares and chooses by itself.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/state/cluster_state.h"

namespace berth {

struct AuditReport {
  // GPUs on which pods hold more than there is, or which have more users than their agent serves
  // (devices held by claims, mig_use.h, count as granted), and MIG devices that cannot exist
  // together with others.
  std::size_t double_grants = 0;
  // GPUs with shares that the kubelet gave to another pod as a whole; no double grants.
  std::size_t given_over_shares = 0;
  std::size_t unknown_devices = 0;  // grants of GPUs or MIG devices that the node does not have
  std::size_t orphaned_reservations = 0;  // overdue for longer than the grace
  std::size_t differences = 0;            // nodes whose free amounts are not what their pods leave
  // Nodes on which pods with unknown devices (they were bound past Berth) hold more than the others
  // leave. A node that shows no GPU at all, while its device plugin starts, is not one of them.
  std::size_t overfull_nodes = 0;
  // The first of the double grants: "GPU 3 of node n1: ns/a, ns/b".
  std::vector<std::string> double_granted = {};
  // The first of the GPUs with shares that were given as a whole, in the same words.
  std::vector<std::string> over_shares = {};
  // The first of the overfull nodes: "node n1 has 2 GPUs; bound past Berth: ns/a, ns/b".
  std::vector<std::string> overfull = {};
  friend bool operator==(const AuditReport&, const AuditReport&) = default;
};

// Recomputes everything from the pods. Pods on unknown nodes are left out.
AuditReport Audit(const ClusterState::Contents& contents, Instant now, Duration grace);

}  // namespace berth
