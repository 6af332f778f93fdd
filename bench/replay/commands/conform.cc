// SPDX-License-Identifier: Apache-2.0
//
// berth-replay conform: the cases of the extender protocol against a running extender.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/replay/commands/command.h"
#include "bench/replay/commands/options.h"
#include "bench/replay/conform/conform.h"
#include "bench/replay/report.h"

namespace berth::replay {
namespace {

using conform::ConformLine;
using conform::ConformOptions;
using conform::Outcome;

struct ConformFlags {
  ConformOptions options;
  std::vector<std::string> only;
  std::string json;
};

Status Run(ConformFlags flags, const MadeWith& made_with) {
  flags.options.only = {flags.only.begin(), flags.only.end()};
  BERTH_TRY(const std::vector<ConformLine> lines, conform::Conform(flags.options));
  nlohmann::ordered_json json = {{"made_with", MadeWithJson(made_with)},
                                 {"url", flags.options.url}};
  json.update(conform::ConformJson(lines));
  BERTH_TRY_STATUS(WriteTableAndJson(conform::ConformText(lines), flags.json, json));
  const std::size_t failed = conform::CountOf(lines, Outcome::kFail);
  if (failed == 0) return {};
  return Fail(Errc::kInternal, flags.options.url + ": " + std::to_string(failed) +
                                   (failed == 1 ? " check" : " checks") + " failed");
}

std::string CheckUrl(const std::string& url) {
  const auto parsed = conform::ParseExtenderUrl(url);
  return parsed ? "" : parsed.error().message;
}

}  // namespace

Command AddConform(CLI::App& app) {
  const auto flags = std::make_shared<ConformFlags>();
  ConformOptions& options = flags->options;
  CLI::App* const command = app.add_subcommand(
      "conform", "Try the cases of the scheduler extender protocol on a running extender");
  command->add_option("--url", options.url, "The extender's urlPrefix")
      ->required()
      ->check(CLI::Validator(CheckUrl, ""))
      ->type_name("http://HOST:PORT/PREFIX");
  for (const auto& [option, verb] : {std::pair{"--filter", 'f'}, std::pair{"--prioritize", 'p'},
                                     std::pair{"--preempt", 'v'}, std::pair{"--bind", 'b'}}) {
    command->add_option(option, options.verbs.at(verb), "The verb's name in the URL")
        ->type_name("VERB")
        ->capture_default_str();
  }
  AddNames(*command, "--only", flags->only, "Numbers of cases, and verbs");
  AddNames(*command, "--nodes", options.nodes,
           "Nodes that the extender knows: more is seen of its answers. Default: invented ones");
  command->add_option("--resource", options.resource, "What a pod with a GPU asks for")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag("--node-bodies", options.node_bodies,
                    "Ordinary requests have full nodes (nodeCacheCapable: false)");
  AddJson(*command, flags->json);
  return [flags](const MadeWith& made_with) { return Run(*flags, made_with); };
}

}  // namespace berth::replay
