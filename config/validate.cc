// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/dns_name.h"
#include "base/text.h"
#include "config/config.h"
#include "scoring/registry.h"
#include "scoring/scorers/scorers.h"

namespace berth {
namespace {

using Problems = std::vector<std::string>;
using Texts = std::vector<std::string>;

// "profiles[2]".
std::string Element(std::string_view list, std::size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

std::string InQuotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

// Kubernetes' own: nodes and pods without GPUs have them too.
bool IsOfKubernetes(std::string_view resource) {
  constexpr std::string_view kOwn[] = {"cpu", "memory", "ephemeral-storage", "pods"};
  return resource.starts_with("hugepages-") || std::ranges::find(kOwn, resource) != std::end(kOwn);
}

void CheckResources(const Config& config, Problems& problems) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.resources.size(); ++i) {
    const ResourceRule& rule = config.resources[i];
    const std::string place = Element("resources", i);
    if (rule.name.empty()) {
      problems.push_back(place + ".name: want a resource name, got \"\"");
    } else if (IsOfKubernetes(rule.name)) {
      problems.push_back(place + ".name: want a resource of GPUs, got " + InQuotes(rule.name) +
                         ", which is Kubernetes' own");
    } else if (rule.name.find_first_of(" \t\r\n") != rule.name.npos) {
      problems.push_back(place + ".name: want a name without blanks, got " + InQuotes(rule.name));
    } else if (!names.insert(rule.name).second) {
      problems.push_back(place + ".name: " + InQuotes(rule.name) + " is there twice");
    }
    if (UnitFactor(rule) == 0) {
      problems.push_back(
          place +
          ".unit: want a unit of the meaning (whole-gpus, ignored: gpu; share-compute: "
          "milli, percent; share-memory: bytes, MiB, GiB), got " +
          InQuotes(rule.unit));
    }
  }
}

void CheckMachineTypes(const Config& config, Problems& problems) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.machine_types.size(); ++i) {
    const MachineTypeSpec& type = config.machine_types[i];
    const std::string place = Element("machineTypes", i);
    if (type.name.empty()) {
      problems.push_back(place + ".name: want the name of a machine type, got \"\"");
    } else if (!names.insert(type.name).second) {
      problems.push_back(place + ".name: " + InQuotes(type.name) + " is there twice");
    } else if (!type.gpus && FindMachineType(type.name) == nullptr) {
      problems.push_back(place + ".gpus: want the number of GPUs of " + InQuotes(type.name) +
                         ", which the catalogue does not know, got none");
    }
  }
}

void CheckLeaderElection(const LeaderElectionConfig& config, Problems& problems) {
  if (!config.namespace_name.empty() && !IsDnsLabel(config.namespace_name)) {
    problems.push_back("leaderElection.namespace: want a DNS-1123 label or \"\", got " +
                       InQuotes(config.namespace_name));
  }
  if (!IsDnsSubdomain(config.name)) {
    problems.push_back("leaderElection.name: want a DNS-1123 name, got " + InQuotes(config.name));
  }
}

void CheckClusterName(const std::string& name, Problems& problems) {
  const bool has_control =
      std::ranges::any_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const auto characters = static_cast<std::size_t>(
      std::ranges::count_if(name, [](char c) { return (c & '\xC0') != '\x80'; }));  // of UTF-8
  if (characters <= kLongestClusterName && !has_control) return;
  problems.push_back("clusterName: want one line of at most " +
                     std::to_string(kLongestClusterName) + " characters, got " +
                     std::to_string(characters) + (has_control ? " with a control character" : ""));
}

template <class Words>
void CheckWords(const std::vector<std::string>& names, const char* field, const Words& words,
                Problems& problems) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::find(words, names[i]) != words.end()) continue;
    problems.push_back("gangs." + Element(field, i) + ": want one of " + Join(words, " ") +
                       ", got " + InQuotes(names[i]));
  }
}

