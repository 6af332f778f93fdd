// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth: exit 0 success, 1 failure, 2 usage.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/version.h"
#include "config/config.h"
#include "scoring/explain/node_edits.h"
#include "scoring/explain/pool_growth.h"
#include "server/cli/command_line.h"
#include "server/commands/doctor_command.h"
#include "server/commands/print_commands.h"
#include "server/service/serve.h"
#include "server/why/plan_request.h"

namespace berth {
namespace {

constexpr int kFailure = CommandLine::kFailure;

int Report(const Error& error) {
  std::fprintf(stderr, "berth: %s\n", error.message.c_str());
  return kFailure;
}

struct ServeFlags {
  std::string config, listen;
  ServeTarget target;
};

void AddServe(CLI::App& app, ServeFlags& flags) {
  CLI::App* const serve = app.add_subcommand("serve", "Answer kube-scheduler's extender calls");
  serve
      ->add_option("--config", flags.config,
                   "BerthConfiguration (YAML); default: the built-in configuration")
      ->type_name("FILE");
  serve
      ->add_option("--kubeconfig", flags.target.kubeconfig,
                   "Kubeconfig of the API server; default: the pod's service account")
      ->type_name("FILE");
  serve
      ->add_option("--cluster", flags.target.cluster_file,
                   "Serve a cluster in memory, read from this file (the JSON of `kubectl get "
                   "nodes,pods -A -o json`, or a /debug/snapshot)")
      ->type_name("FILE");
  serve->add_option("--listen", flags.listen, "Address to listen on; overrides the configuration")
      ->type_name("HOST:PORT");
}

int RunServe(const ServeFlags& flags) {
  auto config = ConfigFile::Open(flags.config, flags.listen);
  if (!config) return Report(config.error());
  if (!flags.target.cluster_file.empty() && !flags.target.kubeconfig.empty()) {
    return Report(
        {Errc::kInvalidArgument, "serve: want one of --cluster and --kubeconfig, got both"});
  }
  const Status served = Serve(*std::move(config), flags.target);
  return served ? 0 : Report(served.error());
}

int PrintOr(const Result<std::string>& text) {
  if (!text) return Report(text.error());
  std::fputs(text->c_str(), stdout);
  return 0;
}

// `berth topology` is `berth-replay topology`: same options, same output, same exit status.
int RunTopology(std::vector<char*> arguments) {
  std::string replay = "berth-replay";
  arguments[0] = replay.data();
  arguments.push_back(nullptr);
  std::error_code ignored;
  std::filesystem::path beside = std::filesystem::read_symlink("/proc/self/exe", ignored);
  execv(beside.replace_filename(replay).c_str(), arguments.data());
  execvp(replay.c_str(), arguments.data());
  std::fputs("berth: put berth-replay beside berth or on PATH: berth topology runs it\n", stderr);
  return CommandLine::kUsage;
}

// Which Berth is asked: one with an address, or one in a cluster that kubectl knows.
struct ServerFlags {
  ServerAddress at;
  KubectlTarget target;
  std::string via = "proxy";
  std::vector<CLI::Option*> urls, of_cluster;  // of every command that asks
};

void AddServer(CLI::App& command, ServerFlags& flags) {
  CLI::Option* const url =
      command.add_option("--server", flags.at.url, "Address of Berth, or of its debugListen");
  url->type_name("URL")->capture_default_str();
  flags.urls.push_back(url);
  const auto add = [&](const char* name, std::string& value, const char* type, const char* what) {
    CLI::Option* const option = command.add_option(name, value, what);
    option->type_name(type)->excludes(url);
    flags.of_cluster.push_back(option);
    return option;
  };
  add("--context", flags.target.context, "NAME",
      "Ask Berth in the cluster of this kubectl context");
  add("--kubeconfig", flags.target.kubeconfig, "FILE",
      "Ask Berth in the cluster of this kubeconfig");
  add("--service", flags.target.service, "NAMESPACE/NAME", "Service of Berth in the cluster")
      ->capture_default_str();
  add("--via", flags.via, "WAY",
      "How to reach the Service: proxy (of the API server) or port-forward")
      ->check(CLI::IsMember({"proxy", "port-forward"}))
      ->capture_default_str();
}

// A file in the place of a server. Call it after AddServer.
void AddClusterFile(CLI::App& command, std::string& cluster, std::string& config) {
  CLI::Option* const file =
      command
          .add_option("--cluster", cluster,
                      "Ask about the cluster of this file, without a server (the JSON of `kubectl "
                      "get nodes,pods -A -o json`, or a /debug/snapshot)")
          ->type_name("FILE")
          ->excludes("--server");
  for (const char* option : {"--context", "--kubeconfig", "--service", "--via"}) {
    file->excludes(option);
  }
  command.add_option("--config", config, "With --cluster: BerthConfiguration (YAML)")
      ->type_name("FILE")
      ->needs(file);
}

// Call it after parsing. The kubectl plugin asks in a cluster unless --server is given.
ServerAddress AddressOf(const ServerFlags& flags, bool is_plugin) {
  const auto given = [](const CLI::Option* option) { return option->count() > 0; };
  ServerAddress at = flags.at;
  if (std::ranges::any_of(flags.of_cluster, given) ||
      (is_plugin && std::ranges::none_of(flags.urls, given))) {
    at.cluster = flags.target;
    at.cluster->port_forward = flags.via == "port-forward";
  }
  return at;
}

CLI::App* AddExplain(CLI::App& app, ExplainFlags& flags, ServerFlags& server) {
  CLI::App* const explain = app.add_subcommand(
      "explain", "Explain a pod, node or gang; list all that wait, or nodes that are not fine");
  explain->require_subcommand(0, 1);
  const auto add = [explain, &flags, &server](const char* name, const char* what) {
    CLI::App* const command = explain->add_subcommand(name, what);
    command->add_flag("--json", flags.json, "Print JSON");
    AddServer(*command, server);
    AddClusterFile(*command, flags.cluster, flags.config);
    return command;
  };
  const auto add_namespaced = [&](const char* name, const char* what, const char* of) {
    CLI::App* const command = add(name, what);
    command->add_option("NAME", flags.name, of)->required();
    command
        ->add_option("-n,--namespace", flags.namespace_name, "Namespace of NAME if NAME has none")
        ->type_name("NAMESPACE");
  };
  add_namespaced("pod", "Explain where a pod is and why, or why it waits and what helps",
                 "NAMESPACE/NAME of the pod");
  add("node", "Show what a node has, what is free, and which pods hold the rest")
      ->add_option("NAME", flags.name, "Name of the node")
      ->required();
  add_namespaced("gang", "Explain what a gang (pods that start together) waits for",
                 "NAMESPACE/NAME of the gang");
  add("waiting", "List the pods and gangs that wait for GPUs, in their order, and why each waits");
  add("nodes", "List the GPU nodes that are closed, have a fault, or are kept for somebody")
      ->add_option("NAME", flags.name, "One node, as explain node shows it");
  return explain;
}

int RunExplain(const CLI::App& explain, const ExplainFlags& flags) {
  if (explain.got_subcommand("waiting")) return PrintOr(WaitingCommand(flags));
  if (explain.got_subcommand("pod")) return PrintOr(ExplainPodCommand(flags));
  if (explain.got_subcommand("gang")) return PrintOr(ExplainGangCommand(flags));
  return PrintOr(ExplainNodeCommand(flags));
}

// What people ask about as they name it to kubectl: "explain pods web-0", "explain pod/web-0".
std::vector<std::string> WithKindApart(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (argc < 3 || words[1] != "explain") return words;
  const std::size_t slash = words[2].find('/');
  std::string kind = words[2].substr(0, slash);
  if (kind == "po" || kind == "pods") kind = "pod";
  if (kind == "no") kind = "nodes";
  if (kind != "pod" && kind != "node" && kind != "nodes" && kind != "gang") return words;
  if (slash != std::string::npos) words.insert(words.begin() + 3, words[2].substr(slash + 1));
  words[2] = kind;
  return words;
}

// Of a name without its kind.
void AdviseOnKind(const std::vector<std::string>& words) {
  if (words.size() != 3 || words[1] != "explain" || words[2].starts_with("-")) return;
  for (const char* kind : {"pod", "node", "gang", "waiting", "nodes"}) {
    if (words[2] == kind) return;
  }
  std::fprintf(stderr, "Say what it is: explain pod %s\n", words[2].c_str());
}

void AddManifests(CLI::App& command, PlanFlags& flags) {
  command
      .add_option("-f,--file", flags.files,
                  "Manifests with pods or objects that make pods (YAML or JSON); - is "
                  "standard input")
      ->type_name("FILE");
  command
      .add_option("-n,--namespace", flags.namespace_name,
                  "Namespace of manifests that have none; default: that of kubectl's context, "
                  "or default")
      ->type_name("NAMESPACE");
}

// Whom room is for. flag: that it is asked for; nullptr: the command does nothing else.
void AddRoomGoals(CLI::App& command, PlanFlags& flags, CLI::Option* flag) {
  const auto help = [flag](std::string text) {
    if (flag == nullptr) return text;
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
    return "With --make-room: " + text;
  };
  CLI::Option* const pods =
      command
          .add_option("--for", flags.room_for,
                      help("Only for this waiting pod or gang; may be repeated"))
          ->type_name("[NAMESPACE/]NAME")
          ->allow_extra_args(false);
  CLI::Option* const idle = command
                                .add_option("--idle-nodes", flags.idle_nodes,
                                            help("So that COUNT nodes have nothing but idle GPUs"))
                                ->type_name("COUNT")
                                ->check(CLI::Range(1, wire::kMostIdleNodes));
  command.add_option("--model", flags.model, "With --idle-nodes: nodes with GPUs of this model")
      ->type_name("MODEL")
      ->needs(idle);
  if (flag == nullptr) return;
  pods->needs(flag);
  idle->needs(flag);
}

constexpr const char* kMakesRoom =
    "Show which running pods to move, and where, so that waiting pods (or pods of -f) have a place";

// `berth make-room` is `berth plan --make-room`: what people look for in the list of commands.
void AddMakeRoom(CLI::App& app, PlanFlags& flags, ServerFlags& server) {
  CLI::App* const room = app.add_subcommand("make-room", kMakesRoom);
  AddManifests(*room, flags);
  AddRoomGoals(*room, flags, nullptr);
  AddServer(*room, server);
  AddClusterFile(*room, flags.cluster, flags.config);
  room->add_flag("--json", flags.json, "Print JSON");
  room->callback([&flags] { flags.make_room = true; });
}

void AddPlan(CLI::App& app, PlanFlags& flags, ServerFlags& server) {
  CLI::App* const plan = app.add_subcommand(
      "plan", "Show where new pods would be placed, and how many pods new nodes would take");
  AddManifests(*plan, flags);
  CLI::Option* const grow = plan->add_option("--grow", flags.grow,
                                             "For each pool, how many waiting pods (or pods of -f) "
                                             "1..COUNT more nodes would place")
                                ->type_name("COUNT")
                                ->check(CLI::Range(1, kMostGrowth));
  plan->add_option("--machine-type", flags.machine_types,
                   "With --grow: also a new pool of this machine type; separate several by commas, "
                   "or repeat the option")
      ->type_name("TYPE")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->needs(grow);
  AddRoomGoals(*plan, flags,
               plan->add_flag("--make-room", flags.make_room, kMakesRoom)->excludes(grow));
  plan->callback([&flags] {
    if (flags.files.empty() && flags.grow == 0 && !flags.make_room) {
      throw CLI::RequiredError("--file, --grow or --make-room");
    }
  });
  AddServer(*plan, server);
  AddClusterFile(*plan, flags.cluster, flags.config);
  plan->add_option("--add-nodes", flags.add_nodes,
                   "Add COUNT nodes like the node of --like; both options may be repeated")
      ->type_name("COUNT")
      ->allow_extra_args(false)
      ->check(CLI::Range(1, kMostAddedNodes));
  plan->add_option("--like", flags.like,
                   "Node to copy: its name, or a file with a Node (YAML or JSON, as of `kubectl "
                   "get node -o yaml`; - is standard input)")
      ->type_name("NODE|FILE")
      ->allow_extra_args(false);
  plan->add_option("--remove", flags.remove, "Remove this node; may be repeated")
      ->type_name("NODE");
  plan->add_flag("--json", flags.json, "Print JSON");
}

void AddDoctor(CLI::App& app, DoctorFlags& flags) {
  CLI::App* const doctor = app.add_subcommand(
      "doctor", "Say what is wrong with the GPU scheduling of a cluster, and the cure of each");
  CLI::Option* const file =
      doctor->add_option("--cluster", flags.cluster, "Look at the cluster of this file");
  file->type_name("FILE");
  doctor->add_flag("--install", flags.install, "Print how to install Berth on this cluster");
  KubectlTarget& target = flags.at.cluster.emplace();
  doctor->add_option("--context", target.context, "Look at the cluster of this kubectl context")
      ->type_name("NAME")
      ->excludes(file);
  doctor->add_option("--kubeconfig", target.kubeconfig, "Look at the cluster of this kubeconfig")
      ->type_name("FILE")
      ->excludes(file);
  doctor->add_option("--service", target.service, "Service of Berth in the cluster")
      ->type_name("NAMESPACE/NAME")
      ->capture_default_str();
}

void AddSnapshot(CLI::App& app, ExplainFlags& flags) {
  CLI::App* const snapshot = app.add_subcommand(
      "snapshot", "Print the cluster of a file, for a report: no environment, arguments, secrets");
  snapshot
      ->add_option("--cluster", flags.cluster,
                   "The cluster (the JSON of `kubectl get nodes,pods -A -o json`)")
      ->type_name("FILE")
      ->required();
  snapshot->add_option("--config", flags.config, "BerthConfiguration (YAML), if you have one")
      ->type_name("FILE");
}

int RunDoctor(const DoctorFlags& flags) {
  const Result<DoctorAnswer> answer = DoctorCommand(flags);
  if (!answer) return Report(answer.error());
  std::fputs(answer->text.c_str(), stdout);
  return answer->is_well ? 0 : kFailure;
}

int RunCheck(const std::string& file) {
  const auto found = CheckConfigFile(file);
  if (!found) return Report(found.error());
  for (const std::string& problem : found->problems) {
    std::fprintf(stderr, "berth: %s\n", problem.c_str());
  }
  if (!found->problems.empty()) return kFailure;
  for (const std::string& note : found->notes) std::printf("note: %s\n", note.c_str());
  std::printf("%s: ok\n", file.c_str());
  return 0;
}

int RunPrint(const std::string& file) {
  const Result<Config> config = file.empty() ? DefaultConfig() : ConfigForPrint(file);
  if (!config) return Report(config.error());
  std::fputs(PrintConfig(*config).c_str(), stdout);
  return 0;
}

int Main(int argc, char** argv) {
  // `kubectl berth` runs kubectl-berth: this program under another name.
  const bool is_plugin = std::string_view(argv[0]).ends_with("kubectl-berth");
  CLI::App app("GPU placement for Kubernetes as a scheduler extender",
               is_plugin ? "kubectl-berth" : "berth");
  CommandLine line(app, std::string(BerthVersion()));
  ServeFlags serve;
  AddServe(app, serve);
  CLI::App* const config = app.add_subcommand("config", "Check, print or describe a configuration");
  config->require_subcommand(0, 1);
  std::string check_file, print_file;
  config->add_subcommand("check", "Report every error of a configuration")
      ->add_option("FILE", check_file,
                   "BerthConfiguration (YAML), or a ConfigMap with one; - is standard input")
      ->required();
  config->add_subcommand("print", "Print a configuration with every default filled in")
      ->add_option("FILE", print_file,
                   "Configuration, as for check; default: the built-in configuration");
  config->add_subcommand("schema", "Print the JSON Schema of a configuration, for editors");
  app.add_subcommand("topology", "Show, choose or annotate the GPUs of a machine by their links");
  ServerFlags server;
  ExplainFlags explain_flags;
  CLI::App* const explain = AddExplain(app, explain_flags, server);
  CLI::App* const top = app.add_subcommand("top", "Show GPUs by model, and the pods that wait");
  top->add_flag("--json", explain_flags.json, "Print JSON");
  AddServer(*top, server);
  AddClusterFile(*top, explain_flags.cluster, explain_flags.config);
  PlanFlags plan_flags;
  AddPlan(app, plan_flags, server);
  AddMakeRoom(app, plan_flags, server);
  DoctorFlags doctor_flags;
  AddDoctor(app, doctor_flags);
  AddSnapshot(app, explain_flags);
  app.add_subcommand("version", "Print the version");
  if (argc > 1 && std::string_view(argv[1]) == "topology") return RunTopology({argv, argv + argc});
  std::vector<std::string> words = WithKindApart(argc, argv);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  if (const auto code = line.Parse(static_cast<int>(words.size()), arguments.data())) {
    if (*code == CommandLine::kUsage) AdviseOnKind(words);
    return *code;
  }
  explain_flags.at = plan_flags.at = AddressOf(server, is_plugin);
  if (app.got_subcommand("serve")) return RunServe(serve);
  if (app.got_subcommand(explain)) return RunExplain(*explain, explain_flags);
  if (app.got_subcommand("top")) return PrintOr(TopCommand(explain_flags));
  if (app.got_subcommand("plan") || app.got_subcommand("make-room"))
    return PrintOr(PlanCommand(plan_flags));
  if (app.got_subcommand("snapshot")) return PrintOr(SnapshotCommand(explain_flags));
  if (app.got_subcommand("doctor")) return RunDoctor(doctor_flags);
  if (app.got_subcommand("version")) {
    std::printf("berth %s\n", std::string(BerthVersion()).c_str());
    return 0;
  }
  if (config->got_subcommand("schema")) {
    std::fputs(ConfigSchema().c_str(), stdout);
    return 0;
  }
  return config->got_subcommand("check") ? RunCheck(check_file) : RunPrint(print_file);
}

}  // namespace
}  // namespace berth

int main(int argc, char** argv) { return berth::Main(argc, argv); }
