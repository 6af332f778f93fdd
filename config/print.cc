// SPDX-License-Identifier: Apache-2.0
#include "config/print.h"

#include <yaml-cpp/yaml.h>

#include <array>
#include <charconv>

#include "config/words.h"

namespace berth {
namespace {

// The shortest text that reads back to the same number.
std::string Shortest(double number) {
  std::array<char, 32> digits;
  const auto [end, code] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  return code == std::errc() ? std::string(digits.data(), end) : "0";
}

class Printer {
 public:
  Printer() { out_ << YAML::BeginMap; }

  template <class T>
  void Field(const char* key, const T& value) {
    out_ << YAML::Key << key << YAML::Value << value;
  }
  void Field(const char* key, std::string_view value) { Field(key, std::string(value)); }

  template <class T, class WriteItem>
  void List(const char* key, const std::vector<T>& items, WriteItem write_item) {
    out_ << YAML::Key << key << YAML::Value << YAML::BeginSeq;
    for (const T& item : items) {
      out_ << YAML::BeginMap;
      write_item(item);
      out_ << YAML::EndMap;
    }
    out_ << YAML::EndSeq;
  }

  template <class WriteFields>
  void Mapping(const char* key, WriteFields write_fields) {
    out_ << YAML::Key << key << YAML::Value << YAML::BeginMap;
    write_fields();
    out_ << YAML::EndMap;
  }

  void Texts(const char* key, const std::vector<std::string>& texts) {
    out_ << YAML::Key << key << YAML::Value << YAML::Flow << texts;
  }

  std::string Text() {
    out_ << YAML::EndMap;
    return std::string(out_.c_str()) + "\n";
  }

 private:
  YAML::Emitter out_;
};

void PrintProfiles(Printer& out, const std::vector<ProfileSpec>& profiles) {
  out.List("profiles", profiles, [&](const ProfileSpec& spec) {
    out.Field("name", spec.name);
    out.List("scorers", spec.scorers, [&](const ScorerSpec& scorer) {
      out.Field("name", scorer.name);
      out.Field("weight", scorer.weight);
    });
    out.Field("devices", WordOf(kDeviceRuleWords, spec.devices));
    out.Field("ties", WordOf(kTieRuleWords, spec.ties));
  });
}

void PrintMix(Printer& out, const std::vector<MixEntry>& mix) {
  out.List("requestMix", mix, [&](const MixEntry& entry) {
    out.Field("cpu", std::to_string(entry.cpu_milli) + "m");
    if (entry.gpus > 0) out.Field("gpus", entry.gpus);
    if (entry.gpu_milli > 0) out.Field("gpuMilli", entry.gpu_milli);
    if (!entry.models.empty()) out.Texts("models", entry.models);
    out.Field("weight", Shortest(entry.weight));
  });
}

void PrintLearning(Printer& out, const LearningParameters& learning) {
  out.Mapping("learning", [&] {
    out.Field("halfLifePods", learning.half_life_pods);
    out.Field("longestEpochPods", learning.longest_epoch_pods);
  });
}

void PrintExpectedWaste(Printer& out, const WasteParameters& waste) {
  out.Mapping("expectedWaste", [&] {
    out.Field("fills", waste.fills);
    out.Field("patience", waste.patience);
    out.Field("settledPatience", waste.settled_patience);
    out.Field("optimismGpus", Shortest(waste.optimism));
    out.Field("coverage", Shortest(waste.coverage));
    out.Field("fragmentation", Shortest(waste.fragmentation));
    out.Field("settledFragmentation", Shortest(waste.settled_fragmentation));
    out.Field("scarcityExponent", Shortest(waste.scarcity_exponent));
    out.Field("scarcityLimitGpus", Shortest(waste.scarcity_limit));
    out.Field("sharePriceGpus", Shortest(waste.share_price));
    out.Field("modelPriceGpus", Shortest(waste.model_price));
    out.Field("bestFitGpus", Shortest(waste.best_fit));
  });
}

void PrintServer(Printer& out, const ServerConfig& server) {
  out.Mapping("server", [&] {
    out.Field("listen", server.listen);
    out.Field("debugListen", server.debug_listen);
    out.Field("threads", server.threads);
    out.Field("maxBodyBytes", server.max_body_bytes);
    out.Field("drainSeconds", server.drain_seconds);
    out.Mapping("tls", [&] {
      out.Field("certificateFile", server.tls.certificate_file);
      out.Field("keyFile", server.tls.key_file);
      out.Field("clientCaFile", server.tls.client_ca_file);
    });
  });
}

void PrintLeaderElection(Printer& out, const LeaderElectionConfig& election) {
  out.Mapping("leaderElection", [&] {
    out.Field("enabled", election.enabled);
    out.Field("namespace", election.namespace_name);
    out.Field("name", election.name);
    out.Field("leaseSeconds", election.lease_seconds);
  });
}

}  // namespace

std::string PrintConfig(const Config& config) {
  Printer out;
  out.Field("apiVersion", "berth.dev/v1alpha1");
  out.Field("kind", "BerthConfiguration");
  out.Field("profile", config.profile);
  PrintProfiles(out, config.profiles);
  PrintMix(out, config.request_mix);
  PrintLearning(out, config.learning);
  PrintExpectedWaste(out, config.expected_waste);
  out.List("resources", config.resources, [&](const ResourceRule& rule) {
    out.Field("name", rule.name);
    out.Field("meaning", WordOf(kMeaningWords, rule.meaning));
    out.Field("unit", rule.unit);
  });
  out.Mapping("nodeLabels", [&] {
    out.Field("gpuModel", config.node_labels.gpu_model);
    out.Field("gpuMemoryMib", config.node_labels.gpu_memory_mib);
  });
  out.Mapping("topology", [&] {
    out.List("levels", config.topology_levels, [&](const TopologyLevel& level) {
      out.Field("name", level.name);
      out.Texts("labels", level.labels);
    });
  });
  out.Mapping("dra", [&] { out.Field("chooseDevices", config.dra.choose_devices); });
  out.Mapping("hami", [&] { out.Field("giveDevices", config.hami.give_devices); });
  PrintServer(out, config.server);
  PrintLeaderElection(out, config.leader_election);
  out.Field("reservationSeconds", config.reservation_seconds);
  out.Field("nodesToScore", config.nodes_to_score);
  out.Field("logLevel", config.log_level);
  return out.Text();
}

}  // namespace berth
