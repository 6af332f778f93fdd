// SPDX-License-Identifier: Apache-2.0
#include "server/commands/print_commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/clock.h"
#include "base/dns_name.h"
#include "base/file.h"
#include "cluster/claims/device_claim.h"
#include "cluster/claims/device_offers.h"
#include "cluster/groups/pod_groups.h"
#include "cluster/state/snapshot.h"
#include "cluster/state/waiting_pods.h"
#include "config/parse_yaml.h"
#include "scoring/waste/request_mix.h"
#include "server/dialects/cluster_loader.h"
#include "server/dialects/registry.h"
#include "server/extender/extender.h"
#include "server/extender/gangs/table/gang_table.h"
#include "server/extender/ports/embedded_cluster.h"
#include "server/pages/plan_page.h"
#include "server/settings/config_file.h"
#include "server/why/explain_pages.h"
#include "server/why/live.h"
#include "server/why/plan_request.h"
#include "server/wire/file/cluster_file.h"
#include "server/wire/json/json_text.h"

namespace berth {
namespace {

void PrintProblems(const std::string& path, const std::vector<std::string>& problems) {
  constexpr std::size_t kTold = 10;
  for (std::size_t i = 0; i < std::min(problems.size(), kTold); ++i) {
    std::fprintf(stderr, "berth: note: %s: %s\n", path.c_str(), problems[i].c_str());
  }
  if (problems.size() <= kTold) return;
  std::fprintf(stderr, "berth: note: %s: and %zu more\n", path.c_str(), problems.size() - kTold);
}

// ClusterOfFile: the parts of a Berth that serves a cluster of a file, for the commands that ask
// about a file in the place of a running Berth.
class ClusterOfFile {
 public:
  // config: a BerthConfiguration; empty: the built-in one. Prints on stderr what of the file cannot
  // be read. Error: as ConfigFile::Open and dialects::LoadCluster.
  // slim: if given, becomes the file as `berth snapshot` prints it.
  static Result<std::unique_ptr<ClusterOfFile>> Load(const std::string& path,
                                                     const std::string& config,
                                                     std::string* slim = nullptr) {
    BERTH_TRY(ConfigFile file, ConfigFile::Open(config, ""));
    std::unique_ptr<ClusterOfFile> cluster(new ClusterOfFile(std::move(file)));
    BERTH_TRY_STATUS(cluster->Load(path, slim));
    return cluster;
  }

  [[nodiscard]] const Live& live() const { return *live_; }

 private:
  class NoSink final : public DecisionSink {
   public:
    void Record(const Decision&) override {}
  };

  explicit ClusterOfFile(ConfigFile config) : file_(std::move(config)) {}

  Status Load(const std::string& path, std::string* slim) {
    BERTH_TRY(
        const dialects::LoadedCluster loaded,
        dialects::LoadCluster(path, {.state = state_,
                                     .waiting = waiting_,
                                     .budgets = budgets_,
                                     .mix = *mix_,
                                     .most_learned = double(LearningParameters().half_life_pods),
                                     .node_rules = nodes_,
                                     .extensions = {.groups = groups_,
                                                    .mig_offers = mig_offers_,
                                                    .device_classes = device_classes_,
                                                    .devices = devices_,
                                                    .open_claims = open_claims_,
                                                    .pod_rules = rules_,
                                                    .links = *nodes_.links,
                                                    .chooses_devices = true},
                                     .slim = slim}));
    PrintProblems(path, loaded.problems);
    extender_ =
        std::make_unique<Extender>(Extender::Parts{.state = state_,
                                                   .binder = binder_,
                                                   .sink = sink_,
                                                   .clock = clock_,
                                                   .budgets = &budgets_,
                                                   .mix = mix_.get(),
                                                   .domains = &domains_,
                                                   .gangs = &gangs_,
                                                   .waiting = &waiting_,
                                                   .claims = &claims_},
                                   PolicyOf(config_, EngineFor(config_, mix_, *state_.Current())));
    extender_->TakeStock();
    live_ = std::make_unique<const Live>(Live{.extender = *extender_,
                                              .state = state_,
                                              .waiting = waiting_,
                                              .gangs = gangs_,
                                              .domains = domains_,
                                              .pod_rules = rules_,
                                              .node_rules = nodes_,
                                              .readiness = readiness_,
                                              .shows_waiting = loaded.is_list,
                                              .mix = mix_.get(),
                                              .mig_offers = &mig_offers_});
    return {};
  }

