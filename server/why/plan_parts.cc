// SPDX-License-Identifier: Apache-2.0
//
// Objects that stand for others, each with pods of its own.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/why/plan_objects.h"

namespace berth::wire {
namespace {

// So many of them. Error: more than `most`.
Result<std::size_t> CountUpTo(std::size_t most, const Json* of, const std::string& path,
                              const char* key) {
  BERTH_TRY(const std::int64_t count, CountOf(of, path, key, static_cast<std::int64_t>(most)));
  if (std::cmp_less_equal(count, most)) return static_cast<std::size_t>(count);
  return Invalid(path + "." + key + ": want at most " + std::to_string(most) + ", got more");
}

// Each role of each slice is one. Its spec is the role's, or in the role.
Status ForEachSet(const Json& object, const std::string& path, std::size_t most,
                  const TakePart& take) {
  const Json* const spec = FieldOf(object, "spec");
  const Json& roles = ItemsOf(spec, "roles");
  BERTH_TRY(const std::size_t slices, CountUpTo(most / std::max<std::size_t>(roles.size(), 1), spec,
                                                path + ".spec", "slices"));
  // A role may be large: it is copied once for all slices.
  const Json* const of = FieldOf(object, "metadata");
  std::vector<Json> sets;
  for (const Json& role : roles) {
    const Json* const inner = FieldOf(role, "spec");
    sets.push_back({{"apiVersion", "leaderworkerset.x-k8s.io/v1"},
                    {"metadata", {{"namespace", WordOf(of, "namespace")}}},
                    {"spec", inner == nullptr ? role : *inner}});
  }
  for (std::size_t slice = 0; slice < slices; ++slice) {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const std::string role = WordOf(&roles[i], "name"), number = std::to_string(slice);
      sets[i]["metadata"]["name"] = WordOf(of, "name") + "-" + number + "-" + role;
      sets[i]["metadata"]["labels"] = {{"disaggregatedset.x-k8s.io/name", WordOf(of, "name")},
                                       {"disaggregatedset.x-k8s.io/slice", number},
                                       {"disaggregatedset.x-k8s.io/role", role}};
      BERTH_TRY_STATUS(take(sets[i], "LeaderWorkerSet"));
    }
  }
  return {};
}

// The objects that it wraps.
Status ForEachWrapped(const Json& object, const std::string& path, const TakePart& take) {
  for (const Json& component : ItemsOf(FieldOf(object, "spec"), "components")) {
    const Json* const wrapped = FieldOf(component, "template");
    const std::string kind = WordOf(wrapped, "kind");
    if (kind.empty() || kind == "AppWrapper") {
      return Invalid(path + ".spec.components: want templates of other objects, each with a kind");
    }
    BERTH_TRY_STATUS(take(*wrapped, kind));
  }
  return {};
}

// As a PodGang has it. Domains are named as in Grove's ClusterTopology: by the name of a level.
Json ConstraintOf(const Json* of) {
  const Json* const said = FieldOf(of, "topologyConstraint");
  const Json* const given = FieldOf(said, "pack");
  Json pack = given != nullptr && given->is_object() ? *given : Json::object();
  if (const std::string old = WordOf(said, "packDomain"); !old.empty()) pack["required"] = old;
  Json constraint;
  if (!pack.empty()) constraint["packConstraint"] = std::move(pack);
  return constraint;
}

class Cliques {
 public:
  Cliques(const Json& object, const std::string& path, std::size_t most, const TakePart& take)
      : object_(object),
        path_(path),
        most_(most),
        take_(take),
        name_(WordOf(FieldOf(object, "metadata"), "name")),
        template_(FieldOf(FieldOf(object, "spec"), "template")) {}

  Status Take() {
    if (name_.empty()) return Invalid(path_ + ".metadata.name: want a name, got none");
    BERTH_TRY_STATUS(ReadCliques());
    BERTH_TRY_STATUS(ReadGroups());
    BERTH_TRY(const std::size_t replicas, Count(FieldOf(object_, "spec"), "replicas"));
    for (std::size_t r = 0; r < replicas; ++r) {
      const std::string gang = name_ + "-" + std::to_string(r);
      Json spec = SpecOf(template_);
      for (const Json* clique : alone_) BERTH_TRY_STATUS(AddClique(*clique, gang, spec));
      std::vector<std::pair<std::string, Json>> beyond;
      for (const Group& group : groups_) {
        BERTH_TRY_STATUS(Spend(0));
        const std::string of = gang + "-" + WordOf(group.object, "name");
        for (std::size_t i = 0; i < group.replicas; ++i) {
          const bool is_beyond = i >= group.least;
          // Beyond the minimum each is a gang of its own, in its domain or that of the set.
          const bool has_own = FieldOf(group.object, "topologyConstraint") != nullptr;
          Json own = SpecOf(is_beyond && !has_own ? template_ : group.object);
          for (const Json* clique : group.cliques) {
            BERTH_TRY_STATUS(AddClique(*clique, of + "-" + std::to_string(i), own));
          }
          is_beyond ? void(beyond.emplace_back(of + "-" + std::to_string(i - group.least), own))
                    : Merge(std::move(own), spec);
        }
      }
      BERTH_TRY_STATUS(TakeGang(gang, std::move(spec)));
      for (auto& [name, own] : beyond) BERTH_TRY_STATUS(TakeGang(name, std::move(own)));
    }
    return {};
  }

 private:
  struct Group {
    const Json* object = nullptr;
    std::size_t replicas = 0, least = 0;
    std::vector<const Json*> cliques = {};
  };