void CheckGangs(const GangsConfig& config, Problems& problems) {
  CheckWords(config.conventions, "conventions", kGangConventionWords, problems);
  CheckWords(config.controllers, "controllers", kGangControllerWords, problems);
}

void CheckGpuNodes(const GpuNodesConfig& config, Problems& problems) {
  for (std::size_t i = 0; i < config.conditions.size(); ++i) {
    auto rule = ParseConditionRule(config.conditions[i]);
    if (rule) continue;
    const std::string place = "gpuNodes." + Element("conditions", i);
    problems.push_back(std::move(rule).error().Within(place).message);
  }
}

void CheckMakeRoom(const MakeRoomConfig& room, Problems& problems) {
  for (std::size_t i = 0; i < room.namespaces.size(); ++i) {
    if (IsDnsLabel(room.namespaces[i])) continue;
    problems.push_back("makeRoom." + Element("namespaces", i) + ": want a DNS-1123 label, got " +
                       InQuotes(room.namespaces[i]));
  }
}

void CheckTls(const TlsConfig& tls, Problems& problems) {
  if (tls.certificate_file.empty() != tls.key_file.empty()) {
    problems.emplace_back("server.tls: want certificateFile and keyFile, got only one of them");
  } else if (tls.certificate_file.empty() && !tls.client_ca_file.empty()) {
    problems.emplace_back("server.tls.clientCaFile: want certificateFile with it, got none");
  }
}

bool IsEveryAddress(const std::string& host) {
  return host.empty() || host == "0.0.0.0" || host == "::";
}

// Whether the second of two listeners would find its port taken.
bool Collide(const ListenAddress& a, const ListenAddress& b) {
  return a.port != 0 && a.port == b.port &&
         (a.host == b.host || IsEveryAddress(a.host) || IsEveryAddress(b.host));
}

void CheckAddresses(const ServerConfig& server, Problems& problems) {
  const auto listen = ParseListenAddress(server.listen);
  if (!listen) problems.push_back("server.listen: " + listen.error().message);
  if (server.debug_listen.empty() || server.debug_listen == "off") return;
  const auto debug = ParseListenAddress(server.debug_listen);
  if (!debug) {
    problems.push_back("server.debugListen: " + debug.error().message + " (or off)");
  } else if (listen && Collide(*listen, *debug)) {
    problems.push_back("server.debugListen: want another port than server.listen (" +
                       server.listen + "), got " + InQuotes(server.debug_listen));
  }
}

// What it will do: an operator reads it before the pods of others are evicted.
std::string NoteOnMoves(const MakeRoomConfig& room) {
  std::string whose = "any namespace";
  if (!room.namespaces.empty()) whose = "the namespaces " + Join(room.namespaces, ", ");
  const std::string idle = room.idle_nodes == 0
                               ? ""
                               : ", or fewer than " + std::to_string(room.idle_nodes) +
                                     " nodes have been idle for as long";
  return "makeRoom.mode: Berth evicts pods of " + whose + ", at most " +
         std::to_string(room.moves_per_hour) + " an hour, when a pod or gang has waited " +
         std::to_string(room.after_minutes) + " min" + idle +
         "; this needs the right to create pods/eviction (components/make-room)";
}

// One profile alone is built with each scorer by itself, so that every faulty one is named.
void CheckScorers(const ProfileSpec& spec, const std::string& place, Problems& problems) {
  auto built = BuildProfile(spec, {});
  if (built) return;
  const std::size_t before = problems.size();
  std::set<std::string> names;
  for (std::size_t i = 0; i < spec.scorers.size(); ++i) {
    const std::string& name = spec.scorers[i].name;
    const std::string path = place + "." + Element("scorers", i) + ".name: ";
    if (!names.insert(name).second) {
      problems.push_back(path + InQuotes(name) + " is there twice");
    } else if (name != kDomainLocality) {
      if (auto scorer = MakeScorer(name, {}); !scorer) {
        problems.push_back(path + scorer.error().message);
      }
    }
  }
  if (problems.size() == before) {
    problems.push_back(std::move(built).error().Within(place).message);
  }
}

