// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <yaml-cpp/yaml.h>

#include "base/check.h"
#include "base/text.h"
#include "config/describe.h"
#include "config/parse_yaml.h"

namespace berth {
namespace {

// One entry: a preset, which stands for several levels; a level with its labels; or, as in Kueue's
// Topology, a level with one nodeLabel.
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
  const std::size_t before = levels.size();
  if (!preset.empty()) {
    const TopologyPreset* const found = FindTopologyPreset(preset);
    if (found == nullptr) {
      return reader.Refuse("preset: want one of " +
                           Join(TopologyPresets(), ", ", &TopologyPreset::name) + ", got \"" +
                           preset + "\"");
    }
    levels.insert(levels.end(), found->levels.begin(), found->levels.end());
  } else {
    if (!node_label.empty()) labels = {node_label};
    levels.push_back({name.empty() ? labels.front() : name, labels});
  }
  // Checked here, where the faulty entry is known; the others are checked without it.
  if (const Status valid = Validate(levels); !valid) {
    levels.resize(before);
    const std::string& message = valid.error().message;  // "[3].labels: ...", of the whole list
    reader.Refuse(message.starts_with('[') ? message.substr(message.find('.') + 1) : message);
  }
}

// The visitor of Describe that reads what is written; the rest keeps its value.
class SettingsReader {
 public:
  explicit SettingsReader(YamlReader& yaml) : yaml_(yaml) {}

  void Field(const char* key, std::string& value, AnyText, const char*) { yaml_.Text(key, value); }
  void Field(const char* key, std::vector<std::string>& value, TextList, const char*) {
    yaml_.TextList(key, value);
  }
  void Field(const char* key, bool& value, TrueOrFalse, const char*) { yaml_.Flag(key, value); }
  template <class T>
  void Field(const char* key, T& value, Integers range, const char*) {
    yaml_.Integer(key, range.low, range.high, value);
  }
  void Field(const char* key, double& value, Numbers range, const char*) {
    yaml_.Number(key, range.low, range.high, value);
  }
  template <class Enum>
  void Field(const char* key, Enum& value, Words words, const char*) {
    yaml_.Word(key, words.words, value);
  }
  void Field(const char* key, std::string& value, Words words, const char*) {
    std::size_t word = words.words.size();
    yaml_.Word(key, words.words, word);
    if (word < words.words.size()) value = words.words[word];
  }
  template <class T, class Form>
  void Field(const char* key, std::optional<T>& value, Optional<Form> form, const char* meaning) {
    if (!yaml_.Has(key)) return;
    value.emplace();
    Field(key, *value, form.form, meaning);
  }

  template <class T>
  void Group(const char* key, T& settings, const char*) {
    yaml_.Mapping(key, [&settings](YamlReader& yaml) { Read(yaml, settings); });
  }

  template <class T>
  void List(const char* key, std::vector<T>& elements, const char*) {
    ReadList(key, elements,
             [](YamlReader& yaml, std::vector<T>& written) { Read(yaml, written.emplace_back()); });
  }
  void List(const char* key, std::vector<ProfileSpec>& profiles, const char*) {
    ReadList(key, profiles, [](YamlReader& yaml, std::vector<ProfileSpec>& written) {
      ProfileSpec& profile = written.emplace_back();
      Read(yaml, profile);
      Extend(profile, yaml.Has("devices"), yaml.Has("ties"));
    });
  }
  void List(const char* key, TopologyLevels& levels, const char*) {
    ReadList(key, levels, ReadTopologyLevel);
  }

 private:
  template <class T>
  static void Read(YamlReader& yaml, T& settings) {
    SettingsReader reader(yaml);
    Describe(reader, settings);
  }

  // A list that is written replaces the default one as a whole.
  template <class T, class ReadOne>
  void ReadList(const char* key, std::vector<T>& elements, ReadOne read_one) {
    std::vector<T> written;
    if (yaml_.List(key, [&](YamlReader& yaml) { read_one(yaml, written); })) {
      elements = std::move(written);
    }
  }

