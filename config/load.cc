// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <algorithm>
#include <array>

#include "base/file.h"
#include "base/number.h"
#include "config/parse_yaml.h"
#include "config/words.h"
#include "config/yaml_reader.h"

namespace berth {
namespace {

void ReadProfile(YamlReader& reader, ProfileSpec& spec) {
  reader.Text("name", spec.name);
  reader.List("scorers", [&](YamlReader& item) {
    ScorerSpec scorer;
    item.Text("name", scorer.name);
    item.Integer("weight", 1, kMaxScorerWeight, scorer.weight);
    spec.scorers.push_back(std::move(scorer));
  });
  reader.Word("devices", kDeviceRuleWords, spec.devices);
  reader.Word("ties", kTieRuleWords, spec.ties);
}

void ReadMixEntry(YamlReader& reader, MixEntry& entry) {
  reader.MilliQuantity("cpu", entry.cpu_milli);
  reader.Integer("gpus", 0, kMaxGpusPerNode, entry.gpus);
  reader.Integer("gpuMilli", 0, kMilliPerGpu, entry.gpu_milli);
  reader.TextList("models", entry.models);
  std::ranges::sort(entry.models);
  entry.models.erase(std::unique(entry.models.begin(), entry.models.end()), entry.models.end());
  reader.PositiveNumber("weight", entry.weight);
}

void ReadResource(YamlReader& reader, ResourceRule& rule) {
  reader.Text("name", rule.name);
  reader.Word("meaning", kMeaningWords, rule.meaning);
  reader.Text("unit", rule.unit);
}

void ReadServer(YamlReader& reader, ServerConfig& server) {
  reader.Text("listen", server.listen);
  reader.Text("debugListen", server.debug_listen);
  reader.Integer("threads", 1, 64, server.threads);
  reader.Integer("maxBodyBytes", 1 << 10, std::int64_t{4} << 30, server.max_body_bytes);
  reader.Integer("drainSeconds", 0, 3600, server.drain_seconds);
  reader.Mapping("tls", [&](YamlReader& tls) {
    tls.Text("certificateFile", server.tls.certificate_file);
    tls.Text("keyFile", server.tls.key_file);
    tls.Text("clientCaFile", server.tls.client_ca_file);
  });
}

void ReadLeaderElection(YamlReader& reader, LeaderElectionConfig& election) {
  reader.Flag("enabled", election.enabled);
  reader.Text("namespace", election.namespace_name);
  reader.Text("name", election.name);
  reader.Integer("leaseSeconds", 5, 300, election.lease_seconds);
}

void ReadLearning(YamlReader& reader, LearningParameters& learning) {
  reader.Integer("halfLifePods", 1, 1'000'000'000, learning.half_life_pods);
  reader.Integer("longestEpochPods", 1, 1'000'000'000, learning.longest_epoch_pods);
}

void ReadExpectedWaste(YamlReader& reader, WasteParameters& waste) {
  reader.Integer("fills", 1, 256, waste.fills);
  reader.Integer("patience", 1, 400, waste.patience);
  reader.Integer("settledPatience", 1, 400, waste.settled_patience);
  reader.Number("optimismGpus", 0, 100, waste.optimism);
  reader.Number("coverage", 0.01, 1, waste.coverage);
  reader.Number("fragmentation", 0, 100, waste.fragmentation);
  reader.Number("settledFragmentation", 0, 100, waste.settled_fragmentation);
  reader.Number("scarcityExponent", 0.1, 20, waste.scarcity_exponent);
  reader.Number("scarcityLimitGpus", 0, 100, waste.scarcity_limit);
  reader.Number("sharePriceGpus", 0, 100, waste.share_price);
  reader.Number("modelPriceGpus", 0, 100, waste.model_price);
  reader.Number("bestFitGpus", 0, 100, waste.best_fit);
}

std::string PresetNames() {
  std::string names;
  for (const TopologyPreset& preset : TopologyPresets()) {
    names.append(names.empty() ? "" : ", ").append(preset.name);
  }
  return names;
}

// One entry: a preset, which is several levels; a level with its labels; or a level as in Kueue's
// Topology, by one nodeLabel.
void ReadTopologyLevel(YamlReader& reader, TopologyLevels& levels) {
  std::string preset, node_label, name;
  std::vector<std::string> labels;
  reader.Text("preset", preset);
  reader.Text("nodeLabel", node_label);
  reader.Text("name", name);
  reader.TextList("labels", labels);
  const int ways =
      (preset.empty() ? 0 : 1) + (node_label.empty() ? 0 : 1) + (labels.empty() ? 0 : 1);
  if (ways != 1 || (!preset.empty() && !name.empty())) {
    return reader.Refuse("want preset, or nodeLabel or labels with or without a name");
  }
  if (!preset.empty()) {
    const TopologyPreset* const found = FindTopologyPreset(preset);
    if (found == nullptr) {
      return reader.Refuse("preset: want one of " + PresetNames() + ", got \"" + preset + "\"");
    }
    levels.insert(levels.end(), found->levels.begin(), found->levels.end());
  } else {
    if (!node_label.empty()) labels = {node_label};
    levels.push_back({name.empty() ? labels.front() : name, labels});
  }
  // Now, while it is known which entry is at fault.
  if (const Status valid = Validate(levels); !valid) {
    const std::string& message = valid.error().message;  // "[3].labels: ...", of the whole list
    reader.Refuse(message.starts_with('[') ? message.substr(message.find('.') + 1) : message);
  }
}

// A list that is written replaces the default one as a whole.
template <class T>
void ReadList(YamlReader& reader, const char* key, void (*read_one)(YamlReader&, T&),
              std::vector<T>& values) {
  std::vector<T> written;
  const bool is_there = reader.List(key, [&](YamlReader& item) {
    T value;
    read_one(item, value);
    written.push_back(std::move(value));
  });
  if (is_there) values = std::move(written);
}

// The node that a path such as "profiles[2].name" names, or the last one on the way that is there.
YAML::Node NearestTo(const YAML::Node& node, std::string_view path) {
  if (path.starts_with('.')) path.remove_prefix(1);
  const bool in_list = path.starts_with('[');
  const std::size_t end =
      in_list ? path.find(']') + 1 : std::min(path.find_first_of(".["), path.size());
  if (end == 0) return node;
  const Result<std::int64_t> index =
      in_list ? ParseInt(path.substr(1, end - 2), 0, 1 << 30) : Result<std::int64_t>(0);
  if (!index || !(in_list ? node.IsSequence() : node.IsMap())) return node;
  const YAML::Node next =
      in_list ? node[static_cast<std::size_t>(*index)] : node[std::string(path.substr(0, end))];
  return next.IsDefined() && !next.IsNull() ? NearestTo(next, path.substr(end)) : node;
}

// The error of Validate with the line of the field whose path its message begins with.
Error Located(Error error, const YAML::Node& document, std::string_view origin) {
  const std::string_view path = std::string_view(error.message).substr(0, error.message.find(": "));
  const int line = NearestTo(document, path).Mark().line + 1;
  return std::move(error).Within(std::string(origin) + ":" + std::to_string(line));
}

}  // namespace

Result<Config> LoadConfig(const std::string& text, std::string_view origin) {
  BERTH_TRY(const YAML::Node document, ParseYaml(text, origin));
  Config config = DefaultConfig();
  YamlReader reader(document, origin, "");
  constexpr std::array<std::string_view, 1> kVersions = {"berth.dev/v1alpha1"};
  constexpr std::array<std::string_view, 1> kKinds = {"BerthConfiguration"};
  std::size_t ignored = 0, level = kLogLevelWords.size();
  reader.Word("apiVersion", kVersions, ignored);
  reader.Word("kind", kKinds, ignored);
  reader.Text("profile", config.profile);
  ReadList(reader, "profiles", ReadProfile, config.profiles);
  ReadList(reader, "requestMix", ReadMixEntry, config.request_mix);
  reader.Mapping("learning",
                 [&](YamlReader& learning) { ReadLearning(learning, config.learning); });
  reader.Mapping("expectedWaste",
                 [&](YamlReader& waste) { ReadExpectedWaste(waste, config.expected_waste); });
  ReadList(reader, "resources", ReadResource, config.resources);
  reader.Mapping("nodeLabels", [&](YamlReader& labels) {
    labels.Text("gpuModel", config.node_labels.gpu_model);
    labels.Text("gpuMemoryMib", config.node_labels.gpu_memory_mib);
  });
  reader.Mapping("topology", [&](YamlReader& topology) {
    TopologyLevels written;
    const auto read = [&](YamlReader& entry) { ReadTopologyLevel(entry, written); };
    if (topology.List("levels", read)) config.topology_levels = std::move(written);
  });
  reader.Mapping("dra",
                 [&](YamlReader& dra) { dra.Flag("chooseDevices", config.dra.choose_devices); });
  reader.Mapping("hami",
                 [&](YamlReader& hami) { hami.Flag("giveDevices", config.hami.give_devices); });
  reader.Mapping("server", [&](YamlReader& server) { ReadServer(server, config.server); });
  reader.Mapping("leaderElection", [&](YamlReader& election) {
    ReadLeaderElection(election, config.leader_election);
  });
  reader.Integer("reservationSeconds", 1, 3600, config.reservation_seconds);
  reader.Integer("nodesToScore", 0, 1'000'000, config.nodes_to_score);
  reader.Word("logLevel", kLogLevelWords, level);
  if (level < kLogLevelWords.size()) config.log_level = kLogLevelWords[level];
  BERTH_TRY_STATUS(reader.Finish());
  if (Status valid = Validate(config); !valid) {
    return tl::unexpected(Located(std::move(valid).error(), document, origin));
  }
  return config;
}

Result<Config> LoadConfigFile(const std::string& path) {
  BERTH_TRY(const std::string text, ReadFile(path));
  return LoadConfig(text, path);
}

}  // namespace berth