bool Has(const ProfileSpec& spec, std::string_view scorer) {
  return std::ranges::find(spec.scorers, scorer, &ScorerSpec::name) != spec.scorers.end();
}

bool LeavesOut(const ProfileSpec& spec, std::string_view scorer) {
  return std::ranges::find(spec.without, scorer) != spec.without.end();
}

void CheckExtension(const ProfileSpec& spec, const std::string& place, Problems& problems) {
  if (!spec.extends.empty() && FindBuiltinProfile(spec.extends) == nullptr) {
    problems.push_back(place + ".extends: want one of " +
                       Join(BuiltinProfiles(), " ", &ProfileSpec::name) + ", got " +
                       WrongPolicy(spec.extends));
  }
  std::vector<std::string_view> known = ScorerNames();
  known.push_back(kDomainLocality);
  for (std::size_t i = 0; i < spec.without.size(); ++i) {
    const std::string path = place + "." + Element("without", i) + ": ";
    if (std::ranges::find(known, spec.without[i]) == known.end()) {
      problems.push_back(path + "want one of " + Join(known, " ") + ", got " +
                         InQuotes(spec.without[i]));
    } else if (Has(spec, spec.without[i])) {
      problems.push_back(path + InQuotes(spec.without[i]) + " is one of scorers too");
    }
  }
}

void CheckProfiles(const Config& config, Problems& problems) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.profiles.size(); ++i) {
    const ProfileSpec& spec = config.profiles[i];
    const std::string place = Element("profiles", i);
    if (spec.name.empty()) {
      problems.push_back(place + ".name: want a name, got \"\"");
    } else if (!names.insert(spec.name).second) {
      problems.push_back(place + ".name: " + InQuotes(spec.name) + " is there twice");
    }
    CheckScorers(spec, place, problems);
    CheckExtension(spec, place, problems);
  }
  if (names.contains(config.profile) || FindBuiltinProfile(config.profile) != nullptr) return;
  for (const ProfileSpec& spec : BuiltinProfiles()) names.insert(spec.name);
  problems.push_back("profile: want one of " + Join(names, " ") + ", got " +
                     WrongPolicy(config.profile));
}

// Those of the default profile that are gone, and nobody said so.
std::vector<std::string> LostScorers(const ProfileSpec& spec) {
  std::vector<std::string> lost;
  for (const ScorerSpec& scorer : FindBuiltinProfile(DefaultConfig().profile)->scorers) {
    if (!Has(spec, scorer.name) && !LeavesOut(spec, scorer.name)) lost.push_back(scorer.name);
  }
  return lost;
}

// A profile that overrides a built-in one, scores nothing, is not used, or has lost scorers of the
// default profile without saying so.
void NoteProfiles(const Config& config, Texts& notes) {
  for (std::size_t i = 0; i < config.profiles.size(); ++i) {
    const ProfileSpec& spec = config.profiles[i];
    const std::string place = Element("profiles", i);
    if (FindBuiltinProfile(spec.name) != nullptr) {
      notes.push_back(place + ".name: overrides the built-in profile " + InQuotes(spec.name));
    }
    if (spec.scorers.empty() && spec.ties == TieRule::kEqual) {
      notes.push_back(place + ".scorers: empty, so all nodes score the same");
    }
    const std::vector<std::string> lost = LostScorers(spec);
    if (!spec.scorers.empty() && !lost.empty()) {
      notes.push_back(place + ".scorers: without " + Join(lost, ", ") +
                      " of the default profile; "
                      "want `extends: " +
                      DefaultConfig().profile + "`, or `without` if that is meant");
    }
    const bool is_of_class =
        std::ranges::find(config.workload_classes, spec.name, &WorkloadClass::profile) !=
        config.workload_classes.end();
    if (spec.name != config.profile && !is_of_class) {
      notes.push_back(place + ": not used; profile is " + InQuotes(config.profile));
    }
  }
}

