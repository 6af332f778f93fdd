// SPDX-License-Identifier: Apache-2.0
#include "server/why/plan_objects.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/text.h"

namespace berth::wire {
namespace {

// Other APIs have objects of the same kind and of another form.
bool IsOfApi(const Json& object, std::string_view api) {
  const std::string version = WordOf(&object, "apiVersion");
  return version.empty() || version.starts_with(api);
}

// "example.sh" of "batch.example.sh/v1"; "": it is of no such API.
std::string DomainOf(const Json& object) {
  constexpr std::string_view kBatch = "batch.";
  const std::string version = WordOf(&object, "apiVersion");
  const std::size_t slash = version.find('/');
  if (!version.starts_with(kBatch) || slash == std::string::npos) return "";
  return version.substr(kBatch.size(), slash - kBatch.size());
}

constexpr std::string_view kReplicated[] = {"Deployment", "ReplicaSet", "ReplicationController",
                                            "StatefulSet"};

class PodSets {
 public:
  PodSets(const Json& object, const std::string& path, std::int64_t most)
      : object_(object),
        path_(path),
        name_(WordOf(FieldOf(object, "metadata"), "name")),
        most_(most) {}

  Result<std::optional<ObjectPods>> Of(std::string_view kind) {
    Status (PodSets::*const read)(const Json*) = ReaderOf(kind);
    if (read == nullptr) return std::nullopt;
    if (name_.empty()) return Invalid(path_ + ".metadata.name: want a name, got none");
    kind_ = kind;
    const std::string by = WordOf(FieldOf(object_, "spec"), "managedBy");
    if (!by.empty() && !by.ends_with("-controller") && !by.ends_with("-operator")) {
      pods_.unknown = Shortened(by, 63) + " (spec.managedBy) makes its pods, perhaps elsewhere";
      return std::move(pods_);
    }
    BERTH_TRY_STATUS((this->*read)(FieldOf(object_, "spec")));
    return std::move(pods_);
  }

 private:
  using Reader = Status (PodSets::*)(const Json* spec);

  [[nodiscard]] Reader ReaderOf(std::string_view kind) const {
    if (kind == "DaemonSet") return &PodSets::ReadDaemonSet;
    if (kind == "Job" && IsOfApi(object_, "batch/")) return &PodSets::ReadJob;
    if (kind == "Job" && !DomainOf(object_).empty()) return &PodSets::ReadJobOfTasks;
    if (kind == "CronJob" && IsOfApi(object_, "batch/")) return &PodSets::ReadCronJob;
    if (kind == "JobSet") return &PodSets::ReadJobSet;
    if (kind == "LeaderWorkerSet") return &PodSets::ReadLeaderWorkerSet;
    if (kind == "RayCluster" || kind == "RayJob" || kind == "RayService") return &PodSets::ReadRay;
    if (kind == "TrainJob") return &PodSets::ReadTrainJob;
    if (kind.ends_with("SparkApplication")) return &PodSets::ReadSpark;
    if (kind == "PodGang") return &PodSets::ReadCliques;
    if (kind == "RoleBasedGroup" || kind == "RoleSet" || kind == "StormService") {
      return &PodSets::ReadGroupOfRoles;
    }
    if (kind == "DynamoGraphDeployment") return &PodSets::ReadGraph;
    for (const char* job : {"PyTorchJob", "TFJob", "MPIJob", "JAXJob", "PaddleJob", "XGBoostJob"}) {
      if (kind == job) return &PodSets::ReadRoles;
    }
    // Deployment, StatefulSet and the like, of whatever API.
    const Json* const pod = FieldOf(FieldOf(FieldOf(object_, "spec"), "template"), "spec");
    const bool is_known = std::ranges::find(kReplicated, kind) != std::end(kReplicated);
    return is_known || FieldOf(pod, "containers") != nullptr ? &PodSets::ReadReplicas : nullptr;
  }

