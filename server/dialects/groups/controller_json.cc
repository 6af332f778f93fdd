// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/controller_json.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "server/dialects/groups/gang_by.h"
#include "server/wire/json/object_reader.h"
#include "server/wire/pod/pod_json.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::TextOf;

using simdjson::ondemand::array;
using simdjson::ondemand::object;
using simdjson::ondemand::value;

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

JobSpec ReadJobSpec(object spec, const wire::PodRules& rules) {
  JobSpec job;
  ForEachField(spec, [&](std::string_view key, value content) {
    if (key == "parallelism") job.parallelism = Count(content);
    if (key == "completions") job.completions = Count(content);
    if (key == "template") {
      job.wants_gpus = wire::DecodePod(content.get_object(), rules).shape.wants_gpu();
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
      ForEachField(content.get_object(), [&](std::string_view name, value spec) {
        if (name == "spec") of.job = ReadJobSpec(spec.get_object(), rules);
      });
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
    if (key == "spec" && kind_ == kJobSet) ReadJobSetSpec(content.get_object());
    if (key == "spec" && kind_ == kLeaderWorkerSet) ReadSetSpec(content.get_object());
    if (key == "status" && kind_ == kJob) {
      ForEachField(content.get_object(), [this](std::string_view name, value count) {
        if (name == "succeeded") succeeded_ = Count(count);
      });
    }
  }

  PodGroup Group() {
    if (kind_ == kJob) Say(job_.wants_gpus ? job_.pods(succeeded_) : 1);
    if (kind_ == kJobSet) SayJobSet();
    if (kind_ == kLeaderWorkerSet) {
      const bool wants_gpus = worker_.wants_gpu() || (leader_ && leader_->wants_gpu());
      Say(leader_first_ || !wants_gpus ? 1 : size_);
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

  void ReadJobSetSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "replicatedJobs") {
        for (auto item : content.get_array()) {
          jobs_.push_back(ReadReplicatedJob(item.get_object(), rules_));
        }
      }
      if (key != "startupPolicy") return;
      ForEachField(content.get_object(), [this](std::string_view name, value order) {
        if (name == "startupPolicyOrder") in_order_ = TextOf(order) == "InOrder";
      });
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
    ForEachField(spec, [this](std::string_view key, value content) {
      if (key == "startupPolicy") leader_first_ = TextOf(content) == "LeaderReady";
      if (key != "leaderWorkerTemplate") return;
      ForEachField(content.get_object(), [this](std::string_view name, value part) {
        if (name == "size") size_ = Count(part);
        if (name == "leaderTemplate") leader_ = ShapeOf(part);
        if (name == "workerTemplate") worker_ = ShapeOf(part);
      });
    });
  }
  [[nodiscard]] RequestShape ShapeOf(value pod) const {
    return wire::DecodePod(pod.get_object(), rules_).shape;
  }

  const std::string_view kind_;
  const wire::PodRules& rules_;
  PodGroup group_;
  JobSpec job_;
  std::int64_t succeeded_ = 0;
  std::vector<ReplicatedJob> jobs_;
  bool in_order_ = false;
  std::int64_t size_ = 1;
  bool leader_first_ = false;
  std::optional<RequestShape> leader_;  // that has a template of its own
  RequestShape worker_;
};

}  // namespace

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
