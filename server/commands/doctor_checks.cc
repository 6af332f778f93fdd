// SPDX-License-Identifier: Apache-2.0
#include "server/commands/doctor_command.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/text.h"
#include "server/dialects/groups/pod_group.h"
#include "server/dialects/other_parts.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using wire::In;
using wire::Json;
using wire::TextIn;
using Texts = std::vector<std::string>;

struct Findings {
  std::vector<Finding> all;
  void Wrong(std::string cure, std::string cause) {
    all.push_back({true, std::move(cure), std::move(cause)});
  }
  void Note(std::string cure, std::string cause) {
    all.push_back({false, std::move(cure), std::move(cause)});
  }
};

bool HasName(const SchedulerPart& part, const std::string& name) {
  return std::ranges::find(part.names, name) != part.names.end();
}

void BerthRuns(const ClusterParts& c, Findings& out) {
  if (c.berth_pods == 0) {
    out.Wrong("Install Berth: `kubectl berth doctor --install` prints the steps",
              "no pod has the label app.kubernetes.io/name=berth");
  } else if (c.ready.empty()) {
    out.Wrong("Look at `kubectl -n " + c.space + " describe pods`",
              "no pod of Berth is ready, " + c.why_not);
  } else if (c.leader.empty()) {
    out.Wrong("Look at `kubectl -n " + c.space + " logs " + c.ready.front() + "`",
              "no ready pod of Berth leads (label berth.dev/leader)");
  }
  if (!c.config_problem.empty()) {
    out.Wrong("Correct Berth's ConfigMap in " + c.space, c.config_problem);
  }
}

void SomebodyAsks(const ClusterParts& c, Findings& out) {
  if (c.berth_pods == 0) return;
  Texts without, hidden;  // a configuration; and one that cannot be seen
  bool is_broken = false;
  for (const SchedulerPart& part : c.schedulers) {
    if (!part.problem.empty()) {
      out.Wrong("Correct the configuration of " + part.where, part.problem);
      is_broken = true;
    } else if (part.file.empty()) {
      without.push_back(part.where);
    } else if (part.config.is_null()) {
      hidden.push_back(part.where);
    }
  }
  const std::string lacks = Listed(without) + " has no --config";
  if (c.asking.empty() && hidden.empty() && !is_broken &&
      (!c.seen.unread.contains("ConfigMap") || !without.empty())) {
    out.Wrong("Register Berth with kube-scheduler (docs/install.md, step 4)",
              "no scheduler asks Berth" + (without.empty() ? "" : ", " + lacks));
  } else if (!without.empty() && !hidden.empty()) {
    out.Wrong("Register Berth on every control plane node (docs/install.md, step 4)", lacks);
  } else if (c.asking.empty() && !hidden.empty()) {
    out.Note("Look at its --config on the control plane node",
             "doctor cannot see whether " + Listed(hidden) + " asks Berth");
  }
}

void PodsNameTheOneThatAsks(const ClusterParts& c, Findings& out) {
  std::map<std::string, Texts> elsewhere;
  std::map<std::string, std::set<std::string>> on_nodes;
  for (const GpuPodPart& pod : c.pods) {
    if (!c.asking.contains(pod.scheduler)) elsewhere[pod.scheduler].push_back(pod.name);
    if (!pod.node.empty()) on_nodes[pod.node].insert(pod.scheduler);
  }
  if (c.asking.empty() || elsewhere.empty()) return;
  std::size_t others = 0;
  for (const auto& [name, pods] : elsewhere) others += pods.size();
  for (const auto& [node, names] : on_nodes) {
    const auto asks = [&](const std::string& name) { return c.asking.contains(name); };
    if (std::ranges::all_of(names, asks) || std::ranges::none_of(names, asks)) continue;
    return out.Wrong("Keep each GPU node for one scheduler, by a taint (docs/second-scheduler.md)",
                     "on " + node + " GPU pods are of " + Join(names, " and "));
  }
  for (const auto& [name, pods] : elsewhere) {
    const std::string cure = "Give GPU pods schedulerName: " + *c.asking.begin();
    const std::string cause = CountText(pods.size(), "GPU pod") + " of " + name +
                              ", which does not ask Berth: " + Listed(pods);
    others == c.pods.size() ? out.Wrong(cure, cause) : out.Note(cure, cause);
  }
}