  [[nodiscard]] Result<std::int64_t> Count(const Json* of, const std::string& path, const char* key,
                                           std::int64_t unsaid = 1) const {
    return CountOf(of, path, key, most_, unsaid);
  }

  // As many as run at the same time.
  [[nodiscard]] Result<std::int64_t> CountOfJob(const Json* spec, const std::string& path) const {
    BERTH_TRY(const std::int64_t pods, Count(spec, path, "parallelism"));
    if (FieldOf(spec, "completions") == nullptr) return pods;
    BERTH_TRY(const std::int64_t completions, Count(spec, path, "completions"));
    return std::min(pods, completions);
  }

  [[nodiscard]] bool IsEnough() const { return pods_so_far_ > most_; }

  // Adds the pods of a template; nothing where there are none of them.
  Status Add(PodSet set, const Json* of, const std::string& path, const char* field = "template") {
    set.path = path + "." + field;
    set.pod = FieldOf(of, field);
    if (set.pod == nullptr || !set.pod->is_object()) {
      return Invalid(set.path + ": want a template of pods, got none");
    }
    pods_so_far_ += set.count;
    pods_.sets.push_back(std::move(set));
    return {};
  }

  // The object itself says how many start together.
  void SaysHowMany() {
    pods_.group = object_;
    pods_.group["kind"] = kind_;
    Json& metadata = pods_.group["metadata"];
    if (metadata.is_object()) metadata["uid"] = PlannedUid(name_);
  }

  Status ReadReplicas(const Json* spec) {
    BERTH_TRY(const std::int64_t replicas, Count(spec, path_ + ".spec", "replicas"));
    return Add({.name = name_,
                .count = replicas,
                .owner_kind = kind_ == "Deployment" ? "ReplicaSet" : std::string(kind_),
                .owner_api = kind_ == "ReplicationController" ? "v1" : "apps/v1",
                .owner_name = name_,
                .at_once = WordOf(spec, "podManagementPolicy") == "Parallel"},
               spec, path_ + ".spec");
  }

  Status ReadDaemonSet(const Json* spec) {
    return Add({.name = name_,
                .owner_kind = "DaemonSet",
                .owner_api = "apps/v1",
                .owner_name = name_,
                .on_each_node = true},
               spec, path_ + ".spec");
  }

  [[nodiscard]] static PodSet OfJob(const std::string& name, std::int64_t count) {
    const std::string uid = PlannedUid(name);
    return {.name = name,
            .count = count,
            .labels = {{"batch.kubernetes.io/controller-uid", uid},
                       {"controller-uid", uid},
                       {"batch.kubernetes.io/job-name", name},
                       {"job-name", name}},
            .owner_kind = "Job",
            .owner_api = "batch/v1",
            .owner_name = name};
  }

  Status ReadJob(const Json* spec) {
    BERTH_TRY(std::int64_t pods, CountOfJob(spec, path_ + ".spec"));
    if (FieldOf(spec, "completions") != nullptr) {  // no others come for those that have succeeded
      BERTH_TRY(const std::int64_t all, Count(spec, path_ + ".spec", "completions"));
      BERTH_TRY(const std::int64_t done,
                Count(FieldOf(object_, "status"), path_ + ".status", "succeeded", 0));
      pods = std::max<std::int64_t>(std::min(pods, all - done), 0);
    }
    SaysHowMany();
    return Add(OfJob(name_, pods), spec, path_ + ".spec");
  }

  // One run of it, whose Job is made of the template.
  Status ReadCronJob(const Json* spec) {
    const std::string path = path_ + ".spec.jobTemplate.spec";
    const Json* const job = FieldOf(FieldOf(spec, "jobTemplate"), "spec");
    BERTH_TRY(const std::int64_t pods, CountOfJob(job, path));
    pods_.group = {{"apiVersion", "batch/v1"},
                   {"kind", "Job"},
                   {"metadata", {{"name", name_}, {"uid", PlannedUid(name_)}}},
                   {"spec", job == nullptr ? Json() : *job}};
    return Add(OfJob(name_, pods), job, path);
  }

