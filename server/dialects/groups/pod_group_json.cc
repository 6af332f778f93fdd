// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/pod_group_json.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "server/dialects/groups/gang_by.h"
#include "server/dialects/groups/pod_group.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/pod/pod_json.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::PodParts;
using wire::ReadObject;
using wire::TextOf;
using wire::WithField;

using simdjson::ondemand::array;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

// Of spec.schedulingConstraints the narrowest level that is known.
void ReadTopology(value constraints, const TopologyLevels& levels,
                  std::optional<std::size_t>& level) {
  WithField(constraints.get_object(), "topology", [&](value keys) {
    for (auto item : keys.get_array()) {
      WithField(item.get_object(), "key", [&](value key) {
        level = std::max(level, FindTopologyLevel(levels, TextOf(key)));
      });
    }
  });
}

// A group of spec.schedulingPolicy.gang; nothing: its parts start by themselves.
std::optional<std::int64_t> ReadGangPolicy(value policy, std::string_view count) {
  std::optional<std::int64_t> least;
  WithField(policy.get_object(), "gang", [&](value gang) {
    WithField(gang.get_object(), count, [&least](value number) { least = number.get_int64(); });
  });
  return least;
}

class PodGroupReader {
 public:
  PodGroupReader(std::string_view convention, const TopologyLevels& levels)
      : convention_(convention), levels_(levels) {}

  Status Read(object fields) {
    std::string kind = "PodGroup";
    ForEachField(fields, [&](std::string_view key, value content) {
      if (key == "kind") kind = std::string_view(content.get_string());
      if (key == "metadata") ReadMetadata(content.get_object());
      if (key == "spec") ReadSpec(content.get_object());
    });
    if (kind != "PodGroup") return Invalid("kind: want PodGroup, got \"" + kind + "\"");
    if (parts_.id.name.empty()) return Invalid("metadata.name: want a name, got \"\"");
    if (convention_ == kKai) NeedSubGroups();
    // Volcano's groups of nobody start pod by pod.
    const std::int64_t least = convention_ == kVolcano ? 0 : 1;
    std::int64_t members = members_.value_or(1);
    if (members < least || members > kMaxGangPods) {
      Refuse(MembersField(), "want a number of pods from " + std::to_string(least) + " to " +
                                 std::to_string(kMaxGangPods) + ", got " + std::to_string(members));
      members = 1;
    }
    SayRoles(members);
    group_.min_members = std::max(static_cast<int>(members), 1);
    if (!group_.parent.empty()) group_.domain.required = level_;
    return {};
  }

  // What pods would say of the group.
  [[nodiscard]] const PodParts& parts() const { return parts_; }
  // All but the levels that it says in annotations.
  [[nodiscard]] const PodGroup& group() const { return group_; }

 private:
  [[nodiscard]] std::string MembersField() const {
    return convention_ == kKubernetes ? "spec.schedulingPolicy.gang.minCount" : "spec.minMember";
  }

  // The first objection counts.
  void Refuse(const std::string& field, const std::string& why) {
    if (group_.refusal.empty()) group_.refusal = field + ": " + why;
  }

  void AddRole(std::string name, std::int64_t minimum) {
    roles_.push_back({std::move(name),
                      static_cast<int>(std::clamp<std::int64_t>(minimum, 0, kMaxGangPods + 1))});
  }

  void SayRoles(std::int64_t members) {
    std::int64_t pods = 0;
    for (const GangRole& role : roles_) pods += role.minimum;
    // Volcano leaves minimums of tasks aside where they are more than that of the group.
    if (convention_ == kVolcano && pods > members) return;
    SetRoles(std::move(roles_), parents_, group_);
  }

