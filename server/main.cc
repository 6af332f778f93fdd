// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth: exit 0 success, 1 failure, 2 usage.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/print.h"
#include "config/schema.h"
#include "scoring/explain/node_edits.h"
#include "scoring/explain/pool_growth.h"
#include "server/cli/command_line.h"
#include "server/commands/config_command.h"
#include "server/commands/explain_command.h"
#include "server/commands/plan_command.h"
#include "server/commands/topology_command.h"
#include "server/service/serve.h"

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
  serve->add_option("--config", flags.config, "BerthConfiguration (YAML); default: built in")
      ->type_name("FILE");
  serve
      ->add_option("--kubeconfig", flags.target.kubeconfig,
                   "How to reach the API server; default: as the pod that this is")
      ->type_name("FILE");
  serve
      ->add_option("--cluster", flags.target.cluster_file,
                   "Serve an embedded cluster from this file (a /debug/snapshot, or the JSON of "
                   "`kubectl get nodes,pods -A -o json`) instead of one behind an API server")
      ->type_name("FILE");
  serve->add_option("--listen", flags.listen, "Where to listen; overrides the configuration")
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

CLI::App* AddTopology(CLI::App& app, TopologyFlags& flags) {
  CLI::App* const topology = app.add_subcommand("topology", "How the GPUs of a machine are linked");
  topology->require_subcommand(0, 1);
  const auto add = [topology, &flags](const char* name, const char* what) {
    CLI::App* const command = topology->add_subcommand(name, what);
    command
        ->add_option("FILE", flags.file,
                     "nvidia-smi topo -m, NCCL topology XML or JSON; - is standard input")
        ->required();
    return command;
  };
  add("show", "Print the matrix, islands, NUMA groups, best sets per size and Graphviz")
      ->add_flag("--json", flags.json, "Print the matrix as JSON");
  add("annotate", "Print the node annotation berth.dev/topology");
  CLI::App* const choose = add("choose", "Print which GPUs a policy takes");
  choose->add_option("--policy", flags.policy, "berth, first-fit, nvidia-..., hami-topology")
      ->capture_default_str();
  choose->add_option("--free", flags.free, "The free GPUs, as 0,3,5")->required();
  choose->add_option("--required", flags.required, "GPUs that have to be among the chosen");
  choose->add_option("--size", flags.size, "How many GPUs")->required();
  choose->add_flag("--json", flags.json, "Print JSON");
  return topology;
}

int RunTopology(const CLI::App& topology, const TopologyFlags& flags) {
  return PrintOr(topology.got_subcommand("show")       ? ShowTopology(flags)
                 : topology.got_subcommand("annotate") ? AnnotateTopology(flags)
                                                       : ChooseOnTopology(flags));
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
      command.add_option("--server", flags.at.url, "The Berth to ask, or its debugListen");
  url->type_name("URL")->capture_default_str();
  flags.urls.push_back(url);
  const auto add = [&](const char* name, std::string& value, const char* type, const char* what) {
    CLI::Option* const option = command.add_option(name, value, what);
    option->type_name(type)->excludes(url);
    flags.of_cluster.push_back(option);
    return option;
  };
  add("--context", flags.target.context, "NAME", "Ask Berth in the cluster of kubectl's context");
  add("--kubeconfig", flags.target.kubeconfig, "FILE", "Ask Berth in the cluster of this file");
  add("--service", flags.target.service, "NAMESPACE/NAME", "The Service of Berth in the cluster")
      ->capture_default_str();
  add("--via", flags.via, "WAY", "How to reach it there: proxy (of Services) or port-forward")
      ->check(CLI::IsMember({"proxy", "port-forward"}))
      ->capture_default_str();
}

// After parsing. The plugin of kubectl asks in a cluster unless it is told otherwise.
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
  CLI::App* const explain =
      app.add_subcommand("explain", "Why a pod is where it is, or why it waits");
  explain->require_subcommand(0, 1);
  const auto add = [explain, &flags, &server](const char* name, const char* what, const char* of) {
    CLI::App* const command = explain->add_subcommand(name, what);
    command->add_option("NAME", flags.name, of)->required();
    command->add_flag("--json", flags.json, "Print JSON");
    AddServer(*command, server);
    return command;
  };
  const auto add_namespaced = [&](const char* name, const char* what, const char* of) {
    add(name, what, of)
        ->add_option("-n,--namespace", flags.namespace_name, "Where NAME has none")
        ->type_name("NAMESPACE");
  };
  add_namespaced("pod", "Where a pod is and why, or why it waits and what would change that",
                 "NAMESPACE/NAME of the pod");
  add("node", "What a node has, what is free of it, and who holds the rest", "Name of the node");
  add_namespaced("gang", "What pods that start together wait for", "NAMESPACE/NAME of the group");
  return explain;
}

