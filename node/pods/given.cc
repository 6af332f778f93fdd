// SPDX-License-Identifier: Apache-2.0
#include "node/pods/given.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <nlohmann/json.hpp>

#include "server/wire/api/api_json.h"
#include "server/wire/pod/given_json.h"

namespace berth::node {

std::vector<GivenTwice> FindTwice(const std::vector<ListedPod>& listed, const OwnPods::Pods& own,
                                  const std::set<std::string>& resources) {
  std::map<std::pair<std::string, std::string>, OwnPodPtr> holders;  // by resource and device
  std::vector<GivenTwice> found;
  for (const ListedPod& pod : listed) {
    const auto here = own.find(pod.namespace_name + "/" + pod.name);
    if (here == own.end() || here->second->over) continue;
    for (const ListedContainer& container : pod.containers) {
      for (const auto& [resource, devices] : container.devices) {
        if (!resources.contains(resource)) continue;
        for (const std::string& device : devices) {
          const OwnPodPtr& first =
              holders.try_emplace({resource, device}, here->second).first->second;
          if (first->uid == here->second->uid) continue;
          if (found.size() < TwiceGiven::kMost) {
            found.push_back({resource, device, {first, here->second}});
          }
        }
      }
    }
  }
  return found;
}

std::vector<GivenTwice> TwiceGiven::Look(const std::vector<GivenTwice>& found, bool live,
                                         Instant now) {
  std::map<Key, Since> still;
  std::vector<GivenTwice> news;
  for (const GivenTwice& twice : found) {
    Key key = {twice.resource, twice.device, twice.pods[0]->uid, twice.pods[1]->uid};
    const auto before = since_.find(key);
    Since since = before == since_.end() ? Since{now, false} : before->second;
    if (!since.sure && live && now - since.first >= sure_after_) {
      since.sure = true;
      news.push_back(twice);
    }
    still.emplace(std::move(key), since);
  }
  since_ = std::move(still);
  return news;
}

ClosedDevices TwiceGiven::Closed() const {
  ClosedDevices closed;
  for (const auto& [key, since] : since_) {
    if (since.sure) closed[std::get<0>(key)].emplace(WithoutReplica(std::get<1>(key)));
  }
  return closed;
}

namespace {

using GivenJson = nlohmann::json;

constexpr int kReportsSinceMinor = 36;  // of Kubernetes 1
constexpr int kKeepsSinceMinor = 37;
constexpr int kGivesOnceSinceMinor = 38;
constexpr Duration kGather = std::chrono::milliseconds(100);  // several containers, one look
constexpr Duration kGatherAtStart = std::chrono::milliseconds(20);

// 36 for "v1.36.3"; 0: not a version of Kubernetes 1.
int MinorOf(std::string_view version) {
  constexpr std::string_view kMajor = "v1.";
  if (!version.starts_with(kMajor)) return 0;
  version.remove_prefix(kMajor.size());
  int minor = 0;
  std::from_chars(version.data(), version.data() + version.size(), minor);
  return minor;
}

std::vector<std::string> Bases(const std::vector<std::string>& devices) {
  std::vector<std::string> bases;
  for (const std::string& device : devices) bases.emplace_back(WithoutReplica(device));
  std::ranges::sort(bases);
  return bases;
}

// Whether these devices are the container's plan, or within the pod's.
bool AsPlanned(const OwnPod& pod, const std::string& container,
               const std::vector<std::string>& devices, const NodeFacts& facts) {
  if (!pod.plan) return false;
  const auto own = pod.plan->containers.find(container);
  const ContainerPlan plan = own == pod.plan->containers.end() ? pod.plan->Whole() : own->second;
  return Bases(DevicesOf(plan, devices, facts)) == Bases(devices);
}

// Whether the kubelet's list could lead to an annotation: one of the pods asks for a resource, and
// its status does not say what it was given.
bool NeedsLook(const OwnPods::Pods& own, const std::set<std::string>& resources,
               bool kubelet_reports) {
  const auto unsaid = [&](const OwnContainer& container) {
    return !container.reports_devices && (!kubelet_reports || container.running) &&
           std::ranges::any_of(resources, [&container](const std::string& resource) {
             return container.asks.contains(resource);
           });
  };
  return std::ranges::any_of(own, [&unsaid](const auto& entry) {
    return !entry.second->over && std::ranges::any_of(entry.second->containers, unsaid);
  });
}

}  // namespace

bool ReportsDevices(std::string_view version) { return MinorOf(version) >= kReportsSinceMinor; }

bool KeepsBothPlugins(std::string_view version) { return MinorOf(version) >= kKeepsSinceMinor; }

std::optional<std::string> GivenText(const OwnPod& pod, const ListedPod& listed,
                                     const std::set<std::string>& resources, const NodeFacts& facts,
                                     bool kubelet_reports) {
  GivenJson containers = GivenJson::object();
  bool differs = false;
  for (const OwnContainer& container : pod.containers) {
    if (container.reports_devices) return std::nullopt;
    if (kubelet_reports && !container.running) return std::nullopt;  // it is to be seen
    const auto found = std::ranges::find(listed.containers, container.name, &ListedContainer::name);
    if (found == listed.containers.end()) continue;
    for (const auto& [resource, devices] : found->devices) {
      if (!resources.contains(resource)) continue;
      containers[container.name][resource] = devices;
      differs = differs || !AsPlanned(pod, container.name, devices, facts);
    }
  }
  if (!differs) return std::nullopt;
  const GivenJson given = {{"version", 1}, {"containers", std::move(containers)}};
  std::string text = given.dump(-1, ' ', false, GivenJson::error_handler_t::replace);
  if (text == pod.given) return std::nullopt;
  return text;
}

GivenWriter::GivenWriter(Parts parts)
    : parts_(std::move(parts)),
      twice_(parts_.sure_after),
      admitted_(parts_.start > Duration::zero()),  // while no agent was there
      thread_([this] { Run(); }) {}

GivenWriter::~GivenWriter() {
  {
    const MutexLock lock(mutex_);
    ending_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void GivenWriter::Look() {
  const MutexLock lock(mutex_);
  due_ = true;
  changed_.NotifyAll();
}

void GivenWriter::Admitted() {
  const MutexLock lock(mutex_);
  due_ = admitted_ = true;
  changed_.NotifyAll();
}

void GivenWriter::Carries(std::set<std::string> resources) {
  const MutexLock lock(mutex_);
  resources_ = std::move(resources);
  due_ = true;
  changed_.NotifyAll();
}

void GivenWriter::Run() {
  while (WaitUntilDue()) {
    retry_at_ = Instant::max();
    if (LookNow()) {
      retries_ = 0;
    } else if (retries_ < kMostRetries) {
      retry_at_ = Instant::clock::now() + kFirstRetry * (1 << retries_);
      ++retries_;
    }
    if (twice_.empty()) continue;
    retry_at_ = std::min(retry_at_, Instant::clock::now() + parts_.sure_after);
  }
}

// False: it is to end.
bool GivenWriter::WaitUntilDue() {
  const MutexLock lock(mutex_);
  while (!due_ && !ending_ && Instant::clock::now() < retry_at_) {
    if (retry_at_ == Instant::max()) {
      changed_.Wait(mutex_);
    } else {
      changed_.WaitUntil(mutex_, retry_at_);
    }
  }
  if (due_) retries_ = 0;  // news
  const Instant end = Instant::clock::now() + (AtStart() ? kGatherAtStart : kGather);
  while (!ending_ && Instant::clock::now() < end) changed_.WaitUntil(mutex_, end);
  due_ = false;
  return !ending_;
}

bool GivenWriter::AtStart() const { return Instant::clock::now() < started_ + parts_.start; }

void GivenWriter::LearnVersion() {
  if (version_known_) return;
  const Result<std::string> path = kube::NodePath(parts_.node);
  if (!path) return;
  const Result<kube::ApiResponse> response =
      parts_.client.Send({.path = *path, .timeout = kMostPerWrite});
  if (!response || !response->ok()) return;
  const GivenJson node = GivenJson::parse(response->body, nullptr, false);
  const auto version = GivenJson::json_pointer("/status/nodeInfo/kubeletVersion");
  if (!node.is_object() || !node.contains(version) || !node[version].is_string()) return;
  version_known_ = true;
  const auto text = node[version].get<std::string>();
  kubelet_reports_ = ReportsDevices(text);
  gives_twice_ = MinorOf(text) < kGivesOnceSinceMinor;
  if (parts_.on_keeps_both) parts_.on_keeps_both(KeepsBothPlugins(text));
}

// False: the API server or the kubelet gave no answer, or refused.
bool GivenWriter::LookNow() {
  std::set<std::string> resources;
  bool admitted = false;
  {
    const MutexLock lock(mutex_);
    if (resources_.empty()) return true;
    resources = resources_;
    admitted = std::exchange(admitted_, false);
  }
  LearnVersion();
  const OwnPods::Pods own = parts_.pods.All();
  const bool reports = kubelet_reports_ && !AtStart();
  const bool compares = gives_twice_ && (admitted || !twice_.empty());
  if (!compares && !NeedsLook(own, resources, reports)) return true;
  const Result<std::vector<ListedPod>> listed = parts_.kubelet.List(std::chrono::seconds(1));
  if (compares && listed) {
    Compare(own, *listed, resources);
  } else if (compares) {
    const MutexLock lock(mutex_);
    admitted_ = true;
  }
  if (!version_known_ || !listed) return false;
  std::erase_if(written_, [&own](const auto& entry) {
    return std::ranges::none_of(
        own, [&entry](const auto& pod) { return pod.second->uid == entry.first; });
  });
  int writes = 0;
  bool all = true;
  for (const ListedPod& there : *listed) {
    const auto found = own.find(there.namespace_name + "/" + there.name);
    if (found == own.end() || found->second->over || found->second->containers.empty()) continue;
    const OwnPod& pod = *found->second;
    const auto before = written_.find(pod.uid);
    const auto text = GivenText(pod, there, resources, *parts_.facts(), reports);
    if (!text || (before != written_.end() && before->second == *text)) continue;
    if (++writes > kMostWritesPerLook) {
      Look();
      break;
    }
    const bool written = Write(pod, *text);
    if (written) written_[pod.uid] = *text;
    all = all && written;
  }
  return all;
}

void GivenWriter::Compare(const OwnPods::Pods& own, const std::vector<ListedPod>& listed,
                          const std::set<std::string>& resources) {
  const ClosedDevices before = twice_.Closed();
  const auto news =
      twice_.Look(FindTwice(listed, own, resources), parts_.pods.Live(), Instant::clock::now());
  const ClosedDevices closed = twice_.Closed();
  if (closed != before && parts_.on_twice) parts_.on_twice(closed);
  for (const GivenTwice& twice : news) {
    const auto& [first, second] = twice.pods;
    parts_.log.Write(LogLevel::kError, "device_given_twice",
                     {{"resource", twice.resource},
                      {"device", twice.device},
                      {"pod", first->namespace_name + "/" + first->name},
                      {"other", second->namespace_name + "/" + second->name}});
    Tell(*first, *second, twice);
    Tell(*second, *first, twice);
  }
}

void GivenWriter::Tell(const OwnPod& pod, const OwnPod& other, const GivenTwice& twice) {
  const Result<std::string> path = kube::EventsPath(pod.namespace_name);
  if (!path) return;
  wire::PodEvent event;
  event.pod = {pod.uid, pod.namespace_name, pod.name};
  event.warning = true;
  event.reason = "DeviceGivenTwice";
  // Names of other namespaces are not everybody's.
  const bool may_name = pod.namespace_name == other.namespace_name;
  event.message = twice.resource + " " + twice.device +
                  ": the kubelet gave it to this pod and to " +
                  (may_name ? "pod " + other.name : "a pod of another namespace") +
                  ". Delete one of them; no other pod gets it before one has ended";
  event.time = SystemClock().Wall();
  event.instance = parts_.node;
  const std::size_t digest = std::hash<std::string>{}(pod.uid + other.uid + twice.device);
  const Result<kube::ApiResponse> response =
      parts_.client.Send({.method = "POST",
                          .path = *path,
                          .body = wire::EncodeEvent(event, "given-twice-" + std::to_string(digest)),
                          .timeout = kMostPerWrite});
  // A worker before this one said it already: conflict.
  if (response && (response->ok() || response->status == 409)) return;
  parts_.log.Write(LogLevel::kWarn, "event_not_written", {{"problem", kube::ProblemOf(response)}});
}

bool GivenWriter::Write(const OwnPod& pod, const std::string& text) {
  const Result<std::string> path = kube::PodPath(pod.namespace_name, pod.name);
  if (!path) return true;  // no such pod can be
  // With the UID: another pod of that name is not to have it.
  std::string patch =
      GivenJson{{"metadata", {{"uid", pod.uid}, {"annotations", {{wire::kGivenKey, text}}}}}}.dump(
          -1, ' ', false, GivenJson::error_handler_t::replace);
  const Result<kube::ApiResponse> response =
      parts_.client.Send(kube::MergePatch(*path, std::move(patch), kMostPerWrite));
  // The pod has gone, or another one has its name.
  if (response && (response->status == 404 || response->status == 409)) return true;
  if (response && response->ok()) {
    parts_.log.Write(LogLevel::kInfo, "given_written",
                     {{"pod", pod.namespace_name + "/" + pod.name}, {"given", text}});
    problem_.clear();
    return true;
  }
  const std::string problem = kube::ProblemOf(response);
  const std::string kind = problem.substr(0, problem.find(':'));
  if (kind != problem_) {
    parts_.log.Write(LogLevel::kWarn, "given_not_written",
                     {{"pod", pod.namespace_name + "/" + pod.name}, {"problem", problem}});
  }
  problem_ = kind;
  return false;
}

}  // namespace berth::node
