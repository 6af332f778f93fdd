// SPDX-License-Identifier: Apache-2.0
//
// berth-load: the time of requests over HTTP. Without a subcommand, filter and prioritize beside a
// bare HTTP server; `first`, the first pods on a fresh server; `hostile`, pods that are built to
// cost as much as possible; `viewers`, filter while the live page is open.
#include <CLI/CLI.hpp>

#include "bench/load/bare_ratio.h"
#include "bench/load/first_pods.h"
#include "bench/load/hostile.h"
#include "bench/load/viewers.h"

namespace berth::load {
namespace {

int Main(int argc, char** argv) {
  CLI::App app("What requests cost over HTTP", "berth-load");
  std::size_t nodes = 5000, rounds = 2000, pods = 1000;
  app.add_option("--nodes", nodes, "Nodes of 8 GPUs")->check(CLI::Range(1, 150'000));
  app.add_option("--rounds", rounds, "Pods to place while measuring")->check(CLI::Range(1, 20'000));
  CLI::App* const first = app.add_subcommand("first", "The first pods, all of them different");
  first->add_option("--pods", pods, "Pods to place")->check(CLI::Range(1, 20'000));
  const CLI::App* const hostile = app.add_subcommand("hostile", "Pods made to cost much");
  int count = 10;
  CLI::App* const viewers = app.add_subcommand("viewers", "Filter while people look (99 s)");
  viewers->add_option("--count", count, "Browsers with the live page")->check(CLI::Range(1, 1000));
  app.require_subcommand(0, 1);
  app.fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  if (first->parsed()) {
    MeasureFirstPods(nodes, pods);
  } else if (hostile->parsed()) {
    MeasureHostile(nodes);
  } else if (viewers->parsed()) {
    MeasureViewers(nodes, count);
  } else {
    MeasureRatio(nodes, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace berth::load

int main(int argc, char** argv) { return berth::load::Main(argc, argv); }