// Since both are there. Where none is known to ask, one whose configuration cannot be seen may.
void PodsHaveADecision(const ClusterParts& c, Findings& out) {
  if (c.berth_pods == 0) return;
  std::map<std::string, Texts> past;
  for (const GpuPodPart& pod : c.pods) {
    const auto part = std::ranges::find_if(
        c.schedulers, [&](const auto& one) { return HasName(one, pod.scheduler); });
    const bool is_seen = part != c.schedulers.end();
    const bool may_ask =
        c.asking.contains(pod.scheduler) ||
        (c.asking.empty() && is_seen && !part->file.empty() && part->config.is_null());
    const WallTime from = std::max(c.since, is_seen ? part->started : WallTime());
    if (may_ask && !pod.by_berth && pod.placed > from) past[pod.scheduler].push_back(pod.name);
  }
  for (const auto& [name, pods] : past) {
    const std::string cause =
        CountText(pods.size(), "GPU pod") + " placed without Berth: " + Listed(pods);
    const bool has_others = std::ranges::any_of(c.pods, &GpuPodPart::by_berth);
    has_others ? out.Note("Look whether these pods name their node themselves", cause)
               : out.Wrong("Register Berth with " + name + " (docs/install.md, step 4)", cause);
  }
}

struct Entry {
  const Json& json;
  const SchedulerPart& part;
  const ClusterParts& c;
  [[nodiscard]] bool is_ignorable() const { return In(json, {"ignorable"}) == true; }
  [[nodiscard]] bool speaks_tls() const {
    return TextIn(json, {"urlPrefix"}).starts_with("https:");
  }
  [[nodiscard]] double weight() const {
    const Json& weight = In(json, {"weight"});
    return weight.is_number() ? weight.get<double>() : 1;
  }
};
// What an entry that has the key must not be.
struct EntryRule {
  const char* key;
  bool (*is_broken)(const Entry& entry);
  const char *cure, *cause;
  bool is_wrong = true;
};
// A weight of 31 outweighs images and idle CPU, 141 all that kube-scheduler scores.
constexpr EntryRule kEntryRules[] = {
    {"urlPrefix",
     [](const Entry& e) {
       return e.c.has_config && e.speaks_tls() == e.c.config.server.tls.certificate_file.empty();
     },
     "Set urlPrefix to the protocol of Berth", "only one of them speaks TLS"},
    {"urlPrefix", [](const Entry& e) { return In(e.json, {"nodeCacheCapable"}) != true; },
     "Set nodeCacheCapable: true", "kube-scheduler sends whole nodes, and takes all for idle"},
    {"prioritizeVerb", [](const Entry& e) { return e.weight() < 31; }, "Set weight: 141",
     "images and idle CPU outweigh GPUs"},
    {"prioritizeVerb", [](const Entry& e) { return e.weight() >= 31 && e.weight() < 141; },
     "Set weight: 141", "other scores may outweigh GPUs", false},
    {"preemptVerb", [](const Entry& e) { return e.is_ignorable(); },
     "Set ignorable: false for preemptVerb", "pods are evicted without Berth while it is away"},
    {"filterVerb",
     [](const Entry& e) { return HasName(e.part, "default-scheduler") && !e.is_ignorable(); },
     "Set ignorable: true for filterVerb", "no pod of the cluster is placed while Berth is away"},
};