  YamlReader& yaml_;
};

// The node at a path such as "profiles[2].name", or the last existing one on the way.
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

// A message that begins with the path of a field, with the line of that field.
YamlProblem Located(std::string message, const YAML::Node& document) {
  const std::string_view path = std::string_view(message).substr(0, message.find(": "));
  return {NearestTo(document, path).Mark().line + 1, std::move(message)};
}

struct Reading {
  Config config;
  std::vector<YamlProblem> problems;
};

void SortByLine(std::vector<YamlProblem>& problems) {
  std::ranges::stable_sort(problems, {}, &YamlProblem::line);
}

// A field that could not be read has its default in the configuration. Problems of the default on
// the same line are left out.
void AddProblemsOf(const Config& config, const YAML::Node& document,
                   std::vector<YamlProblem>& problems) {
  std::vector<YamlProblem> more;
  for (std::string& message : ProblemsOf(config)) {
    YamlProblem problem = Located(std::move(message), document);
    if (std::ranges::find(problems, problem.line, &YamlProblem::line) == problems.end()) {
      more.push_back(std::move(problem));
    }
  }
  SortByLine(more);
  problems.insert(problems.end(), more.begin(), more.end());
}

Reading ReadSettings(const YAML::Node& document, const ReadBeside& beside = {}) {
  Reading reading{DefaultConfig(), {}};
  Config& config = reading.config;
  YamlReader yaml(document, "");
  constexpr std::array<std::string_view, 1> kVersions = {"berth.dev/v1alpha1"};
  constexpr std::array<std::string_view, 1> kKinds = {"BerthConfiguration"};
  std::size_t ignored = 0;
  yaml.Word("apiVersion", kVersions, ignored);
  yaml.Word("kind", kKinds, ignored);
  SettingsReader reader(yaml);
  Describe(reader, config);
  if (beside) beside(yaml);
  // Settings of 0.1.0.
  yaml.Gone("requestMix", "Berth learns the mix from the pods that arrive");
  for (const char* key : {"learning", "expectedWaste"})
    yaml.Gone(key, "only berth-replay reads it");
  yaml.Finish();
  reading.problems = yaml.problems();
  SortByLine(reading.problems);
  AddProblemsOf(config, document, reading.problems);
  return reading;
}

std::string AtLine(std::string_view origin, const YamlProblem& problem) {
  return std::string(origin) + ":" + std::to_string(problem.line) + ": " + problem.message;
}

constexpr char kUsualKey[] = "berth.yaml";

// The text in which the value of a block begins on the line on which it stands in the manifest.
std::string OnItsLine(const YAML::Node& value, const std::string& manifest) {
  const YAML::Mark mark = value.Mark();
  if (mark.pos < 0 || static_cast<std::size_t>(mark.pos) >= manifest.size()) return "";
  if (manifest[static_cast<std::size_t>(mark.pos)] != '|') return "";
  return std::string(static_cast<std::size_t>(mark.line) + 1, '\n') + value.Scalar();
}

// Appends the paths in which two mappings with the same keys differ; a list is one setting.
void AppendDifferences(const YAML::Node& a, const YAML::Node& b, const std::string& place,
                       std::vector<std::string>& paths) {
  for (const auto& field : a) {
    const std::string path = place + field.first.Scalar();
    const YAML::Node other = b[field.first.Scalar()];
    if (field.second.IsMap() && other.IsMap()) {
      AppendDifferences(field.second, other, path + ".", paths);
    } else if (YAML::Dump(field.second) != YAML::Dump(other)) {
      paths.push_back(path);
    }
  }
}

}  // namespace

Result<Config> LoadConfig(const std::string& text, std::string_view origin,
                          const ReadBeside& beside) {
  BERTH_TRY(const YAML::Node document, ParseYaml(text, origin));
  Reading reading = ReadSettings(document, beside);
  if (!reading.problems.empty()) return Invalid(AtLine(origin, reading.problems.front()));
  return std::move(reading.config);
}

ConfigFindings CheckConfig(const std::string& text, std::string_view origin) {
  const auto document = ParseYaml(text, origin);
  if (!document) return {{document.error().message}, {}};
  const Reading reading = ReadSettings(*document);
  ConfigFindings findings;
  for (const YamlProblem& problem : reading.problems) {
    if (findings.problems.size() == kMostFindings) break;
    findings.problems.push_back(AtLine(origin, problem));
  }
  if (!reading.problems.empty()) return findings;
  if (Trimmed(text).empty()) {
    findings.notes.push_back(std::string(origin) +
                             ":1: empty: `berth serve` starts with the defaults, and keeps its "
                             "settings where it runs already");
  }
  std::vector<std::string> notes = NotesOn(reading.config);
  for (std::string& note : notes) {
    findings.notes.push_back(AtLine(origin, Located(std::move(note), *document)));
  }
  return findings;
}