  void ReadMetadata(object metadata) {
    ForEachField(metadata, [this](std::string_view key, value content) {
      if (key == "name") parts_.id.name = std::string_view(content.get_string());
      if (key == "namespace") parts_.id.namespace_name = std::string_view(content.get_string());
      if (key != "annotations") return;
      const std::span<const std::string_view> annotations = GroupAnnotations();
      ForEachField(content.get_object(), [&](std::string_view name, value text) {
        if (std::ranges::find(annotations, name) == annotations.end()) return;
        parts_.annotations.insert_or_assign(std::string(name), TextOf(text));
      });
    });
  }

  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (convention_ == kKubernetes) {
        if (key == "schedulingPolicy") members_ = ReadGangPolicy(content, "minCount");
        if (key == "parentCompositePodGroupName") group_.parent = TextOf(content);
        if (key == "schedulingConstraints") ReadTopology(content, levels_, level_);
        return;
      }
      if (key == "minMember") members_ = content.get_int64();
      if (key == "minSubGroup") least_groups_ = content.get_int64();
      if (convention_ == kCoscheduling && key == "scheduleTimeoutSeconds") {
        const std::int64_t seconds = content.get_int64();
        if (seconds > 0) group_.hold = std::chrono::seconds(std::min(seconds, kLongestHoldSeconds));
      }
      if (convention_ == kVolcano) ReadVolcano(key, content);
      if (convention_ == kKai && key == "topologyConstraint") {
        ReadTopologyConstraint(content.get_object());
      }
      if (convention_ == kKai && key == "subGroups") ReadSubGroups(content.get_array());
    });
  }

  void ReadVolcano(std::string_view key, value content) {
    if (key == "networkTopology") ReadNetworkTopology(content.get_object());
    if (key == "minTaskMember") {
      ForEachField(content.get_object(), [this](std::string_view task, value count) {
        AddRole(std::string(task), count.get_int64());
      });
    }
    if (key == "subGroupPolicy") {
      array policies = content.get_array();
      if (policies.is_empty()) return;
      Refuse("spec.subGroupPolicy", "want none, since Berth places a group as one");
    }
  }

  void ReadSubGroups(array groups) {
    for (auto item : groups) {
      std::string role;
      std::int64_t minimum = 0;
      ForEachField(item.get_object(), [&](std::string_view key, value content) {
        if (key == "name") role = TextOf(content);
        if (key == "minMember") minimum = content.get_int64();
        if (key == "minSubGroup") {
          Refuse("spec.subGroups.minSubGroup",
                 "want none, since Berth starts all of them together");
        }
        if (key == "parent") parents_.push_back(TextOf(content));
        if (key != "topologyConstraint") return;
        WithField(content.get_object(), "requiredTopologyLevel", [this](value name) {
          const std::string_view required = name.get_string();
          if (required.empty()) return;
          Refuse("spec.subGroups.topologyConstraint.requiredTopologyLevel",
                 "want none, since Berth places a group as one, got \"" + std::string(required) +
                     "\"");
        });
      });
      AddRole(std::move(role), minimum);
    }
  }

  // A group of KAI without a minimum of its own needs all subgroups, unless it says how many.
  void NeedSubGroups() {
    const std::int64_t all = std::ssize(roles_) - std::ssize(parents_);
    if (least_groups_ && *least_groups_ < all) {
      Refuse("spec.minSubGroup", "want all " + std::to_string(all) + " subgroups, since Berth " +
                                     "starts them together, got " + std::to_string(*least_groups_));
    }
    if (members_ || roles_.empty()) return;
    std::int64_t pods = 0;
    for (const GangRole& role : roles_) {
      if (std::ranges::count(parents_, role.name) == 0) pods += role.minimum;
    }
    members_ = std::max<std::int64_t>(pods, 1);
  }

  void ReadNetworkTopology(object topology) {
    ForEachField(topology, [this](std::string_view key, value content) {
      if (key == "mode") Say(kVolcanoMode, TextOf(content));
      if (key == "highestTierAllowed") {
        Say(kVolcanoTier, std::to_string(std::int64_t{content.get_int64()}));
      }
      if (key == "highestTierName" && !std::string_view(content.get_string()).empty()) {
        Refuse("spec.networkTopology.highestTierName",
               "want highestTierAllowed, since Berth knows tiers by their number");
      }
    });
  }

  void ReadTopologyConstraint(object constraint) {
    ForEachField(constraint, [this](std::string_view key, value content) {
      const bool required = key == "requiredTopologyLevel";
      if (!required && key != "preferredTopologyLevel") return;
      Say(required ? kKaiRequired : kKaiPreferred, TextOf(content));
    });
  }

  // As an annotation, unless there is one.
  void Say(std::string_view annotation, std::string text) {
    if (!text.empty()) parts_.annotations.emplace(std::string(annotation), std::move(text));
  }

  const std::string_view convention_;
  const TopologyLevels& levels_;
  PodParts parts_;
  PodGroup group_;
  std::optional<std::int64_t> members_;
  std::vector<GangRole> roles_;       // as the object has them
  std::vector<std::string> parents_;  // that subgroups name
  std::optional<std::int64_t> least_groups_;
  std::optional<std::size_t> level_;
};