  Status ReadJobSet(const Json* spec) {
    SaysHowMany();
    const Json& jobs = ItemsOf(spec, "replicatedJobs");
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::string path = path_ + ".spec.replicatedJobs[" + std::to_string(i) + "]";
      const Json* const job = FieldOf(FieldOf(jobs[i], "template"), "spec");
      BERTH_TRY(const std::int64_t replicas, Count(&jobs[i], path, "replicas"));
      BERTH_TRY(const std::int64_t pods, CountOfJob(job, path + ".template.spec"));
      const std::string role = WordOf(&jobs[i], "name");
      for (std::int64_t r = 0; r < replicas && pods > 0 && !IsEnough(); ++r) {
        const std::string index = std::to_string(r);
        PodSet set = OfJob(name_ + "-" + role + "-" + index, pods);
        set.labels.insert(set.labels.end(), {{"jobset.sigs.k8s.io/jobset-name", name_},
                                             {"jobset.sigs.k8s.io/jobset-uid", PlannedUid(name_)},
                                             {"jobset.sigs.k8s.io/replicatedjob-name", role},
                                             {"jobset.sigs.k8s.io/job-index", index},
                                             {"jobset.sigs.k8s.io/job-key", PlannedUid(set.name)}});
        BERTH_TRY_STATUS(Add(std::move(set), job, path + ".template.spec"));
      }
    }
    return {};
  }

  Status ReadLeaderWorkerSet(const Json* spec) {
    SaysHowMany();
    const std::string path = path_ + ".spec.leaderWorkerTemplate";
    const Json* const both = FieldOf(spec, "leaderWorkerTemplate");
    BERTH_TRY(const std::int64_t groups, Count(spec, path_ + ".spec", "replicas"));
    BERTH_TRY(const std::int64_t size, Count(both, path, "size"));
    const bool differs = FieldOf(both, "leaderTemplate") != nullptr;
    for (std::int64_t g = 0; g < groups && size > 0 && !IsEnough(); ++g) {
      const std::string index = std::to_string(g);
      PodSet leader{.name = name_ + "-" + index,
                    .count = 1,
                    .labels = {{"leaderworkerset.sigs.k8s.io/name", name_},
                               {"leaderworkerset.sigs.k8s.io/group-index", index},
                               {"leaderworkerset.sigs.k8s.io/group-key", name_ + "-" + index}},
                    .annotations = {{"leaderworkerset.sigs.k8s.io/size", std::to_string(size)}}};
      // As ForEachPart makes it of a DisaggregatedSet.
      if (const Json* const own = FieldOf(FieldOf(object_, "metadata"), "labels")) {
        for (const auto& [key, text] : own->items()) {
          if (!key.starts_with("disaggregatedset.x-k8s.io/") || !text.is_string()) continue;
          leader.labels.emplace_back(key, text.get<std::string>());
        }
      }
      PodSet workers = leader;
      leader.labels.emplace_back("leaderworkerset.sigs.k8s.io/worker-index", "0");
      workers.labels.emplace_back("leaderworkerset.sigs.k8s.io/worker-index", "1");
      workers.count = size - 1;
      workers.name += "-worker";
      BERTH_TRY_STATUS(
          Add(std::move(leader), both, path, differs ? "leaderTemplate" : "workerTemplate"));
      if (size > 1) BERTH_TRY_STATUS(Add(std::move(workers), both, path, "workerTemplate"));
    }
    return {};
  }