void EntriesAreRight(const ClusterParts& c, Findings& out) {
  constexpr std::size_t kAlwaysScored = 100;  // nodes
  for (const SchedulerPart& part : c.schedulers) {
    if (part.berth.empty()) continue;
    const std::string where = " in the configuration of " + part.where;
    for (const EntryRule& rule : kEntryRules) {
      const bool is_broken = std::ranges::any_of(part.berth, [&](const Json& entry) {
        return !TextIn(entry, {rule.key}).empty() && rule.is_broken({entry, part, c});
      });
      if (is_broken) out.all.push_back({rule.is_wrong, rule.cure + where, rule.cause});
    }
    for (const char* verb : {"filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb"}) {
      if (std::ranges::all_of(
              part.berth, [verb](const Json& entry) { return TextIn(entry, {verb}).empty(); })) {
        out.Wrong(std::string("Add ") + verb + where, "no entry of Berth has it");
      }
    }
    const int hold = c.config.gangs.hold_seconds;
    if (std::ranges::any_of(part.berth, [hold](const Json& entry) {
          const double timeout = dialects::GoSeconds(TextIn(entry, {"httpTimeout"})).value_or(0);
          return !TextIn(entry, {"bindVerb"}).empty() && timeout <= hold;
        })) {
      out.Wrong(
          "Set httpTimeout: " + std::to_string(std::max(60, hold + 10)) + "s for bindVerb" + where,
          "Berth holds binds of a gang up to " + std::to_string(hold) + " s (gangs.holdSeconds)");
    }
    const std::size_t nodes = c.seen.Of("Node").size();
    if (In(part.config, {"percentageOfNodesToScore"}) != 100 && nodes > kAlwaysScored) {
      out.Wrong("Set percentageOfNodesToScore: 100" + where,
                "kube-scheduler offers Berth a sample of " + CountText(nodes, "node"));
    }
    for (const Json& entry : part.berth) {
      const Json& managed = In(entry, {"managedResources"});
      std::set<std::string> missing;
      for (const GpuNodePart& node : c.nodes) {
        for (const std::string& name : node.resources) {
          if (std::ranges::none_of(
                  managed, [&](const Json& row) { return TextIn(row, {"name"}) == name; })) {
            missing.insert(name);
          }
        }
      }
      if (managed.is_null() || missing.empty()) continue;
      out.Wrong("Add " + Join(missing, ", ") + " to managedResources" + where,
                "nodes offer it, and Berth does not bind its pods");
    }
  }
}

void VersionsFit(const ClusterParts& c, Findings& out) {
  const auto minor_of = [](const std::string& version) {
    return version.starts_with("v1.") ? std::atoi(version.c_str() + 3) : 0;
  };
  const int server = minor_of(c.seen.version);
  if (server == 0) return;
  if (server < 31) out.Wrong("Upgrade Kubernetes to 1.31", "the API server is " + c.seen.version);
  for (const SchedulerPart& part : c.schedulers) {
    const int minor = minor_of(part.version);
    if (part.berth.empty() || minor == 0 || minor == server || minor + 1 == server) continue;
    out.Wrong("Give " + part.where + " the version of the API server (docs/second-scheduler.md)",
              "it is " + part.version + ", the API server " + c.seen.version);
  }
}

