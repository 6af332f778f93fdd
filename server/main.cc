// SPDX-License-Identifier: Apache-2.0
//
// The command line of berth: exit 0 success, 1 failure, 2 usage.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "config/print.h"
#include "config/schema.h"
#include "scoring/explain/node_edits.h"
#include "server/config_command.h"
#include "server/explain_command.h"
#include "server/plan_command.h"
#include "server/serve.h"
#include "server/topology_command.h"

namespace berth {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

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

void AddServer(CLI::App& command, ExplainFlags& flags) {
  command.add_option("--server", flags.server, "The Berth to ask, or its debugListen")
      ->type_name("URL")
      ->capture_default_str();
  command.add_flag("--json", flags.json, "Print the JSON of the server");
}

CLI::App* AddExplain(CLI::App& app, ExplainFlags& flags) {
  CLI::App* const explain =
      app.add_subcommand("explain", "Why a pod is where it is, or why it waits");
  explain->require_subcommand(0, 1);
  const auto add = [explain, &flags](const char* name, const char* what, const char* of) {
    CLI::App* const command = explain->add_subcommand(name, what);
    command->add_option("NAME", flags.name, of)->required();
    AddServer(*command, flags);
  };
  add("pod", "Where a pod is and why, or why it waits and what would change that",
      "NAMESPACE/NAME of the pod");
  add("node", "What a node has, what is free of it, and who holds the rest", "Name of the node");
  add("gang", "What pods that start together wait for", "NAMESPACE/NAME of the group");
  return explain;
}

int RunExplain(const CLI::App& explain, const ExplainFlags& flags) {
  return PrintOr(explain.got_subcommand("pod")    ? ExplainPodCommand(flags)
                 : explain.got_subcommand("node") ? ExplainNodeCommand(flags)
                                                  : ExplainGangCommand(flags));
}

void AddPlan(CLI::App& app, PlanFlags& flags) {
  CLI::App* const plan = app.add_subcommand("plan", "Where pods would go that do not exist yet");
  plan->add_option("-f,--file", flags.files,
                   "Manifests with pods, Jobs, Deployments, StatefulSets (YAML or JSON); - is "
                   "standard input")
      ->type_name("FILE")
      ->required();
  plan->add_option("--server", flags.server, "The Berth to ask, or its debugListen")
      ->type_name("URL")
      ->capture_default_str();
  CLI::Option* const cluster =
      plan->add_option("--cluster", flags.cluster,
                       "Plan on this file instead (a /debug/snapshot, or the JSON of `kubectl get "
                       "nodes,pods -A -o json`)")
          ->type_name("FILE")
          ->excludes("--server");
  plan->add_option("--config", flags.config, "With --cluster: BerthConfiguration (YAML)")
      ->type_name("FILE")
      ->needs(cluster);
  plan->add_option("--add-nodes", flags.add_nodes, "So many nodes come, as the one of --like")
      ->check(CLI::Range(1, kMostAddedNodes));
  plan->add_option("--like", flags.like, "The node of which they are copies")->type_name("NODE");
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
  CLI::App app("Berth: GPU placement for Kubernetes as a scheduler extender", "berth");
  app.require_subcommand(0, 1);  // at least one: see below
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
  ExplainFlags explain_flags;
  CLI::App* const explain = AddExplain(app, explain_flags);
  AddServer(*app.add_subcommand("top", "What the cluster has per GPU model, and what waits"),
            explain_flags);
  PlanFlags plan_flags;
  AddPlan(app, plan_flags);
  app.add_subcommand("version", "Print the version");
  try {
    app.parse(argc, argv);
    // Asked for here, because CLI11 would miss a subcommand before it names a word it does not
    // know.
    const CLI::App& last = app.got_subcommand(config)     ? *config
                           : app.got_subcommand(topology) ? *topology
                           : app.got_subcommand(explain)  ? *explain
                                                          : app;
    if (last.get_subcommands().empty()) throw CLI::RequiredError("A subcommand");
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : kUsage;
  }
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
