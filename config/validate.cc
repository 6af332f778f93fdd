// SPDX-License-Identifier: Apache-2.0
#include "config/validate.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/dns_name.h"
#include "base/text.h"
#include "config/config.h"
#include "scoring/registry.h"

namespace berth {
namespace {

using Problems = std::vector<std::string>;

void CheckResources(const Config& config, Problems& problems) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < config.resources.size(); ++i) {
    const ResourceRule& rule = config.resources[i];
    const std::string place = Element("resources", i);
    if (rule.name.empty()) {
      problems.push_back(place + ".name: want a resource name, got \"\"");
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
  if (name.size() <= kLongestClusterName && !has_control) return;
  problems.push_back("clusterName: want one line of at most " +
                     std::to_string(kLongestClusterName) + " bytes, got " +
                     std::to_string(name.size()) +
                     (has_control ? " with a control character" : ""));
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

}  // namespace

std::vector<std::string> ProblemsOf(const Config& config) {
  Problems problems;
  std::ranges::move(ProblemsOfProfiles(config), std::back_inserter(problems));
  CheckResources(config, problems);
  CheckMachineTypes(config, problems);
  CheckLeaderElection(config.leader_election, problems);
  CheckClusterName(config.cluster_name, problems);
  CheckGangs(config.gangs, problems);
  CheckGpuNodes(config.gpu_nodes, problems);
  std::ranges::move(ProblemsOfClasses(config), std::back_inserter(problems));
  if (Status levels = Validate(config.topology_levels); !levels) {
    problems.push_back(std::move(levels).error().Within("topology.levels").message);
  }
  CheckTls(config.server.tls, problems);
  CheckAddresses(config.server, problems);
  return problems;
}

std::vector<std::string> NotesOn(const Config& config) {
  std::vector<std::string> notes = NotesOnProfiles(config);
  std::ranges::move(NotesOnClasses(config), std::back_inserter(notes));
  if (config.make_room.mode == MakeRoomMode::kAct) notes.push_back(NoteOnMoves(config.make_room));
  return notes;
}

Status Validate(const Config& config) {
  std::vector<std::string> problems = ProblemsOf(config);
  if (problems.empty()) return {};
  return Invalid(std::move(problems.front()));
}

}  // namespace berth
