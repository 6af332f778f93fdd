// SPDX-License-Identifier: Apache-2.0
//
// Which group a pod belongs to, how many members it is to have, and how near to each other they are
// to be - in our own words and in those of other schedulers and controllers.
//
// Group (the first that is there), in whose words (GangId::convention), and its numbers:
//   annotation berth.dev/gang-by                       berth         as of berth.dev/gang, else its
//                                                                    controller's (gang_by.h)
//   annotation berth.dev/gang                          berth         total: .../gang-size,
//                                                                    minimum: .../gang-min
//   label      scheduling.x-k8s.io/pod-group           coscheduling  its PodGroup has the minimum
//   field      spec.schedulingGroup.podGroupName       kubernetes    the same
//   annotation gang.scheduling.koordinator.sh/name     koordinator   .../total-number,
//                                                                    .../min-available
//   label      pod-group.scheduling.sigs.k8s.io/name   labels        label .../min-available
//   label or annotation kueue.x-k8s.io/pod-group-name  kueue         .../pod-group-total-count
//   label      grove.io/podgang                        grove       its PodGang has the minimum
//   annotation pod-group-name                          kai           its PodGroup has the minimum
//   annotation scheduling.k8s.io/group-name,
//              scheduling.volcano.sh/group-name        volcano       the same
//   the controllers of the configuration               berth         their object's (gang_by.h)
// One that says a minimum of 1 comes after all others, and so does a PodGroup that Volcano's
// controller makes for every pod. The order does not depend on objects, which may come later.
//
// A minimum that nobody says is the total; a pod group of Kueue that may be admitted before all of
// its pods are there (.../pod-group-fast-admission) has the minimum 1. Koordinator's
// .../waiting-time is the hold time. docs/gangs.md says what is ignored and what is refused.
//
// Levels of the topology, by name or by label key; the first family with a key that is there:
//   berth.dev/required-domain, berth.dev/preferred-domain
//   kueue.x-k8s.io/podset-required-topology, -preferred-topology, -unconstrained-topology
//   kai.scheduler/topology-required-placement, -preferred-placement
//   volcano.sh/network-topology-mode (hard, soft) and -highest-tier: tier 1 is the narrowest level.
//
// What the pod does not say is taken from its PodGroup object, where there is one
// (pod_group_json.h).
//
// Where Kueue has already chosen, as its node selector shows, Berth follows: what Kueue was asked
// for is done.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cluster/values/pod_request.h"
#include "server/wire/pod/pod_parts.h"
#include "topology/domains/domain_tree.h"

namespace berth::dialects {

// What PodGroup objects say in fields of their own as well (pod_group_json.h).
inline constexpr std::string_view kKaiRequired = "kai.scheduler/topology-required-placement";
inline constexpr std::string_view kKaiPreferred = "kai.scheduler/topology-preferred-placement";
inline constexpr std::string_view kVolcanoMode = "volcano.sh/network-topology-mode";
inline constexpr std::string_view kVolcanoTier = "volcano.sh/network-topology-highest-tier";

// The annotations above.
std::span<const std::string_view> GroupAnnotations();

// The conventions whose PodGroups have the minimum (group_dialect.cc).
inline constexpr std::string_view kCoscheduling = "coscheduling";
inline constexpr std::string_view kKubernetes = kNativeGroups;
inline constexpr std::string_view kVolcano = "volcano";
inline constexpr std::string_view kKai = "kai";
inline constexpr std::string_view kGrove = "grove";

inline constexpr std::int64_t kLongestHoldSeconds = 10'000'000;

// "row" is no topology level; want zone, rack or the node label of one.
std::string NoLevel(const TopologyLevels& levels, std::string_view value);

// The annotations above by which a level is preferred.
std::span<const std::string_view> PreferredLevelKeys();

// What the pod says of its gang. controllers: whose pods are gangs without saying so (gang_by.h).
// Error: kInvalidArgument naming the key of a number that makes no sense, or of a demand that
// nobody here meets; the gang then has its name alone.
Status ReadGang(const wire::PodParts& parts, Gang& gang,
                std::span<const std::string> controllers = {});

// The pod's role in that gang; "" = it says none.
std::string RoleOf(const wire::PodParts& parts, const Gang& gang);

// Error: kInvalidArgument naming the key: a level that is not configured, a value that cannot be
// read, packs of pods (podset-slice-*) that nobody has placed.
Result<DomainAsk> DomainAskOf(const wire::PodParts& parts, const TopologyLevels& levels);

// The seconds of a text as Go's time.ParseDuration reads it: "1h30m", "600s", "1.5m". Nothing: it
// is none, or negative.
std::optional<double> GoSeconds(std::string_view text);

}  // namespace berth::dialects