// How near its members have to be, where how near they should be cannot be read.
PodParts WithoutPreferences(PodParts parts) {
  const std::string* const mode = parts.Annotation(kVolcanoMode);
  if (mode != nullptr && *mode == "soft") {
    parts.annotations.erase(std::string(kVolcanoTier));
  }
  for (const std::string_view key : PreferredLevelKeys()) {
    parts.annotations.erase(std::string(key));
  }
  return parts;
}

constexpr std::int64_t kTooMany = kMaxGangPods + 1;

// Sums and products of such numbers stay in range.
std::int64_t Count(value content) {
  return std::clamp<std::int64_t>(content.get_int64(), 0, kTooMany);
}

// The spec of a Job, or of the template of one.
struct JobSpec {
  std::int64_t parallelism = 1;
  std::optional<std::int64_t> completions = {};
  bool wants_gpus = false;

  // Pods at a time, once so many have succeeded.
  [[nodiscard]] std::int64_t pods(std::int64_t succeeded) const {
    if (!completions) return parallelism;
    return std::min(parallelism, std::max<std::int64_t>(*completions - succeeded, 0));
  }
};

// By claims too: what these ask for is in objects of their own.
bool WantsGpus(const PodRequest& pod) { return pod.shape.wants_gpu() || !pod.claims.empty(); }

JobSpec ReadJobSpec(object spec, const wire::PodRules& rules) {
  JobSpec job;
  ForEachField(spec, [&](std::string_view key, value content) {
    if (key == "parallelism") job.parallelism = Count(content);
    if (key == "completions") job.completions = Count(content);
    if (key == "template") {
      job.wants_gpus = WantsGpus(wire::DecodePod(content.get_object(), rules));
    }
  });
  return job;
}

// That another job has to run first, or to have ended.
struct Dependency {
  std::string name;
  bool ended = false;
};

// One of the jobs of a JobSet.
struct ReplicatedJob {
  std::string name;
  std::int64_t replicas = 1;
  JobSpec job;
  std::vector<Dependency> after;
};

ReplicatedJob ReadReplicatedJob(object fields, const wire::PodRules& rules) {
  ReplicatedJob of;
  ForEachField(fields, [&](std::string_view key, value content) {
    if (key == "name") of.name = TextOf(content);
    if (key == "replicas") of.replicas = Count(content);
    if (key == "template") {
      WithField(content.get_object(), "spec",
                [&](value spec) { of.job = ReadJobSpec(spec.get_object(), rules); });
    }
    if (key != "dependsOn") return;
    for (auto item : content.get_array()) {
      Dependency& on = of.after.emplace_back();
      ForEachField(item.get_object(), [&on](std::string_view name, value text) {
        if (name == "name") on.name = TextOf(text);
        if (name == "status") on.ended = TextOf(text) == "Complete";
      });
    }
  });
  return of;
}

class ControllerReader {
 public:
  ControllerReader(std::string_view kind, const wire::PodRules& rules)
      : kind_(kind), rules_(rules) {}

