// SPDX-License-Identifier: Apache-2.0
//
// `berth doctor`: what is wrong with the GPU scheduling of a cluster, and the cure of each
// (docs/doctor.md). It reads, and changes nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "config/config.h"
#include "scoring/explain/node_report.h"
#include "server/commands/ask_server.h"
#include "server/wire/json/strict_json.h"

namespace berth {

struct DoctorFlags {
  ServerAddress at;      // of the cluster
  std::string cluster;   // a file used instead; empty: the cluster
  bool install = false;  // print how to install Berth there
};

struct DoctorAnswer {
  std::string text;
  bool is_well = true;
};

// Error: kNotFound, kInvalidArgument for the file, kUnavailable without nodes and pods.
Result<DoctorAnswer> DoctorCommand(const DoctorFlags& flags);

// What was read of a cluster.
struct SeenCluster {
  std::map<std::string, std::vector<wire::Json>> objects;  // by kind
  std::set<std::string> unread;                            // kinds that may be there, or not
  std::string version;  // of the API server, "v1.37.2"; empty: not known
  std::string metrics;  // of Berth's leader; empty: not known
  WallTime now;

  [[nodiscard]] const std::vector<wire::Json>& Of(const std::string& kind) const;
};

// A text as of `kubectl get nodes,pods,... -A -o json`. Error: kInvalidArgument.
Result<SeenCluster> SeeText(const std::string& text, const std::string& origin, WallTime now);

DoctorAnswer AnswerOn(const SeenCluster& seen, bool install);

// What the objects of a cluster say of Berth, its schedulers, GPU pods and GPU nodes; what is wrong
// with it.

// A kube-scheduler. Replicas with one configuration are one.
struct SchedulerPart {
  std::string where;                    // NAMESPACE/POD
  std::vector<std::string> names = {};  // of its profiles
  std::string version;                  // of its image
  std::string file;                     // of --config; empty: it has none
  std::string problem = {};             // why `config` cannot be read, though it is visible
  wire::Json config = {};               // null: not visible, such as a file of a control plane node
  std::vector<wire::Json> berth = {};   // the entries of `config` that lead to Berth
  WallTime started;                     // the last replica
};

struct GpuPodPart {
  std::string name, scheduler, node;
  bool by_berth = false;           // the Binding had Berth's annotations
  std::optional<WallTime> placed;  // empty: it waits
};

struct GpuNodePart {
  std::string name;
  std::vector<std::string> resources = {}, paths = {};  // DevicePathsOf
  bool carries_out = false;                             // berth-node says so
  std::string agent = {};         // its pod of berth-node: "ready", or why not; empty: none
  bool is_switched_over = false;  // its plugin speaks to berth-node
  std::string switch_over = {};   // how it would
  std::string trouble = {};       // why its GPUs or MIG devices are not all given; empty: none
  std::string silent_agent = {};  // DevicePaths
  DriverUpgrade to_come = {};     // why it offers no GPU yet, and will; empty: not known
  [[nodiscard]] bool kubelet_chooses() const;
};

struct ClusterParts {
  explicit ClusterParts(const SeenCluster& cluster);

  const SeenCluster& seen;
  std::string space = "berth-system";  // of Berth
  std::size_t berth_pods = 0;
  std::vector<std::string> ready;   // names of those that are
  std::string why_not;              // one is not ready
  std::string leader;               // one of them
  WallTime since;                   // the oldest of the pods
  Config config = DefaultConfig();  // of Berth
  bool has_config = false;          // it was read
  std::string config_problem;       // why `berth serve` refuses it; empty: it does not
  std::vector<SchedulerPart> schedulers;
  std::set<std::string> asking;  // schedulers that ask Berth, by what pods name
  std::vector<GpuPodPart> pods;
  std::vector<GpuNodePart> nodes;
  bool has_agent = false;
  std::string autoscaler;  // empty: none is seen

  // Whether the ClusterRole is bound and has the right.
  [[nodiscard]] bool Has(const std::string& role, const std::string& verb,
                         const std::string& resource) const;

 private:
  void ReadPod(const wire::Json& pod);
  void ReadSchedulers();
  void ReadNodes();
};

struct Finding {
  bool is_wrong = true;     // else a note: it may be meant so
  std::string cure, cause;  // what to do, what was found
};

// Causes come before what follows from them, and what is wrong before notes.
std::vector<Finding> FindingsOf(const ClusterParts& cluster);

// What is there: Berth, who schedules GPU pods, how nodes give GPUs.
std::vector<std::string> FactsOf(const ClusterParts& cluster);

}  // namespace berth
