// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/pod_group_json.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "server/dialects/groups/pod_group.h"
#include "server/wire/json/object_meta.h"
#include "server/wire/json/object_reader.h"

namespace berth::dialects {
namespace {

using simdjson::ondemand::object;
using simdjson::ondemand::value;
using wire::ForEachField;
using wire::TextOf;

class PodGangReader {
 public:
  explicit PodGangReader(const TopologyLevels& levels) : levels_(levels) {}

  PodGroup Read(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      const bool is_one = key == "podgroups";
      if (is_one || key == "topologyConstraintGroupConfigs") {
        for (auto item : content.get_array()) {
          ReadGroup(item.get_object(), is_one, "spec." + std::string(key));
        }
      }
      if (key == "topologyConstraint") {
        DomainAsk& whole = group_.domain;
        whole.required = ReadPack(content, "spec.topologyConstraint", whole.preferred);
      }
    });
    if (pods_ > kMaxGangPods) {
      Refuse("spec.podgroups.minReplicas: want at most " + std::to_string(kMaxGangPods) +
             " pods in all, got more");
      pods_ = 1;
    }
    group_.min_members = static_cast<int>(std::max<std::int64_t>(pods_, 1));
    const std::size_t groups = roles_.size();
    SetRoles(std::move(roles_), {}, group_);
    SayParts(groups);
    return std::move(group_);
  }

 private:
  // The first objection counts.
  void Refuse(std::string why) {
    if (group_.refusal.empty()) group_.refusal = std::move(why);
  }

  // One pod group, or what several of them have together (podGroupNames).
  void ReadGroup(object group, bool is_one, const std::string& field) {
    GangRole role;
    GangPart part;
    std::optional<std::size_t> level, preferred;
    ForEachField(group, [&](std::string_view key, value content) {
      if (key == "name") role.name = TextOf(content);
      if (key == "minReplicas") {
        const std::int64_t least = content.get_int64();
        if (least < 0) Refuse(field + ".minReplicas: want 0 or more, got " + std::to_string(least));
        role.minimum = static_cast<int>(std::clamp<std::int64_t>(least, 0, kMaxGangPods + 1));
      }
      if (key == "podGroupNames") {
        for (auto item : content.get_array()) {
          const std::string_view name = item.get_string();
          if (name.size() <= wire::kMostNameBytes) part.roles.emplace_back(name);
        }
      }
      if (key == "topologyConstraint") {
        level = ReadPack(content, field + ".topologyConstraint", preferred);
      }
    });
    if (is_one) part.roles = {role.name};
    std::ranges::sort(part.roles);
    if (part.roles.empty()) level = preferred = std::nullopt;
    if (level) group_.parts.push_back({part.roles, *level});
    if (preferred) group_.parts.push_back({std::move(part.roles), *preferred, true});
    if (!is_one) return;
    pods_ = std::min<std::int64_t>(pods_ + role.minimum, kMaxGangPods + 1);
    roles_.push_back(std::move(role));
  }

  // The level that is required.
  std::optional<std::size_t> ReadPack(value constraint, const std::string& field,
                                      std::optional<std::size_t>& preferred) {
    std::optional<std::size_t> required;
    ForEachField(constraint.get_object(), [&](std::string_view pack, value levels) {
      if (pack != "packConstraint") return;
      ForEachField(levels.get_object(), [&](std::string_view key, value label) {
        const bool is_required = key == "required";
        if (!is_required && key != "preferred") return;
        const std::string text = TextOf(label);
        const auto level = FindTopologyLevel(levels_, text);
        if (level) {
          (is_required ? required : preferred) = level;
        } else if (is_required && !text.empty()) {
          Refuse(field + ".packConstraint.required: " + NoLevel(levels_, text));
        }
      });
    });
    return required;
  }

  // A name is at most in one part of several groups, and in one of its own.
  void SayParts(std::size_t groups) {
    if (SetParts(group_)) return;
    Refuse(groups > kMaxGangRoles
               ? "spec.podgroups: want at most " + std::to_string(kMaxGangRoles) +
                     " where levels of their own are required, got " + std::to_string(groups)
               : "spec.podgroups: want names of at most " + std::to_string(wire::kMostNameBytes) +
                     " bytes, each in one of topologyConstraintGroupConfigs, where levels "
                     "of their own are required");
  }

  const TopologyLevels& levels_;
  PodGroup group_;
  std::int64_t pods_ = 0;
  std::vector<GangRole> roles_;  // as the object has them
};

}  // namespace

PodGroup ReadPodGang(object spec, const TopologyLevels& levels) {
  return PodGangReader(levels).Read(spec);
}

}  // namespace berth::dialects