int RunExplain(const CLI::App& explain, const ExplainFlags& flags) {
  return PrintOr(explain.got_subcommand("pod")    ? ExplainPodCommand(flags)
                 : explain.got_subcommand("node") ? ExplainNodeCommand(flags)
                                                  : ExplainGangCommand(flags));
}

void AddPlan(CLI::App& app, PlanFlags& flags, ServerFlags& server) {
  CLI::App* const plan = app.add_subcommand(
      "plan", "Where pods would go that do not exist yet, and what new nodes would take");
  plan->add_option("-f,--file", flags.files,
                   "Manifests with pods, Jobs, Deployments, StatefulSets (YAML or JSON); - is "
                   "standard input")
      ->type_name("FILE");
  CLI::Option* const grow =
      plan->add_option("--grow", flags.grow,
                       "What the next 1, ..., COUNT nodes of each pool would take of the pods that "
                       "wait, or of those of -f")
          ->type_name("COUNT")
          ->check(CLI::Range(1, kMostGrowth));
  plan->add_option("--machine-type", flags.machine_types,
                   "With --grow: also what nodes of this type would take, of a pool that has none "
                   "yet; several with commas, or given several times")
      ->type_name("TYPE")
      ->allow_extra_args(false)
      ->delimiter(',')
      ->needs(grow);
  plan->callback([&flags] {
    if (flags.files.empty() && flags.grow == 0) throw CLI::RequiredError("--file or --grow");
  });
  AddServer(*plan, server);
  CLI::Option* const cluster =
      plan->add_option("--cluster", flags.cluster,
                       "Plan on this file instead (a /debug/snapshot, or the JSON of `kubectl get "
                       "nodes,pods -A -o json`)")
          ->type_name("FILE")
          ->excludes("--server");
  plan->add_option("--config", flags.config, "With --cluster: BerthConfiguration (YAML)")
      ->type_name("FILE")
      ->needs(cluster);
  plan->add_option("--add-nodes", flags.add_nodes,
                   "So many nodes come, as the one of --like; both may be given several times")
      ->type_name("COUNT")
      ->allow_extra_args(false)
      ->check(CLI::Range(1, kMostAddedNodes));
  plan->add_option("--like", flags.like,
                   "The node of which they are copies: its name, or a file with a Node (YAML or "
                   "JSON, as `kubectl get node -o yaml` writes it; - is standard input)")
      ->type_name("NODE|FILE")
      ->allow_extra_args(false);
  plan->add_option("--remove", flags.remove, "This node goes; may be given several times")
      ->type_name("NODE");
  plan->add_flag("--json", flags.json, "Print JSON");
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
  CommandLine line(app, BERTH_VERSION);
  ServeFlags serve;
  AddServe(app, serve);
  CLI::App* const config = app.add_subcommand("config", "Check, print or describe a configuration");
  config->require_subcommand(0, 1);
  std::string check_file, print_file;
  config->add_subcommand("check", "Name everything that is wrong with a configuration")
      ->add_option("FILE", check_file,
                   "BerthConfiguration (YAML), or a ConfigMap with one; - is standard input")
      ->required();
  config->add_subcommand("print", "Print a configuration with every default filled in")
      ->add_option("FILE", print_file, "as for check; default: built in");
  config->add_subcommand("schema", "Print the JSON Schema of a configuration, for editors");
  TopologyFlags topology_flags;
  CLI::App* const topology = AddTopology(app, topology_flags);
  ServerFlags server;
  ExplainFlags explain_flags;
  CLI::App* const explain = AddExplain(app, explain_flags, server);
  CLI::App* const top =
      app.add_subcommand("top", "What the cluster has per GPU model, and what waits");
  top->add_flag("--json", explain_flags.json, "Print JSON");
  AddServer(*top, server);
  PlanFlags plan_flags;
  AddPlan(app, plan_flags, server);
  app.add_subcommand("version", "Print the version");
  if (const std::optional<int> code = line.Parse(argc, argv)) return *code;
  explain_flags.at = plan_flags.at = AddressOf(server, is_plugin);
  if (app.got_subcommand("serve")) return RunServe(serve);
  if (app.got_subcommand(topology)) return RunTopology(*topology, topology_flags);
  if (app.got_subcommand(explain)) return RunExplain(*explain, explain_flags);
  if (app.got_subcommand("top")) return PrintOr(TopCommand(explain_flags));
  if (app.got_subcommand("plan")) return PrintOr(PlanCommand(plan_flags));
  if (app.got_subcommand("version")) {
    std::printf("berth %s\n", BERTH_VERSION);
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