  // spec.pytorchReplicaSpecs, spec.mpiReplicaSpecs, ...: pods by role.
  Status ReadRoles(const Json* spec) {
    if (spec == nullptr || !spec->is_object()) return {};
    std::int64_t first = 0;
    for (const auto& [key, roles] : spec->items()) {
      if (!key.ends_with("ReplicaSpecs") || !roles.is_object()) continue;
      for (const auto& [role, of] : roles.items()) {
        const std::string path = path_ + ".spec." + key + "." + role;
        BERTH_TRY(const std::int64_t replicas, Count(&of, path, "replicas"));
        std::string lower = role;
        std::ranges::transform(lower, lower.begin(), [](char c) {
          return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        });
        if (lower != "launcher") first += replicas;
        BERTH_TRY_STATUS(Add({.name = name_ + "-" + lower,
                              .count = replicas,
                              .labels = {{"training.kubeflow.org/job-name", name_},
                                         {"training.kubeflow.org/job-role", lower},
                                         {"training.kubeflow.org/replica-type", lower}},
                              .owner_kind = std::string(kind_),
                              .owner_api = "kubeflow.org/v1",
                              .owner_name = name_},
                             &of, path));
      }
    }
    if (WordOf(spec, "launcherCreationPolicy") != "WaitForWorkersReady") return {};
    for (PodSet& set : pods_.sets) {
      set.at_first = first;
      set.late = "the launcher comes when the workers run; leave it out of the gang, and count " +
                 CountText(first, "worker");
    }
    return {};
  }

  Status ReadGraph(const Json*) {
    pods_.unknown =
        "want the PodCliqueSet, or the Deployments and LeaderWorkerSets, that are made of it";
    return {};
  }

  // A RoleBasedGroup or a RoleSet; a StormService makes `replicas` of one. A replica of a role is
  // one pod or several.
  Status ReadGroupOfRoles(const Json* spec) {
    const bool is_storm = kind_ == "StormService";
    const Json* const set = is_storm ? FieldOf(FieldOf(spec, "template"), "spec") : spec;
    BERTH_TRY(const std::int64_t copies,
              Count(is_storm ? spec : nullptr, path_ + ".spec", "replicas"));
    for (const Json& role : ItemsOf(set, "roles")) {
      const std::string name = WordOf(&role, "name"), path = path_ + ".spec.roles." + name;
      std::int64_t pods = copies;
      const Json* of = &role;
      for (const char* part : {"", "leaderWorkerSet", "leaderWorkerPattern", "standalonePattern"}) {
        const Json* const from = *part == '\0' ? &role : FieldOf(role, part);
        if (FieldOf(from, "template") != nullptr) of = from;
        for (const char* key : {"replicas", "podGroupSize", "size"}) {
          BERTH_TRY(const std::int64_t count, Count(from, path, key));
          pods = std::min(pods * count, most_ + 1);
        }
      }
      if (FieldOf(*of, "template") == nullptr) {
        pods_.unknown = "role " + name + " has no template of its own; want its pods";
        return {};
      }
      BERTH_TRY_STATUS(Add({.name = name_ + "-" + name,
                            .count = pods,
                            .labels = {{"rbg.workloads.x-k8s.io/group-name", name_},
                                       {"rbg.workloads.x-k8s.io/role-name", name}},
                            .owner_kind = std::string(kind_),
                            .owner_api = WordOf(&object_, "apiVersion"),
                            .owner_name = name_},
                           of, path));
    }
    return {};
  }

  // A head, and as many workers of each group as there are before anything scales them.
  Status ReadRayCluster(const Json* spec, const std::string& path) {
    const auto node = [this](const std::string& type, const std::string& group) {
      return PodSet{.name = name_ + "-" + (type == "head" ? type : group + "-worker"),
                    .labels = {{"ray.io/cluster", name_},
                               {"ray.io/node-type", type},
                               {"ray.io/group", group},
                               {"ray.io/is-ray-node", "yes"}},
                    .owner_kind = "RayCluster",
                    .owner_api = "ray.io/v1",
                    .owner_name = name_};
    };
    BERTH_TRY_STATUS(
        Add(node("head", "headgroup"), FieldOf(spec, "headGroupSpec"), path + ".headGroupSpec"));
    const Json& groups = ItemsOf(spec, "workerGroupSpecs");
    for (std::size_t i = 0; i < groups.size() && !IsEnough(); ++i) {
      const std::string place = path + ".workerGroupSpecs[" + std::to_string(i) + "]";
      if (const Json* const off = FieldOf(groups[i], "suspend"); off != nullptr && *off == true) {
        continue;
      }
      BERTH_TRY(const std::int64_t least, Count(&groups[i], place, "minReplicas", 0));
      BERTH_TRY(const std::int64_t replicas, Count(&groups[i], place, "replicas", least));
      BERTH_TRY(const std::int64_t most, Count(&groups[i], place, "maxReplicas", most_ + 1));
      BERTH_TRY(const std::int64_t hosts, Count(&groups[i], place, "numOfHosts"));
      PodSet workers = node("worker", WordOf(&groups[i], "groupName"));
      workers.count = std::max(std::min(replicas, most), least) * hosts;
      BERTH_TRY_STATUS(Add(std::move(workers), &groups[i], place));
    }
    return {};
  }