  const ConfigFile file_;
  const Config& config_ = file_.config();
  const std::shared_ptr<const wire::Dialects> dialects_ = dialects::AllDialects(config_);
  const wire::NodeRules nodes_{config_, dialects_};
  PodGroups groups_;
  MigOffers mig_offers_;
  DeviceClasses device_classes_;
  DeviceOffers devices_;
  OpenClaims open_claims_;
  const wire::PodRules rules_{dialects_, config_, &groups_, &device_classes_};
  ClusterState state_;
  EmbeddedCluster binder_;
  NoSink sink_;
  SystemClock clock_;
  WaitingPods waiting_;
  DisruptionBudgets budgets_;
  NodeDomains domains_{config_.topology_levels};
  const GangClaims claims_{open_claims_, devices_, device_classes_};  // a file has all of them
  GangTable gangs_{{state_, waiting_, domains_, &groups_, &claims_}};
  const std::shared_ptr<LearnedMix> mix_ = std::make_shared<LearnedMix>(LearningParameters());
  const Readiness readiness_{nullptr};
  std::unique_ptr<Extender> extender_;
  std::unique_ptr<const Live> live_;
};

Result<ConfigText> ConfigIn(const std::string& file) {
  std::string text;
  if (file == "-") {
    text = ReadStandardInput();
  } else {
    BERTH_TRY(text, ReadFile(file));
  }
  return ConfigInside(std::move(text), file);
}

using AnswerPage = http::HttpResponse (*)(const Live& live, const std::string& path,
                                          const std::string& query);

// page: what the server answers that path with.
Result<std::string> Fetch(const ExplainFlags& flags, const std::string& path, AnswerPage page) {
  if (flags.cluster.empty()) return AskServer(flags.at, "GET", path + (flags.json ? "" : "?text"));
  BERTH_TRY(const auto cluster, ClusterOfFile::Load(flags.cluster, flags.config));
  http::HttpResponse answer = page(cluster->live(), path, flags.json ? "" : "text");
  return BodyOf(answer.status, std::move(answer.body), flags.cluster);
}

// NAMESPACE/NAME. of_gang: by the value of a label it may be "app=x", and of two gangs of one name
// each has its convention before it: "berth:ml/train".
Result<std::string> FullName(const ExplainFlags& flags, bool of_gang) {
  std::string name = flags.name;
  if (name.find('/') == std::string::npos) {
    std::string space = flags.namespace_name;
    if (space.empty() && flags.at.cluster) {
      BERTH_TRY(space, CurrentNamespace(*flags.at.cluster));
    }
    if (space.empty() && !flags.cluster.empty()) space = "default";
    if (!space.empty()) name.insert(0, space + "/");
  }
  const std::size_t slash = name.find('/');
  const std::string last = slash == std::string::npos ? "" : name.substr(slash + 1);
  const auto in_path = [](char c) {
    return c > ' ' && c < 127 && c != '?' && c != '#' && c != '/';
  };
  const bool good =
      IsDnsSubdomain(last) || (of_gang && !last.empty() && std::ranges::all_of(last, in_path));
  const std::size_t colon = of_gang ? name.substr(0, slash).find(':') : std::string::npos;
  const std::size_t begin = colon == std::string::npos ? 0 : colon + 1;
  if (good && IsDnsLabel(name.substr(begin, slash - begin))) return name;
  return Invalid("want NAMESPACE/NAME, or NAME with --namespace, got \"" + flags.name + "\"");
}

Result<std::string> TextIn(const std::string& file) {
  if (file != "-") return ReadFile(file, wire::kMostPlanBytes);
  std::string text = ReadStandardInput(wire::kMostPlanBytes);
  if (text.size() > wire::kMostPlanBytes) {
    return tl::unexpected(TooLarge("standard input", wire::kMostPlanBytes));
  }
  return text;
}

Status Check(const PlanFlags& flags) {
  if (flags.files.empty() && flags.grow == 0 && !flags.make_room) {
    return Invalid("plan: want a file of pods, -f FILE, or --grow COUNT, or --make-room");
  }
  if (!flags.machine_types.empty() && flags.grow == 0) {
    return Invalid("plan: want --grow COUNT with --machine-type");
  }
  if (flags.add_nodes.size() != flags.like.size()) {
    return Invalid("plan: want one --like for each --add-nodes, got " +
                   std::to_string(flags.like.size()) + " and " +
                   std::to_string(flags.add_nodes.size()));
  }
  if (std::ranges::count(flags.files, "-") + std::ranges::count(flags.like, "-") > 1) {
    return Invalid("plan: want standard input (-) only once");
  }
  return {};
}

// Adds what --like says: the name of a node, or the Node that is in a file.
Status AddLike(const std::string& like, std::string& body) {
  if (!IsShapeFile(like)) {
    wire::AppendString(body, like);
    return {};
  }
  BERTH_TRY(const std::string text, TextIn(like));
  BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, like));
  if (documents.size() != 1) {
    return Invalid("--like " + like + ": want one Node, got " + std::to_string(documents.size()) +
                   " documents");
  }
  if (!documents.front().starts_with('{')) return Invalid("--like " + like + ": want a Node");
  body += documents.front();
  return {};
}

