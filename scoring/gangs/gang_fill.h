// SPDX-License-Identifier: Apache-2.0
//
// GangFill: members of a gang into a domain, by score: the tightest domain below that holds what is
// left, else the one that holds most; within the narrowest domain each member to the node that the
// profile likes best, the members that are hardest to place first.
//
// What the members' workload classes wish of nodes counts beside tightness, if their profile heeds
// it (scorers.h): a wish of weight 100 as much as the difference between a domain that the
// gang fills and one that it hardly uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cluster/state/snapshot.h"
#include "scoring/engine/engine.h"
#include "scoring/engine/profile_tables.h"
#include "scoring/gangs/gang_class.h"
#include "scoring/gangs/gang_ranks.h"
#include "topology/domains/domain_tree.h"

namespace berth {

class GangFill {
 public:
  // from: that the transaction began with; the engine is asked about it: its tables follow no plan.
  // devices: of the members' claims; nullptr: they have none.
  // Requires: all of them outlive it; the classes' room is that of the transaction now.
  GangFill(Engine& engine, std::shared_ptr<const Snapshot> from, const DomainTree& tree,
           std::span<const GangClass> classes, GangDevices* devices, Transaction& transaction);

  // How many members fit the domain, each class alone.
  [[nodiscard]] std::int64_t Fits(TopologyDomain domain) const;
  // False where some role has fewer members that fit, each class alone.
  [[nodiscard]] bool MayMeet(TopologyDomain domain, std::span<const RoleNeed> needs) const;
  // False where the whole gang is too much for what the domain has free of GPUs and CPU in all,
  // even if each class alone would fit.
  [[nodiscard]] bool MayHoldAll(TopologyDomain domain) const;
  // Which part of the domain the whole gang would take, the classes' parts added up. Above 1 it may
  // fit all the same. Finite where every class fits.
  [[nodiscard]] double Load(TopologyDomain domain) const { return LoadOf(domain, all_); }
  // What its nodes are worth to a GPU of the gang, on average over the room that they have.
  [[nodiscard]] double Worth(TopologyDomain domain) const { return WorthOf(domain, all_); }
  // In the order of the tree.
  [[nodiscard]] std::vector<NodeIndex> NodesIn(TopologyDomain domain) const;

  // Puts as many members there as it can, before the others so many as the needs say. flat: all
  // nodes of the domain are alike.
  std::vector<ClassPlace> Fill(TopologyDomain domain, bool flat,
                               std::span<const RoleNeed> needs = {});

 private:
  using Counts = std::vector<std::int64_t>;  // per class

  [[nodiscard]] std::span<const TopologyDomain> Below(TopologyDomain domain) const {
    return std::span(below_).subspan(first_below_[domain],
                                     first_below_[domain + 1] - first_below_[domain]);
  }
  // An amount that nodes have free and members ask for: what the gang needs, what domains have.
  struct Amount {
    std::int64_t needed = 0;
    std::vector<std::int64_t> free;  // [vertex]
  };
  template <class NeededBy, class FreeOn>
  [[nodiscard]] Amount Sum(NeededBy needed_by, FreeOn free_on) const;

  void SumAmounts();
  void SumWorth();

  [[nodiscard]] double LoadOf(TopologyDomain domain, const Counts& counts) const;
  [[nodiscard]] double WorthOf(TopologyDomain domain, const Counts& counts) const;
  [[nodiscard]] bool Holds(TopologyDomain domain, const Counts& counts) const;
  // GPU compute of as many of them as fit, about.
  [[nodiscard]] std::int64_t HeldBy(TopologyDomain domain, const Counts& counts) const;
  [[nodiscard]] std::optional<TopologyDomain> Next(std::span<const TopologyDomain> domains,
                                                   const std::vector<char>& used) const;
  // Of each class so many as the needs call for.
  [[nodiscard]] Counts Needed(TopologyDomain domain, std::span<const RoleNeed> needs) const;
  void FillLeft(TopologyDomain domain, bool flat);
  void Spread(TopologyDomain domain);
  void FillNodes(std::span<const NodeIndex> nodes);
  void FillWith(std::size_t c, std::span<const NodeIndex> nodes);
  bool Put(std::size_t c, NodeIndex node, PlanTable& table);
  // Whether one more of the class has its devices there, beside those that were put.
  [[nodiscard]] bool HasDevices(std::size_t c, NodeIndex node) const;
  PlanTable& TableOf(std::size_t c);

  Engine& engine_;
  const std::shared_ptr<const Snapshot> from_;
  const DomainTree& tree_;
  const std::span<const GangClass> classes_;
  GangDevices* const devices_;
  Transaction& transaction_;
  Counts all_;
  std::vector<std::vector<std::int64_t>> room_;  // [class][vertex]
  std::vector<Amount> amounts_;                  // of a gang of several classes
  // [class][vertex] the worth of its room there; empty for a class without wishes that count
  std::vector<std::vector<double>> worth_;
  std::vector<std::size_t> first_below_;          // [vertex], and one more: into below_
  std::vector<TopologyDomain> below_;             // children, in order
  std::vector<std::optional<PlanTable>> tables_;  // [class], once it is asked
  Counts left_;                                   // to be put
  Counts put_;
  std::vector<ClassPlace> places_;
};

}  // namespace berth