void NodesOfferGpus(const ClusterParts& c, Findings& out) {
  Texts lost, several, broken, unswitched, without;
  std::map<std::string, Texts> none;  // by agent
  std::map<DriverUpgrade, Texts> to_come;
  std::string how, ways, why;
  for (const GpuNodePart& node : c.nodes) {
    if (node.paths.size() > 1) {
      several.push_back(node.name);
      ways = Join(node.paths, " and ");
    }
    if (node.is_switched_over && node.agent.empty()) {
      lost.push_back(node.name);
    } else if (!node.agent.empty() && node.agent != "ready") {
      broken.push_back(node.name);
      why = node.agent;
    } else if (node.paths.empty()) {
      const bool comes = !node.to_come.text.empty();
      (comes ? to_come[node.to_come] : none[node.silent_agent]).push_back(node.name);
    } else if (node.kubelet_chooses() && !node.carries_out) {
      (node.agent.empty() ? without : unswitched).push_back(node.name);
      if (!node.agent.empty() && !node.is_switched_over) how = node.switch_over;
    }
  }
  if (!lost.empty()) {
    out.Wrong("Start berth-node there, or switch the plugin back (docs/make-the-choice-real.md)",
              "the device plugin looks for berth-node on " + Listed(lost));
  }
  if (!broken.empty()) {
    out.Wrong("Look at `kubectl -n berth-node describe pods`",
              "berth-node is not ready (" + why + ") on " + Listed(broken));
  }
  for (const auto& [agent, nodes] : none) {
    out.Wrong("Start the device plugin there, or read its log on " + nodes.front(),
              "the device plugin" + (agent.empty() ? "" : " of " + agent) +
                  " is gone, or offers no GPU, on " + CountText(nodes.size(), "GPU node") + ": " +
                  Listed(nodes));
  }
  for (const auto& [cause, nodes] : to_come) {
    out.all.push_back({cause.failed,
                       "Look again at " + Listed(nodes) + (cause.failed ? "" : " later"),
                       "no GPU is offered there yet, " + cause.text});
  }
  if (!several.empty()) {
    out.Wrong("Let one of them give the GPUs of a node", ways + " both do on " + Listed(several));
  }
  if (!unswitched.empty()) {
    out.Wrong(how.empty() ? "Read the log of berth-node there" : "Switch the plugin over: " + how,
              "berth-node carries out no choice on " + Listed(unswitched));
  }
  if (!without.empty() && c.berth_pods > 0) {
    out.Note("Install berth-node (docs/make-the-choice-real.md)",
             "the kubelet chooses other GPUs than Berth on " + Listed(without));
  }
}

void NodesGiveAllTheyHave(const ClusterParts& c, Findings& out) {
  std::map<std::string, Texts> on;
  for (const GpuNodePart& node : c.nodes) {
    if (!node.trouble.empty()) on[node.trouble].push_back(node.name);
  }
  for (const auto& [trouble, nodes] : on) {
    out.Wrong("Look at `kubectl berth explain node " + nodes.front() + "` (docs/my-pod-waits.md)",
              CountText(nodes.size(), "GPU node") + " " + trouble + ": " + Listed(nodes));
  }
}

void PoliciesAreThere(const ClusterParts& c, Findings& out) {
  const std::string kind = "ValidatingAdmissionPolicyBinding";
  Texts missing;
  if (c.has_agent) {
    missing = {"berth-node-annotations", "berth-node-pods", "berth-node-events", "berth-given",
               "berth-decision"};
  }
  if (c.Has("berth-keep-nodes", "patch", "nodes")) missing.emplace_back("berth-keep-nodes");
  for (const Json& binding : c.seen.Of(kind))
    std::erase(missing, TextIn(binding, {"spec", "policyName"}));
  if (missing.empty() || c.seen.unread.contains(kind)) return;
  out.Wrong("Apply the component with its policies again",
            "no policy limits Berth's rights: " + Join(missing, ", "));
}

void RightsAreThere(const ClusterParts& c, Findings& out) {
  if (c.berth_pods == 0 || c.seen.unread.contains("ClusterRole")) return;
  for (const dialects::NeededPart& part : dialects::NeededParts()) {
    if (!part.is_needed(c.config) || c.Has(part.role, part.verb, part.resource)) continue;
    out.Wrong(std::string("Apply manifests/") + part.component + " again",
              std::string("Berth may not ") + part.verb + " " + part.resource);
  }
  if (c.autoscaler.empty() || c.Has("berth-keep-nodes", "patch", "nodes")) return;
  const std::string cure = "Add components/keep-nodes (chart: keepNodes.enabled)";
  if (c.config.make_room.idle_nodes > 0) {
    out.Wrong(cure, c.autoscaler + " deletes the nodes that makeRoom.idleNodes keeps");
  } else {
    out.Note(cure, c.autoscaler + " may delete nodes that Berth keeps for a gang");
  }
}