  Status ReadCliques() {
    const std::string path = path_ + ".spec.template.cliques";
    const Json& cliques = ItemsOf(template_, "cliques");
    for (const Json& clique : cliques) {
      if (const std::string name = WordOf(&clique, "name"); !name.empty()) {
        cliques_.emplace(name, &clique);
        continue;
      }
      return Invalid(path + ": want objects with a name, got " + JsonText(clique).substr(0, 100));
    }
    return cliques.empty() ? Invalid(path + ": want a list of cliques, got none") : Status();
  }

  Status ReadGroups() {
    std::set<std::string> scaled;
    for (const Json& object : ItemsOf(template_, "podCliqueScalingGroups")) {
      Group group{&object};
      BERTH_TRY(group.replicas, Count(&object, "replicas"));
      BERTH_TRY(group.least, Count(&object, "minAvailable"));
      std::set<std::string> names;
      for (const Json& name : ItemsOf(&object, "cliqueNames")) {
        const auto clique = cliques_.find(name.is_string() ? name.get<std::string>() : "");
        if (clique == cliques_.end()) {
          return Invalid(path_ +
                         ".spec.template.podCliqueScalingGroups: cliqueNames: want names of "
                         "cliques, got " +
                         JsonText(name).substr(0, 100));
        }
        if (names.insert(clique->first).second) group.cliques.push_back(clique->second);
      }
      scaled.merge(names);
      groups_.push_back(std::move(group));
    }
    for (const Json& clique : ItemsOf(template_, "cliques")) {
      if (!scaled.contains(WordOf(&clique, "name"))) alone_.push_back(&clique);
    }
    return {};
  }

  Result<std::size_t> Count(const Json* of, const char* key) {
    return CountUpTo(most_, of, path_ + ".spec", key);
  }

  static Json SpecOf(const Json* of) {
    Json spec = {{"podgroups", Json::array()}, {"cliques", Json::array()}};
    if (Json constraint = ConstraintOf(of); !constraint.is_null()) {
      spec["topologyConstraint"] = std::move(constraint);
    }
    return spec;
  }

  // Each gang has copies of its cliques.
  [[nodiscard]] Status Spend(std::size_t bytes) {
    constexpr std::size_t kMost = std::size_t{16} << 20, kEach = 1024;
    bytes_ += bytes + kEach;
    return bytes_ <= kMost ? Status()
                           : Invalid(path_ + ": want at most 16 MiB of cliques, got more");
  }

  Status AddClique(const Json& clique, const std::string& of, Json& spec) {
    BERTH_TRY_STATUS(Spend(JsonText(clique).size()));
    const Json* const inner = FieldOf(clique, "spec");
    const std::string name = of + "-" + WordOf(&clique, "name");
    Json group = {{"name", name}, {"minReplicas", 1}, {"podReferences", Json::array()}};
    for (const char* key : {"replicas", "minAvailable"}) {
      if (const Json* const said = FieldOf(inner, key); said != nullptr) {
        group["minReplicas"] = *said;
      }
    }
    if (Json constraint = ConstraintOf(&clique); !constraint.is_null()) {
      group["topologyConstraint"] = std::move(constraint);
    }
    spec["podgroups"].push_back(std::move(group));
    Json& own = spec["cliques"].emplace_back(clique);
    own["name"] = name;
    return {};
  }

  // A replica of a scaling group that starts with the others.
  static void Merge(Json own, Json& spec) {
    if (const Json* const constraint = FieldOf(own, "topologyConstraint"); constraint != nullptr) {
      Json names = Json::array();
      for (const Json& group : own["podgroups"]) names.push_back(group["name"]);
      spec["topologyConstraintGroupConfigs"].push_back(
          {{"podGroupNames", std::move(names)}, {"topologyConstraint", *constraint}});
    }
    for (const char* list : {"podgroups", "cliques"}) {
      for (Json& one : own[list]) spec[list].push_back(std::move(one));
    }
  }

  Status TakeGang(const std::string& name, Json spec) {
    if (++taken_ > most_) {
      return Invalid(path_ + ": want at most " + std::to_string(most_) + " gangs, got more");
    }
    const Json* const of = FieldOf(object_, "metadata");
    return take_({{"apiVersion", "scheduler.grove.io/v1alpha1"},
                  {"metadata", {{"name", name}, {"namespace", WordOf(of, "namespace")}}},
                  {"spec", std::move(spec)}},
                 "PodGang");
  }

  const Json& object_;
  const std::string& path_;
  const std::size_t most_;
  const TakePart& take_;
  const std::string name_;
  const Json* const template_;
  std::map<std::string, const Json*> cliques_;  // by name
  std::vector<const Json*> alone_;              // those of no scaling group
  std::vector<Group> groups_;
  std::size_t taken_ = 0, bytes_ = 0;
};

}  // namespace

bool HasParts(std::string_view kind) {
  return kind == "DisaggregatedSet" || kind == "PodCliqueSet" || kind == "AppWrapper";
}

Status ForEachPart(const Json& object, std::string_view kind, const std::string& path,
                   std::size_t most, const TakePart& take) {
  if (kind == "AppWrapper") return ForEachWrapped(object, path, take);
  return kind == "PodCliqueSet" ? Cliques(object, path, most, take).Take()
                                : ForEachSet(object, path, most, take);
}

Result<std::int64_t> CountOf(const Json* of, const std::string& path, const char* key,
                             std::int64_t most, std::int64_t unsaid) {
  const Json* const count = FieldOf(of, key);
  if (count == nullptr) return unsaid;
  const bool is_count = count->is_number_unsigned() ||
                        (count->is_number_integer() && count->get<std::int64_t>() >= 0);
  if (!is_count) {
    return Invalid(path + "." + key + ": want a number of pods, got " +
                   JsonText(*count).substr(0, 100));
  }
  return static_cast<std::int64_t>(
      std::min(count->get<std::uint64_t>(), static_cast<std::uint64_t>(most + 1)));
}

}  // namespace berth::wire