  void Read(std::string_view key, value content) {
    if (key == "spec" && kind_ == kJob) job_ = ReadJobSpec(content.get_object(), rules_);
    if (key == "spec" && kind_ == kPodGang) {
      group_ = ReadPodGang(content.get_object(), rules_.levels());
    }
    if (key == "spec" && kind_ == kDisaggregatedSet) ReadRoles(content.get_object());
    if (key == "spec" && kind_ == kCompositePodGroup) ReadComposite(content.get_object());
    if (key == "spec" && kind_ == kJobSet) ReadJobSetSpec(content.get_object());
    if (key == "spec" && kind_ == kLeaderWorkerSet) ReadSetSpec(content.get_object());
    if (key == "status" && kind_ == kJob) {
      WithField(content.get_object(), "succeeded",
                [this](value count) { succeeded_ = Count(count); });
    }
  }

  PodGroup Group() {
    if (kind_ == kJob) Say(job_.wants_gpus ? job_.pods(succeeded_) : 1);
    if (kind_ == kJobSet) SayJobSet();
    if (kind_ == kDisaggregatedSet) {
      std::int64_t pods = 0;
      for (const GangRole& role : roles_) pods += role.minimum;
      Say(pods);
      SetRoles(std::move(roles_), {}, group_);
    }
    if (kind_ == kLeaderWorkerSet) {
      Say(leader_first_ || !wants_gpus_ ? 1 : size_);
      group_.leader_differs = leader_ && *leader_ != worker_;
    }
    return std::move(group_);
  }

 private:
  void Say(std::int64_t pods) {
    if (pods > kMaxGangPods) {
      group_.refusal = "pods: want at most " + std::to_string(kMaxGangPods) + ", got more";
      pods = 1;
    }
    group_.min_members = static_cast<int>(std::max<std::int64_t>(pods, 1));
  }

