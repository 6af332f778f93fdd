// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>

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

Result<YAML::Node> ParseYaml(const std::string& text, std::string_view origin) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& problem) {
    return Invalid(std::string(origin) + ":" + std::to_string(problem.mark.line + 1) +
                   ": not YAML: " + problem.msg);
  }
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
  ReadList(reader, "resources", ReadResource, config.resources);
  reader.Mapping("nodeLabels", [&](YamlReader& labels) {
    labels.Text("gpuModel", config.node_labels.gpu_model);
    labels.Text("gpuMemoryMib", config.node_labels.gpu_memory_mib);
  });
  reader.Mapping("server", [&](YamlReader& server) { ReadServer(server, config.server); });
  reader.Integer("reservationSeconds", 1, 3600, config.reservation_seconds);
  reader.Word("logLevel", kLogLevelWords, level);
  if (level < kLogLevelWords.size()) config.log_level = kLogLevelWords[level];
  BERTH_TRY_STATUS(reader.Finish());
  if (Status valid = Validate(config); !valid) {
    return tl::unexpected(std::move(valid).error().Within(origin));
  }
  return config;
}

Result<Config> LoadConfigFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Fail(Errc::kNotFound, path + ": cannot be opened");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return Fail(Errc::kNotFound, path + ": cannot be read");
  return LoadConfig(text, path);
}

}  // namespace berth