void CheckName(const std::string& name, const std::string& place, std::set<std::string>& names,
               Problems& problems) {
  if (!IsDnsLabel(name)) {
    problems.push_back(place + ".name: want a DNS-1123 label, got \"" + name + "\"");
  } else if (!names.insert(name).second) {
    problems.push_back(place + ".name: \"" + name + "\" is there twice");
  }
}

void CheckLabels(const Texts& labels, const std::string& place, Problems& problems) {
  if (auto selector = ParseSelector(labels); !selector) {
    problems.push_back(place + ".labels" + selector.error().message);
  }
}

// The names of all traits; those of families are not among them.
std::set<std::string> CheckTraits(const Config& config, Problems& problems) {
  std::set<std::string> names(kBuiltinTraits.begin(), kBuiltinTraits.end());
  names.emplace(kPriceWish);
  for (std::size_t i = 0; i < config.traits.size(); ++i) {
    const TraitConfig& trait = config.traits[i];
    const std::string place = Element("traits", i);
    if (trait.name == kPriceWish ||
        std::ranges::find(kBuiltinTraits, trait.name) != kBuiltinTraits.end()) {
      problems.push_back(place + ".name: want a name of your own, got " + InQuotes(trait.name) +
                         ", which is built in");
    } else {
      CheckName(trait.name, place, names, problems);
    }
    CheckLabels(trait.labels, place, problems);
    if (trait.labels.empty() && trait.resource.empty()) {
      problems.push_back(place + ": want labels or a resource, got neither");
    }
  }
  names.erase(std::string(kPriceWish));
  return names;
}

// The traits that one class names. It may name each trait once.
class ClassTraits {
 public:
  ClassTraits(const std::set<std::string>& known, std::string place, Problems& problems)
      : known_(known), place_(std::move(place)), problems_(problems) {}

  void Check(const char* list, const std::vector<WishConfig>& wishes, bool takes_price) {
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      Check(wishes[i].trait, place_ + "." + Element(list, i) + ".trait", takes_price);
    }
  }
  void Check(const char* list, const Texts& traits) {
    for (std::size_t i = 0; i < traits.size(); ++i) {
      Check(traits[i], place_ + "." + Element(list, i), false);
    }
  }

 private:
  void Check(const std::string& trait, const std::string& path, bool takes_price) {
    const bool is_price = takes_price && trait == kPriceWish;
    if (!HasValue(trait) && !is_price && !known_.contains(trait)) {
      problems_.push_back(path + ": want one of " + Join(known_, " ") + " " +
                          std::string(kFamilyPrefix) + "F " + std::string(kImagePrefix) + "V" +
                          (takes_price ? " " + std::string(kPriceWish) : "") + ", got \"" + trait +
                          "\"");
    } else if (!named_.insert(trait).second) {
      problems_.push_back(path + ": the class names \"" + trait + "\" twice");
    }
  }

  const std::set<std::string>& known_;
  const std::string place_;
  Problems& problems_;
  std::set<std::string> named_;
};

bool Covers(const Texts& wide, const Texts& narrow) {
  if (wide.empty()) return true;
  return !narrow.empty() && std::ranges::all_of(narrow, [&wide](const std::string& text) {
    return std::ranges::find(wide, text) != wide.end();
  });
}

// Whether every pod that matches the later class matches the earlier one.
bool TakesAllOf(const WorkloadClass& earlier, const WorkloadClass& later) {
  return Covers(earlier.namespaces, later.namespaces) &&
         Covers(earlier.priority_classes, later.priority_classes) &&
         std::ranges::all_of(earlier.labels, [&later](const std::string& label) {
           return std::ranges::find(later.labels, label) != later.labels.end();
         });
}

