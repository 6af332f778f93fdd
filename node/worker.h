// SPDX-License-Identifier: Apache-2.0
//
// The worker: the process that does the work, and the short ones that clean up after it. Each
// returns the status to exit with.
#pragma once

#include "node/options.h"
#include "server/telemetry/log.h"

namespace berth::node {

enum class HandBackWhen;

// Serves until SIGTERM. `heartbeat`: the descriptor of the guard's memory; -1: there is no guard.
// Requires: SIGTERM is blocked in all threads.
int RunWorker(const NodeOptions& options, int heartbeat, Log& log);

// Hands the plugins back to the kubelet.
int RunHandBack(const NodeOptions& options, HandBackWhen when, Log& log);

// Takes berth.dev/carries-out from the Node.
int RunWithdraw(const NodeOptions& options, Log& log);

}  // namespace berth::node