// The API server notes when a field of an object was written. What a lease says of that moment is
// by the clock of its writer.
void ClocksAgree(const ClusterParts& c, Findings& out) {
  constexpr seconds kMostApart{5};
  for (const Json& lease : c.seen.Of("Lease")) {
    const std::string space = TextIn(lease, {"metadata", "namespace"});
    if (space != "kube-node-lease" && space != c.space) continue;
    std::optional<WallTime> written;
    for (const Json& field : In(lease, {"metadata", "managedFields"})) {
      written = std::max(written, wire::ParseTime(TextIn(field, {"time"})));
    }
    const auto said = wire::ParseTime(TextIn(lease, {"spec", "renewTime"}));
    if (!said || !written || std::chrono::abs(*said - *written) <= kMostApart) continue;
    const auto apart = std::chrono::duration_cast<seconds>(*said - *written).count();
    out.Wrong("Set the clock of " + TextIn(lease, {"spec", "holderIdentity"}) + " by NTP",
              "it is " + std::to_string(std::abs(apart)) + " s " +
                  (apart > 0 ? "ahead of" : "behind") + " that of the API server");
  }
}

void CertificateLasts(const ClusterParts& c, Findings& out) {
  const std::string name = "\nberth_tls_certificate_expiry_timestamp_seconds ";
  const std::size_t at = c.seen.metrics.find(name);
  if (at == std::string::npos) return;
  const double ends = std::atof(c.seen.metrics.c_str() + at + name.size());  // 0: there is none
  const double left = ends - static_cast<double>(std::chrono::system_clock::to_time_t(c.seen.now));
  constexpr double kDay = 24 * 3600;
  if (ends == 0 || left > 14 * kDay) return;
  out.Wrong("Make new certificates (docs/tls.md)",
            left < 0 ? "Berth's certificate has ended"
                     : "Berth's certificate ends in " +
                           CountText(static_cast<std::size_t>(left / kDay), "day"));
}

void AllWasRead(const ClusterParts& c, Findings& out) {
  if (c.seen.unread.empty()) return;
  out.Note("Read them too (docs/doctor.md)", "not looked at: " + Join(c.seen.unread, ", "));
}

using DoctorCheck = void (*)(const ClusterParts&, Findings&);
constexpr DoctorCheck kChecks[] = {BerthRuns,         SomebodyAsks,         PodsNameTheOneThatAsks,
                                   PodsHaveADecision, EntriesAreRight,      VersionsFit,
                                   NodesOfferGpus,    NodesGiveAllTheyHave, PoliciesAreThere,
                                   RightsAreThere,    ClocksAgree,          CertificateLasts,
                                   AllWasRead};

}  // namespace

std::vector<Finding> FindingsOf(const ClusterParts& cluster) {
  Findings findings;
  for (const DoctorCheck check : kChecks) check(cluster, findings);
  std::stable_partition(findings.all.begin(), findings.all.end(),
                        [](const Finding& finding) { return finding.is_wrong; });
  return std::move(findings.all);
}

std::vector<std::string> FactsOf(const ClusterParts& c) {
  Texts facts;
  if (c.berth_pods > 0) {
    facts.push_back("Berth: " + std::to_string(c.ready.size()) + " of " +
                    CountText(c.berth_pods, "pod") + " ready, " +
                    (c.leader.empty() ? "none" : c.leader) + " leads");
  }
  std::map<std::string, std::size_t> counts;
  for (const GpuPodPart& pod : c.pods) {
    ++counts["GPU pods of " + pod.scheduler +
             (c.asking.contains(pod.scheduler) ? ", which asks Berth"
                                               : ", which does not ask Berth")];
  }
  for (const GpuNodePart& node : c.nodes) {
    const std::string how = node.paths.empty() ? "nothing" : Join(node.paths, " and ");
    ++counts["GPU nodes by " + how + (node.carries_out ? " behind berth-node" : "")];
  }
  for (const auto& [what, count] : counts) facts.push_back(what + ": " + std::to_string(count));
  return facts;
}

}  // namespace berth