  // A RayJob may use a cluster that is there already.
  Status ReadRay(const Json* spec) {
    if (kind_ == "RayCluster") return ReadRayCluster(spec, path_ + ".spec");
    const Json* const selector = FieldOf(spec, "clusterSelector");
    const bool selects = selector != nullptr && !selector->empty();
    for (const char* field : {"rayClusterSpec", "rayClusterConfig"}) {
      const Json* const cluster = selects ? nullptr : FieldOf(spec, field);
      if (cluster != nullptr) return ReadRayCluster(cluster, path_ + ".spec." + field);
    }
    pods_.unknown = selects ? "it makes no cluster: it runs on that of spec.clusterSelector"
                            : "want spec.rayClusterSpec or spec.rayClusterConfig, got neither";
    return {};
  }

  // The JobSet that its runtime makes, by what the TrainJob itself says.
  Status ReadTrainJob(const Json* spec) {
    const std::string path = path_ + ".spec.trainer";
    const Json* const trainer = FieldOf(spec, "trainer");
    const Json* const asks = FieldOf(trainer, "resourcesPerNode");
    if (asks == nullptr || FieldOf(trainer, "numNodes") == nullptr) {
      pods_.unknown =
          "its runtime says what pods it makes; want spec.trainer.numNodes and "
          "spec.trainer.resourcesPerNode";
      return {};
    }
    BERTH_TRY(const std::int64_t nodes, Count(trainer, path, "numNodes"));
    Json pod = {{"spec", {{"containers", Json::array({{{"resources", *asks}}})}}}};
    const auto change_by = [&pod](const Json* change) {
      for (const char* field : {"metadata", "spec"}) {
        const Json* const said = FieldOf(change, field);
        if (said == nullptr || !said->is_object()) continue;
        Json more = *said;
        for (const char* list : {"containers", "initContainers"}) more.erase(list);  // not whole
        pod[field].merge_patch(more);
      }
    };
    const auto is_node = [](const Json& job) { return WordOf(&job, "name") == "node"; };
    for (const Json& change : ItemsOf(spec, "podTemplateOverrides")) {
      if (std::ranges::any_of(ItemsOf(&change, "targetJobs"), is_node)) change_by(&change);
    }
    for (const Json& patch : ItemsOf(spec, "runtimePatches")) {  // in their place since v2.2
      const Json* const runtime = FieldOf(FieldOf(patch, "trainingRuntimeSpec"), "template");
      for (const Json& job : ItemsOf(FieldOf(runtime, "spec"), "replicatedJobs")) {
        const Json* const of = FieldOf(FieldOf(job, "template"), "spec");
        if (is_node(job)) change_by(FieldOf(of, "template"));
      }
    }
    const Json job = {{"parallelism", nodes}, {"completions", nodes}, {"template", std::move(pod)}};
    std::deque<Json> made;
    made.push_back(
        {{"metadata", {{"name", name_}}},
         {"spec",
          {{"replicatedJobs", Json::array({{{"name", "node"}, {"template", {{"spec", job}}}}})}}}});
    BERTH_TRY(auto pods, PodSets(made.back(), path_, most_).Of("JobSet"));
    pods_ = *std::move(pods);
    pods_.made = std::move(made);
    for (PodSet& set : pods_.sets) set.path = path;
    return {};
  }