Result<ConfigText> ConfigInside(std::string text, std::string_view origin) {
  ConfigText as_it_is{std::move(text), std::string(origin)};
  const auto parsed = ParseYaml(as_it_is.text, origin);
  if (!parsed || !parsed->IsMap()) return as_it_is;  // its reader says what is wrong
  const YAML::Node& document = *parsed;
  const YAML::Node kind = document["kind"];
  if (!kind.IsDefined() || !kind.IsScalar() || kind.Scalar() != "ConfigMap") return as_it_is;

  const auto refuse = [&](const YAML::Node& where, const std::string& got) {
    return Invalid(std::string(origin) + ":" + std::to_string(where.Mark().line + 1) +
                   ": data: want one configuration, or one named " + kUsualKey + ", got " + got);
  };
  const YAML::Node data = document["data"];
  if (!data.IsDefined() || !data.IsMap() || data.size() == 0) return refuse(document, "none");
  const YAML::Node usual = data[kUsualKey];
  if (data.size() > 1 && !usual.IsDefined()) {
    return refuse(data, std::to_string(data.size()) + " others");
  }
  const auto first = *data.begin();
  const std::string key =
      usual.IsDefined() || !first.first.IsScalar() ? kUsualKey : first.first.Scalar();
  const YAML::Node value = usual.IsDefined() ? usual : first.second;
  if (!value.IsScalar()) return refuse(value, "no text");
  if (std::string block = OnItsLine(value, as_it_is.text); !block.empty()) {
    return ConfigText{std::move(block), as_it_is.origin};
  }
  return ConfigText{value.Scalar(), as_it_is.origin + " data." + key};
}

Config Reloaded(const Config& now, const Config& wanted) {
  Config next = now;
  next.profile = wanted.profile;
  next.profiles = wanted.profiles;
  next.reservation_seconds = wanted.reservation_seconds;
  next.nodes_to_score = wanted.nodes_to_score;
  next.gangs = wanted.gangs;
  next.gangs.controllers = now.gangs.controllers;  // pods are read with them
  next.earmarks = wanted.earmarks;
  next.make_room = wanted.make_room;
  next.gpu_nodes.guard = wanted.gpu_nodes.guard;  // the conditions are read with the nodes
  // Classes name traits, and those of nodes are found as the nodes are read.
  if (wanted.traits == now.traits) next.workload_classes = wanted.workload_classes;
  next.log_level = wanted.log_level;
  return next;
}

std::vector<std::string> NeedsRestart(const Config& now, const Config& wanted) {
  // The printed form has every field, so that no list of them has to be kept here.
  std::vector<std::string> paths;
  AppendDifferences(YAML::Load(PrintConfig(Reloaded(now, wanted))), YAML::Load(PrintConfig(wanted)),
                    "", paths);
  return paths;
}

bool SamePolicy(const Config& a, const Config& b) {
  return ChosenProfile(a) == ChosenProfile(b) && ClassProfiles(a) == ClassProfiles(b);
}

RequestMix TypicalMix() {
  RequestMix mix;
  const auto add = [&mix](std::int64_t cpu_milli, const GpuAsk& gpus, double weight) {
    RequestClass& entry = mix.emplace_back();
    entry.shape.cpu_milli = cpu_milli;
    entry.shape.gpus = gpus;
    entry.weight = weight;
  };
  add(8000, GpuAsk(), 13.3);
  add(6000, GpuShare{250, 0}, 8.0);
  add(8000, GpuShare{500, 0}, 16.5);
  add(12000, GpuShare{810, 0}, 13.2);
  add(12000, WholeGpus{1}, 48.0);
  add(24000, WholeGpus{2}, 0.2);
  add(48000, WholeGpus{4}, 0.2);
  add(88000, WholeGpus{8}, 0.6);
  double sum = 0;
  for (const RequestClass& entry : mix) sum += entry.weight;
  for (RequestClass& entry : mix) entry.weight /= sum;
  return mix;
}

std::shared_ptr<Engine> EngineFor(const Config& config, std::shared_ptr<const LearnedMix> mix,
                                  const Snapshot& snapshot, Background background) {
  Engine::Learning learning{ChosenProfile(config), {}, std::move(mix)};
  learning.background = std::move(background);
  learning.others = ClassProfiles(config);
  if (learning.mix == nullptr) learning.fixed = std::make_shared<const RequestMix>(TypicalMix());
  auto engine = Engine::Create(std::move(learning), snapshot);
  BERTH_CHECK(engine.has_value());  // the configuration was validated
  return *std::move(engine);
}

}  // namespace berth
