// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/groups/pod_group_json.h"

#include <algorithm>
#include <span>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "server/dialects/groups/pod_group.h"
#include "server/wire/object_reader.h"

namespace berth::dialects {
namespace {

using wire::ForEachField;
using wire::PodParts;
using wire::ReadObject;

using simdjson::ondemand::object;
using simdjson::ondemand::value;

class PodGroupReader {
 public:
  explicit PodGroupReader(std::string_view convention) : convention_(convention) {}

  Status Read(object fields) {
    std::string kind = "PodGroup";
    ForEachField(fields, [&](std::string_view key, value content) {
      if (key == "kind") kind = std::string_view(content.get_string());
      if (key == "metadata") ReadMetadata(content.get_object());
      if (key == "spec") ReadSpec(content.get_object());
    });
    if (kind != "PodGroup") return Invalid("kind: want PodGroup, got \"" + kind + "\"");
    if (parts_.id.name.empty()) return Invalid("metadata.name: want a name, got \"\"");
    if (members_ < 0 || members_ > std::numeric_limits<int>::max()) {
      return Invalid(MembersField() + ": want a number of pods, got " + std::to_string(members_));
    }
    return {};
  }

  // What pods would say of the group.
  [[nodiscard]] const PodParts& parts() const { return parts_; }
  [[nodiscard]] int min_members() const { return std::max(static_cast<int>(members_), 1); }

 private:
  [[nodiscard]] std::string MembersField() const {
    return convention_ == kKubernetes ? "spec.schedulingPolicy.gang.minCount" : "spec.minMember";
  }

  void ReadMetadata(object metadata) {
    ForEachField(metadata, [this](std::string_view key, value content) {
      if (key == "name") parts_.id.name = std::string_view(content.get_string());
      if (key == "namespace") parts_.id.namespace_name = std::string_view(content.get_string());
      if (key != "annotations") return;
      const std::span<const std::string_view> annotations = GroupAnnotations();
      ForEachField(content.get_object(), [&](std::string_view name, value text) {
        if (std::ranges::find(annotations, name) == annotations.end()) return;
        parts_.annotations.insert_or_assign(std::string(name),
                                            std::string(std::string_view(text.get_string())));
      });
    });
  }

  void ReadSpec(object spec) {
    ForEachField(spec, [this](std::string_view key, value content) {
      if (convention_ == kKubernetes) {
        if (key == "schedulingPolicy") ReadPolicy(content.get_object());
        return;
      }
      if (key == "minMember") members_ = content.get_int64();
      if (convention_ == kVolcano && key == "networkTopology") {
        ReadNetworkTopology(content.get_object());
      }
      if (convention_ == kKai && key == "topologyConstraint") {
        ReadTopologyConstraint(content.get_object());
      }
    });
  }

  void ReadPolicy(object policy) {
    ForEachField(policy, [this](std::string_view key, value content) {
      if (key != "gang") return;
      ForEachField(content.get_object(), [this](std::string_view name, value count) {
        if (name == "minCount") members_ = count.get_int64();
      });
    });
  }

  void ReadNetworkTopology(object topology) {
    ForEachField(topology, [this](std::string_view key, value content) {
      if (key == "mode") Say(kVolcanoMode, std::string(std::string_view(content.get_string())));
      if (key == "highestTierAllowed") {
        Say(kVolcanoTier, std::to_string(std::int64_t{content.get_int64()}));
      }
    });
  }

  void ReadTopologyConstraint(object constraint) {
    ForEachField(constraint, [this](std::string_view key, value content) {
      const bool required = key == "requiredTopologyLevel";
      if (!required && key != "preferredTopologyLevel") return;
      Say(required ? kKaiRequired : kKaiPreferred,
          std::string(std::string_view(content.get_string())));
    });
  }

  // As an annotation, unless there is one.
  void Say(std::string_view annotation, std::string text) {
    if (!text.empty()) parts_.annotations.emplace(std::string(annotation), std::move(text));
  }

  const std::string_view convention_;
  PodParts parts_;
  std::int64_t members_ = 0;
};

}  // namespace

Result<PodGroup> DecodePodGroup(const PaddedText& text, std::string_view convention,
                                const TopologyLevels& levels, std::string& problem) {
  PodGroupReader reader(convention);
  BERTH_TRY_STATUS(ReadObject(text, [&reader](object fields) { return reader.Read(fields); }));
  const PodId& id = reader.parts().id;
  PodGroup group{id.namespace_name, id.name, reader.min_members(), {}};
  const Result<DomainAsk> domain = DomainAskOf(reader.parts(), levels);
  if (domain) group.domain = *domain;
  if (!domain) problem = domain.error().message;
  return group;
}

}  // namespace berth::dialects