  // As a JVM's sizes are written: "512m", "4g", "4096" in MiB.
  static std::int64_t BytesOf(std::string size, std::int64_t unsaid) {
    if (size.ends_with('b')) size.pop_back();
    if (size.empty()) return unsaid;
    const bool has_unit = size.back() >= 'a';
    size.back() = static_cast<char>(has_unit ? size.back() - 'a' + 'A' : size.back());
    const auto bytes = Quantity::Parse(size + (has_unit ? "i" : "Mi"));
    return bytes ? std::min(bytes->Value(), std::int64_t{1} << 60) : unsaid;
  }

  // A driver, and the executors with which it begins. Beside the heap there is a share of it.
  Status ReadSpark(const Json* spec) {
    const bool is_scheduled = kind_ == "ScheduledSparkApplication";  // one run of it
    if (is_scheduled) spec = FieldOf(spec, "template");
    constexpr std::int64_t kMib = std::int64_t{1} << 20;
    const std::string type = WordOf(spec, "type");
    const std::int64_t percent = type == "Python" || type == "R" ? 40 : 10;
    constexpr const char* kBatch = "spark.kubernetes.allocation.batch.size";
    const auto batch = Quantity::Parse(WordOf(FieldOf(spec, "sparkConf"), kBatch));
    for (const std::string role : {"driver", "executor"}) {
      const std::string path = path_ + (is_scheduled ? ".spec.template." : ".spec.") + role;
      const Json* const of = FieldOf(spec, role.c_str());
      const bool is_driver = role == "driver";
      BERTH_TRY(const std::int64_t said, Count(of, path, "instances"));
      BERTH_TRY(const std::int64_t least,
                Count(FieldOf(spec, "dynamicAllocation"), path, "minExecutors", 0));
      const std::int64_t heap = BytesOf(WordOf(of, "memory"), 1024 * kMib);
      const std::int64_t beside =
          BytesOf(WordOf(of, "memoryOverhead"), std::max(heap / 100 * percent, 384 * kMib));
      const Json* const cores = FieldOf(of, "cores");
      const Json* const gpu = FieldOf(of, "gpu");
      Json asks = {{"memory", std::to_string(heap + beside)},
                   {"cpu", cores == nullptr ? Json(1) : *cores}};
      if (const Json* const gpus = FieldOf(gpu, "quantity"); gpus != nullptr) {
        asks[WordOf(gpu, "name")] = *gpus;
      }
      Json& pod = pods_.made.emplace_back(Json::object());
      pod["spec"]["containers"] = Json::array({{{"resources", {{"limits", std::move(asks)}}}}});
      for (const Json* const from : {spec, of}) {
        CopyFields(from, {"nodeSelector", "tolerations", "affinity", "schedulerName"}, pod["spec"]);
      }
      CopyFields(of, {"labels", "annotations"}, pod["metadata"]);
      pods_.sets.push_back({.pod = &pod,
                            .path = path,
                            .name = name_ + (is_driver ? "-driver" : "-exec"),
                            .count = is_driver ? 1 : std::max(said, least),
                            .labels = {{"spark-role", role},
                                       {"spark-app-selector", PlannedUid(name_)},
                                       {"sparkoperator.k8s.io/app-name", name_}},
                            .owner_kind = is_driver ? "" : "Pod",
                            .owner_api = "v1",
                            .owner_name = name_ + "-driver",
                            .at_first = batch ? batch->Value() : 10,  // as Spark has it
                            .late = std::string("Spark makes its executors in batches; set ") +
                                    kBatch + " in sparkConf to their number"});
    }
    return {};
  }