  void ReadComposite(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "parentCompositePodGroupName") group_.parent = TextOf(content);
      if (key == "schedulingConstraints") {
        ReadTopology(content, rules_.levels(), group_.domain.required);
      }
      if (key != "schedulingPolicy") return;
      const auto least = ReadGangPolicy(content, "minGroupCount");
      if (!least) return;
      group_.min_groups = static_cast<int>(std::clamp<std::int64_t>(*least, 1, kTooMany));
      if (*least > 0) return;
      group_.refusal =
          "spec.schedulingPolicy.gang.minGroupCount: want 1 or more, got " + std::to_string(*least);
    });
  }

  void ReadJobSetSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "replicatedJobs") {
        for (auto item : content.get_array()) {
          jobs_.push_back(ReadReplicatedJob(item.get_object(), rules_));
        }
      }
      if (key != "startupPolicy") return;
      WithField(content.get_object(), "startupPolicyOrder",
                [this](value order) { in_order_ = TextOf(order) == "InOrder"; });
    });
  }

  void SayJobSet() {
    std::map<std::string, const ReplicatedJob*, std::less<>> by_name;
    for (const ReplicatedJob& of : jobs_) by_name[of.name] = &of;
    std::set<const ReplicatedJob*> ended;
    for (const ReplicatedJob& of : jobs_) {
      for (const Dependency& on : of.after) {
        const auto first = by_name.find(on.name);
        if (first == by_name.end()) continue;
        if (on.ended) ended.insert(first->second);
        const bool both = of.job.wants_gpus && first->second->job.wants_gpus;
        if (both) group_.one_by_one = OneByOne::kInOrder;
      }
    }
    std::int64_t pods = 0, with_gpus = 0;
    for (const ReplicatedJob& of : jobs_) {
      with_gpus += of.job.wants_gpus ? 1 : 0;
      if (!ended.contains(&of)) pods = std::min(pods + of.replicas * of.job.pods(0), kTooMany);
    }
    if (in_order_ && with_gpus > 1) group_.one_by_one = OneByOne::kInOrder;
    Say(with_gpus > 0 ? pods : 1);
  }

  void ReadSetSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) { ReadSet(key, content); });
  }
  void ReadSet(std::string_view key, value content) {
    if (key == "startupPolicy") leader_first_ = TextOf(content) == "LeaderReady";
    if (key == "replicas") replicas_ = Count(content);
    if (key != "leaderWorkerTemplate") return;
    ForEachField(content.get_object(), [this](std::string_view name, value part) {
      if (name == "size") size_ = Count(part);
      if (name == "leaderTemplate") leader_ = ShapeOf(part);
      if (name == "workerTemplate") worker_ = ShapeOf(part);
    });
  }

  void ReadRoles(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "placementPolicy") {
        std::string type, topology;
        ForEachField(content.get_object(), [&](std::string_view name, value text) {
          if (name == "type") type = TextOf(text);
          if (name == "topology") topology = TextOf(text);
        });
        if (type.empty() || type == "None") return;
        group_.domain.required = FindTopologyLevel(rules_.levels(), topology);
      }
      if (key != "roles") return;
      for (auto item : content.get_array()) ReadRole(item.get_object());
    });
  }
  // A LeaderWorkerSet, whose spec is the role's or in the role.
  void ReadRole(object fields) {
    GangRole role;
    bool is_fixed = true;
    size_ = replicas_ = 1;
    leader_first_ = false;
    ForEachField(fields, [&](std::string_view key, value content) {
      if (key == "name") role.name = TextOf(content);
      if (key == "scaling") {
        WithField(content.get_object(), "mode",
                  [&](value mode) { is_fixed = TextOf(mode) != "External"; });
      }
      key == "spec" ? ReadSetSpec(content.get_object()) : ReadSet(key, content);
    });
    role.minimum = static_cast<int>(leader_first_ ? 1 : size_);
    if (is_fixed && replicas_ > 0) roles_.push_back(std::move(role));
  }
  RequestShape ShapeOf(value template_of_pods) {
    const PodRequest pod = wire::DecodePod(template_of_pods.get_object(), rules_);
    wants_gpus_ = wants_gpus_ || WantsGpus(pod);
    return pod.shape;
  }

  const std::string_view kind_;
  const wire::PodRules& rules_;
  PodGroup group_;
  JobSpec job_;
  std::int64_t succeeded_ = 0;
  std::vector<ReplicatedJob> jobs_;
  bool in_order_ = false;
  std::int64_t size_ = 1, replicas_ = 1;
  bool leader_first_ = false;
  std::vector<GangRole> roles_;
  std::optional<RequestShape> leader_;  // that has a template of its own
  RequestShape worker_;
  bool wants_gpus_ = false;  // the one or the other
};

}  // namespace

Result<PodGroup> DecodePodGroup(const PaddedText& text, std::string_view convention,
                                const TopologyLevels& levels, std::string& problem) {
  PodGroupReader reader(convention, levels);
  BERTH_TRY_STATUS(ReadObject(text, [&reader](object fields) { return reader.Read(fields); }));
  const PodId& id = reader.parts().id;
  PodGroup group = reader.group();
  group.namespace_name = id.namespace_name;
  group.name = id.name;
  problem = group.refusal;
  Result<DomainAsk> domain = DomainAskOf(reader.parts(), levels);
  if (!domain) {
    if (problem.empty()) problem = domain.error().message;
    domain = DomainAskOf(WithoutPreferences(reader.parts()), levels);
  }
  if (!domain && group.refusal.empty()) group.refusal = domain.error().message;
  if (domain && *domain != DomainAsk{}) group.domain = *domain;
  return group;
}

Result<PodGroup> DecodeController(const PaddedText& text, std::string_view kind,
                                  const wire::PodRules& rules, std::string& problem) {
  ControllerReader reader(kind, rules);
  BERTH_TRY(const wire::ObjectMeta meta,
            wire::ReadNamed(text, kind, [&reader](std::string_view key, value content) {
              reader.Read(key, content);
            }));
  PodGroup group = reader.Group();
  group.namespace_name = meta.namespace_name;
  group.name = meta.name;
  group.uid = meta.uid;
  problem = group.refusal;
  return group;
}

}  // namespace berth::dialects