// Adds a list after other fields; nothing where it is empty.
void AddNames(const char* field, const std::vector<std::string>& names, std::string& body) {
  if (names.empty()) return;
  body += std::string(",\"") + field + "\":[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) body += ',';
    wire::AppendString(body, names[i]);
  }
  body += ']';
}

// The namespace of objects that name none: as kubectl would create them.
Result<std::string> NamespaceFor(const PlanFlags& flags) {
  if (!flags.namespace_name.empty()) return flags.namespace_name;
  const bool names_pods = !flags.files.empty() || !flags.room_for.empty();
  if (!flags.at.cluster || !flags.cluster.empty() || !names_pods) return "default";
  return CurrentNamespace(*flags.at.cluster);
}

// What room is to be made.
void AddRoom(const PlanFlags& flags, const std::string& space, std::string& body) {
  std::vector<std::string> names = flags.room_for;
  for (std::string& name : names) {
    if (name.find('/') == std::string::npos) name = space + "/" + name;
  }
  body += R"("make_room":{)";
  std::string fields;
  AddNames("for", names, fields);
  if (flags.idle_nodes > 0) fields += R"(,"idle_nodes":)" + std::to_string(flags.idle_nodes);
  if (!flags.model.empty()) {
    fields += R"(,"model":)";
    wire::AppendString(fields, flags.model);
  }
  if (!fields.empty()) body += fields.substr(1);
  body += '}';
}

// The body of POST /plan.
Result<std::string> RequestOf(const PlanFlags& flags) {
  BERTH_TRY_STATUS(Check(flags));
  BERTH_TRY(const std::string space, NamespaceFor(flags));
  std::string body = "{";
  if (flags.grow > 0) body += R"("grow":)" + std::to_string(flags.grow);
  if (flags.make_room) AddRoom(flags, space, body);
  if (!flags.files.empty()) body += body.size() > 1 ? R"(,"pods":[)" : R"("pods":[)";
  bool is_first = true;
  for (const std::string& file : flags.files) {
    BERTH_TRY(const std::string text, TextIn(file));
    if (const std::string is = wire::WrongText(text); !is.empty()) {
      return Invalid("-f " + file + ": want the JSON or YAML of pods, got " + is);
    }
    BERTH_TRY(const std::vector<std::string> documents, JsonDocuments(text, file));
    for (const std::string& document : documents) {
      if (!std::exchange(is_first, false)) body += ',';
      body += document;
    }
  }
  if (!flags.files.empty()) body += ']';
  for (std::size_t i = 0; i < flags.like.size(); ++i) {
    body += i == 0 ? R"(,"add":[{"like":)" : R"(,{"like":)";
    BERTH_TRY_STATUS(AddLike(flags.like[i], body));
    body += R"(,"count":)" + std::to_string(flags.add_nodes[i]) + "}";
  }
  if (!flags.like.empty()) body += ']';
  AddNames("remove", flags.remove, body);
  AddNames("machine_types", flags.machine_types, body);
  if (space != "default") {  // a Berth of version 0.1.0 knows no other
    body += R"(,"namespace":)";
    wire::AppendString(body, space);
  }
  return body + "}";
}