  // As ForEachPart makes it of a PodCliqueSet. The PodGang itself says how many of each clique.
  Status ReadCliques(const Json* spec) {
    for (const Json& clique : ItemsOf(spec, "cliques")) {
      const std::string name = WordOf(&clique, "name");
      const Json* const of = FieldOf(clique, "spec");
      const std::string path = path_ + ".spec.template.cliques." + name + ".spec";
      BERTH_TRY(const std::int64_t pods, Count(of, path, "replicas"));
      Json& made = pods_.made.emplace_back(clique);
      made["template"] = {
          {"spec", FieldOf(of, "podSpec") == nullptr ? Json() : *FieldOf(of, "podSpec")},
          {"metadata",
           {{"annotations", made.value("annotations", Json::object())},
            {"labels", made.value("labels", Json::object())}}}};
      BERTH_TRY_STATUS(Add({.name = name,
                            .count = pods,
                            .labels = {{"grove.io/podgang", name_}, {"grove.io/podclique", name}},
                            .owner_kind = "PodClique",
                            .owner_api = "grove.io/v1alpha1",
                            .owner_name = name},
                           &made, path));
    }
    pods_.group = object_;
    pods_.group["kind"] = kind_;
    return {};
  }

  // A scheduler of that domain makes a PodGroup of the Job's name and UID.
  Status ReadJobOfTasks(const Json* spec) {
    const std::string domain = DomainOf(object_);
    const std::string group = name_ + "-" + PlannedUid(name_);
    const std::string scheduler = WordOf(spec, "schedulerName");
    Json minimums = Json::object();
    const Json& tasks = ItemsOf(spec, "tasks");
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::string path = path_ + ".spec.tasks[" + std::to_string(i) + "]";
      BERTH_TRY(const std::int64_t replicas, Count(&tasks[i], path, "replicas"));
      std::string task = WordOf(&tasks[i], "name");
      if (task.empty()) task = "default" + std::to_string(i);
      minimums[task] = replicas;
      if (FieldOf(tasks[i], "minAvailable") != nullptr) {
        BERTH_TRY(minimums[task], Count(&tasks[i], path, "minAvailable"));
      }
      BERTH_TRY_STATUS(Add(
          {.name = name_ + "-" + task,
           .count = replicas,
           .annotations = {{"scheduling.k8s.io/group-name", group}, {domain + "/task-spec", task}},
           .owner_kind = "Job",
           .owner_api = WordOf(&object_, "apiVersion"),
           .owner_name = name_,
           .scheduler = scheduler.empty() ? domain.substr(0, domain.find('.')) : scheduler},
          &tasks[i], path));
    }
    std::int64_t minimum = pods_so_far_;
    if (FieldOf(spec, "minAvailable") != nullptr) {
      BERTH_TRY(minimum, Count(spec, path_ + ".spec", "minAvailable"));
    }
    pods_.group = {{"apiVersion", "scheduling." + domain + "/v1beta1"},
                   {"kind", "PodGroup"},
                   {"metadata", {{"name", group}}},
                   {"spec", {{"minMember", minimum}, {"minTaskMember", std::move(minimums)}}}};
    return {};
  }

  const Json& object_;
  const std::string& path_;
  const std::string name_;
  const std::int64_t most_;
  std::string_view kind_;
  std::int64_t pods_so_far_ = 0;
  ObjectPods pods_;
};

}  // namespace

std::string PlannedUid(std::string_view name) { return "plan-" + std::string(name); }

Result<std::optional<ObjectPods>> PodsOf(const Json& object, std::string_view kind,
                                         const std::string& path, std::int64_t most) {
  return PodSets(object, path, most).Of(kind);
}

std::string WhyLate(const PodSet& set, const Json& pod, std::optional<int> minimum) {
  const Json* const names = FieldOf(FieldOf(pod, "metadata"), "annotations");
  const bool is_late = set.at_first && minimum.value_or(1) > *set.at_first;
  if (!is_late || FieldOf(names, "berth.dev/gang-by") == nullptr) return "";
  return "its gang never gathers: " + set.late;
}

}  // namespace berth::wire