void CheckClasses(const Config& config, Problems& problems) {
  const std::set<std::string> known = CheckTraits(config, problems);
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.workload_classes.size(); ++i) {
    const WorkloadClass& workload = config.workload_classes[i];
    const std::string place = Element("workloadClasses", i);
    CheckName(workload.name, place, names, problems);
    CheckLabels(workload.labels, place, problems);
    ClassTraits traits(known, place, problems);
    traits.Check("prefer", workload.prefer, true);
    traits.Check("avoid", workload.avoid, false);
    traits.Check("require", workload.require);
    traits.Check("forbid", workload.forbid);
    if (!workload.profile.empty() && FindProfile(config, workload.profile) == nullptr) {
      problems.push_back(place + ".profile: want a built-in profile or one of profiles, got \"" +
                         workload.profile + "\"");
    }
    const auto end = config.workload_classes.begin() + static_cast<std::ptrdiff_t>(i);
    const auto earlier =
        std::find_if(config.workload_classes.begin(), end,
                     [&](const WorkloadClass& other) { return TakesAllOf(other, workload); });
    if (earlier != end) {
      problems.push_back(place + ": only pods with the annotation get this class: \"" +
                         earlier->name + "\" matches all other pods first");
    }
  }
}

// Classes whose preferences have no effect, because the profile lacks the scorer.
void NoteClasses(const Config& config, Texts& notes) {
  for (std::size_t i = 0; i < config.workload_classes.size(); ++i) {
    const WorkloadClass& workload = config.workload_classes[i];
    const ProfileSpec& profile =
        workload.profile.empty() ? ChosenProfile(config) : *FindProfile(config, workload.profile);
    const bool counts = std::ranges::find(profile.scorers, kWorkloadClassScorer,
                                          &ScorerSpec::name) != profile.scorers.end();
    if (counts || (workload.prefer.empty() && workload.avoid.empty())) continue;
    notes.push_back(Element("workloadClasses", i) +
                    ": prefer and avoid have no effect: the profile \"" + profile.name +
                    "\" has no scorer " + std::string(kWorkloadClassScorer));
  }
}

}  // namespace

void Extend(ProfileSpec& profile, bool says_devices, bool says_ties) {
  const ProfileSpec* const base = FindBuiltinProfile(profile.extends);
  if (base == nullptr) return;
  if (!says_devices) profile.devices = base->devices;
  if (!says_ties) profile.ties = base->ties;
  for (const ScorerSpec& scorer : base->scorers) {
    if (!Has(profile, scorer.name) && !LeavesOut(profile, scorer.name)) {
      profile.scorers.push_back(scorer);
    }
  }
}

std::vector<std::string> ProblemsOf(const Config& config) {
  Problems problems;
  CheckProfiles(config, problems);
  CheckResources(config, problems);
  CheckMachineTypes(config, problems);
  CheckLeaderElection(config.leader_election, problems);
  CheckClusterName(config.cluster_name, problems);
  CheckGangs(config.gangs, problems);
  CheckGpuNodes(config.gpu_nodes, problems);
  CheckMakeRoom(config.make_room, problems);
  CheckClasses(config, problems);
  if (Status levels = Validate(config.topology_levels); !levels) {
    problems.push_back(std::move(levels).error().Within("topology.levels").message);
  }
  CheckTls(config.server.tls, problems);
  CheckAddresses(config.server, problems);
  return problems;
}

std::vector<std::string> NotesOn(const Config& config) {
  Texts notes;
  NoteProfiles(config, notes);
  NoteClasses(config, notes);
  if (config.make_room.mode == MakeRoomMode::kAct) notes.push_back(NoteOnMoves(config.make_room));
  return notes;
}

Status Validate(const Config& config) {
  std::vector<std::string> problems = ProblemsOf(config);
  if (problems.empty()) return {};
  return Invalid(std::move(problems.front()));
}

}  // namespace berth
