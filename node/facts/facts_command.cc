// SPDX-License-Identifier: Apache-2.0
#include "node/facts/facts_command.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace berth::node {
namespace {

constexpr unsigned kMostSeconds = 20;

}  // namespace

int PrintFacts(const ProbeRoots& roots) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGALRM, SIG_DFL);
  alarm(kMostSeconds);
  const std::string text = ToJson(ProbeMachine(roots)) + "\n";
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
  return 0;
}

}  // namespace berth::node