// An error about a field of the request, in the words in which it was asked.
Error AsAsked(Error error, const PlanFlags& flags) {
  for (std::size_t i = 0; i < flags.machine_types.size(); ++i) {
    const std::string field = "machine_types[" + std::to_string(i) + "]";
    const std::size_t at = error.message.find(field);
    if (at != std::string::npos) error.message.replace(at, field.size(), "--machine-type");
  }
  for (std::size_t i = 0; i < flags.like.size(); ++i) {
    const std::string field = "add[" + std::to_string(i) + "].like";
    const std::size_t at = error.message.find(field);
    if (at == std::string::npos) continue;
    const bool goes_on = error.message.compare(at + field.size(), 1, ".") == 0;
    error.message.replace(at, field.size() + (goes_on ? 1 : 0),
                          "--like " + flags.like[i] + (goes_on ? ": " : ""));
  }
  return error;
}

Result<std::string> Ask(const PlanFlags& flags, const std::string& request) {
  if (flags.cluster.empty()) {
    return AskServer(flags.at, "POST", flags.json ? "/plan" : "/plan?text", request);
  }
  BERTH_TRY(const auto cluster, ClusterOfFile::Load(flags.cluster, flags.config));
  return MakePlan(cluster->live(), request, !flags.json);
}

}  // namespace

Result<ConfigFindings> CheckConfigFile(const std::string& file) {
  BERTH_TRY(const ConfigText config, ConfigIn(file));
  return CheckConfig(config.text, config.origin);
}

Result<Config> ConfigForPrint(const std::string& file) {
  BERTH_TRY(const ConfigText config, ConfigIn(file));
  return LoadConfig(config.text, config.origin);
}

Result<std::string> ExplainPodCommand(const ExplainFlags& flags) {
  BERTH_TRY(const std::string name, FullName(flags, false));
  return Fetch(flags, "/debug/pods/" + name, ExplainPodPage);
}

Result<std::string> ExplainNodeCommand(const ExplainFlags& flags) {
  if (flags.name.empty()) return Fetch(flags, "/debug/nodes", NodesPage);
  if (!IsDnsSubdomain(flags.name)) {
    return Invalid("want the name of a node, got \"" + flags.name + "\"");
  }
  return Fetch(flags, "/debug/nodes/" + flags.name, ExplainNodePage);
}

Result<std::string> ExplainGangCommand(const ExplainFlags& flags) {
  BERTH_TRY(const std::string name, FullName(flags, true));
  return Fetch(flags, "/debug/gangs/" + name, ExplainGangPage);
}

Result<std::string> TopCommand(const ExplainFlags& flags) {
  return Fetch(flags, "/debug/top", TopPage);
}

Result<std::string> WaitingCommand(const ExplainFlags& flags) {
  return Fetch(flags, "/debug/waiting", WaitingPage);
}

Result<std::string> SnapshotCommand(const ExplainFlags& flags) {
  std::string slim;
  const auto cluster = ClusterOfFile::Load(flags.cluster, flags.config, &slim);
  if (!cluster) return tl::unexpected(cluster.error());
  return slim;
}

bool IsShapeFile(const std::string& like) {
  if (like == "-" || like.find('/') != std::string::npos) return true;
  for (const char* ending : {".yaml", ".yml", ".json"}) {
    if (like.ends_with(ending)) return true;
  }
  std::error_code ignored;  // what cannot be asked about is no file
  return std::filesystem::is_regular_file(like, ignored);
}

Result<std::string> PlanCommand(const PlanFlags& flags) {
  BERTH_TRY(const std::string request, RequestOf(flags));
  auto told = Ask(flags, request);
  if (!told) return tl::unexpected(AsAsked(std::move(told).error(), flags));
  return told;
}

}  // namespace berth
