// SPDX-License-Identifier: Apache-2.0
//
// NodePublisher: keeps the annotations of this Node that tell Berth what the node is and who
// carries its choice out:
//
//   berth.dev/carries-out   the resources for which this agent stands in the path
//   berth.dev/kubelet       policies of the kubelet (node_annotations.h)
//   berth.dev/gpu-health    the devices that are not well
//   berth.dev/gpu-uuids, berth.dev/gpu-models, berth.dev/topology, berth.dev/mig
//                           what the probe found (node_facts.h)
//
// One thread of its own does all of it: it probes the machine, reads its Node, and patches the keys
// that differ. Nothing is written while nothing changes. While the API server is away it tries
// again, less and less often. Calls return at once: they only note what is wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "node/facts/node_facts.h"
#include "server/kube/client/api_client.h"

namespace berth::node {

// The output of a child process that may hang, crash or print without end.

struct ChildLimits {
  Duration time = std::chrono::seconds(10);  // then it is killed
  std::size_t bytes = std::size_t{256} << 10;
  // Asked every 50 ms: true kills it at once.
  std::function<bool()> give_up = [] { return false; };
};

// Not for concurrent use.
class ChildRunner {
 public:
  // Starts the program (argv[0], a path) with its arguments and this process's environment, and
  // returns what it printed on standard output; standard error stays ours. Error: kUnavailable if
  // it cannot be started, ended by a signal or with a status other than 0, was given up, or one
  // that was killed before has not ended yet; kDeadline; kInvalidArgument for too much output.
  Result<std::string> Output(const std::vector<std::string>& argv, const ChildLimits& limits);

 private:
  // A process that waits inside the kernel does not end when it is killed. There is one at most.
  std::optional<int> stuck_;
};

struct PublisherOptions {
  // The probe: a program and its arguments, such as {"/usr/bin/berth-node", "facts"}. Empty: no
  // facts are looked for.
  std::vector<std::string> probe;
  Duration probe_limit = std::chrono::seconds(10);  // a probe that takes longer is killed

  // "https://10.0.0.7:10250" is asked for its /configz. "" = the kubelet is not asked.
  std::string kubelet_url;
  std::string kubelet_token_file;   // of the service account
  std::string kubelet_ca_file;      // "" = the kubelet's certificate is not checked
  std::string kubelet_config_file;  // read where the kubelet gives no answer; "" = none

  // The first write comes after a random part of this, so that thousands of nodes that start at
  // once do not write at once.
  Duration most_start_delay = std::chrono::seconds(10);
  std::uint64_t seed = 0;  // of that part; 0 = from the node's name

  // For people, one line, without a newline; on the publisher's thread. May be empty.
  std::function<void(std::string_view line)> log;
};

// Any thread may call any function; none blocks.
class NodePublisher {
 public:
  // Keeps a reference to the client. Starts the thread.
  NodePublisher(kube::ApiClient& client, std::string node_name, PublisherOptions options);
  // Ends the thread; waits for a request that is under way. Takes no key back: Carries({}) before
  // Flush does.
  ~NodePublisher();

  // The resources for which the agent stands in the path. Empty: none, and the key goes.
  void Carries(std::set<std::string> resources);

  // The devices of a resource that its plugin calls unhealthy, as it names them; of replicas
  // ("GPU-...::3") the part before "::" counts.
  void Health(const std::string& resource, std::set<std::string> unhealthy_ids);

  // Whether the kubelet knows the NUMA nodes of a resource's devices. If it knows none of any
  // resource, its Topology Manager limits nothing, and the Node says so.
  void NumaNodes(const std::string& resource, bool known);

  // A plugin has come: the machine may have other devices now. Probes again.
  void PluginRegistered();

  // Waits until all that was asked for before is written, at most that long. For the end of the
  // process, the only call that waits. False: it is not.
  bool Flush(Duration at_most);

  // What the last probe found. Never null: empty before the first.
  [[nodiscard]] std::shared_ptr<const NodeFacts> Facts() const;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace berth::node
