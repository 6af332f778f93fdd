// SPDX-License-Identifier: Apache-2.0
#include "node/publish/node_publisher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/keep_going.h"
#include "base/mutex.h"
#include "base/text.h"
#include "config/kubeconfig.h"
#include "node/kubelet/registrar.h"
#include "node/publish/node_annotations.h"
#include "server/kube/client/http_api_client.h"

namespace berth::node {
namespace {

constexpr std::chrono::milliseconds kLook(50);
constexpr Duration kMostForItsEnd = std::chrono::seconds(1);

Result<pid_t> Start(const std::vector<std::string>& argv, int output) {
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return child;
  return Fail(Errc::kUnavailable, argv[0] + ": cannot be started: " + std::strerror(failed));
}

// Reads until the output ends.
Status ReadAll(int input, const ChildLimits& limits, Instant end, std::string& text) {
  while (true) {
    if (limits.give_up()) return Fail(Errc::kUnavailable, "given up");
    if (std::chrono::steady_clock::now() >= end) return Fail(Errc::kDeadline, "took too long");
    pollfd look{input, POLLIN, 0};
    if (poll(&look, 1, static_cast<int>(kLook.count())) <= 0) continue;
    std::array<char, 4096> piece{};
    const ssize_t got = read(input, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() <= limits.bytes) continue;
    return Invalid("want at most " + std::to_string(limits.bytes) + " bytes of output, got more");
  }
}

// Its status as of waitpid; nullopt where it does not end.
std::optional<int> Reap(pid_t child, Instant end) {
  int status = 0;
  while (true) {
    const pid_t got = waitpid(child, &status, WNOHANG);
    if (got == child) return status;
    if (got < 0 && errno != EINTR) return 0;  // somebody else has waited for it
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Status EndOf(int status) {
  if (WIFSIGNALED(status)) {
    return Fail(Errc::kUnavailable, "ended by signal " + std::to_string(WTERMSIG(status)));
  }
  if (WEXITSTATUS(status) == 0) return {};
  return Fail(Errc::kUnavailable, "ended with status " + std::to_string(WEXITSTATUS(status)));
}

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr Duration kMostPerRequest = seconds(5);
constexpr Duration kFirstAttemptPause = seconds(1),
                   kLongestAttemptPause = minutes(5);  // between attempts
constexpr Duration kFirstProbePause = seconds(10);
// Looks whether somebody else has changed the Node. 5,000 nodes make three requests a second.
constexpr Duration kLookAgain = minutes(30);
// Devices that flap are written seldom: so many writes within that time.
constexpr std::size_t kMostWrites = 6;
constexpr Duration kWritesWithin = minutes(1);
constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20;
constexpr std::size_t kMostLineBytes = 500;

Instant Now() { return std::chrono::steady_clock::now(); }

}  // namespace

Result<std::string> ChildRunner::Output(const std::vector<std::string>& argv,
                                        const ChildLimits& limits) {
  if (argv.empty()) return Invalid("want a program to start, got none");
  const Instant end = std::chrono::steady_clock::now() + limits.time;
  if (stuck_ && !Reap(*stuck_, Instant{})) {
    return Fail(Errc::kUnavailable,
                argv[0] + ": process " + std::to_string(*stuck_) + " was killed and has not ended");
  }
  stuck_.reset();
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Fail(Errc::kUnavailable, std::string("no pipe: ") + std::strerror(errno));
  }
  const Cleanup close_input([&] { close(ends[0]); });
  const auto started = Start(argv, ends[1]);
  close(ends[1]);
  BERTH_TRY(const pid_t child, started);
  std::string text;
  Status read = ReadAll(ends[0], limits, end, text);
  std::optional<int> status;
  if (read) status = Reap(child, end);
  if (!status) {
    kill(child, SIGKILL);
    if (read) read = Fail(Errc::kDeadline, "closed its output and did not end");
    if (!Reap(child, std::chrono::steady_clock::now() + kMostForItsEnd)) stuck_ = child;
    return tl::unexpected(std::move(read).error().Within(argv[0]));
  }
  BERTH_TRY_STATUS(Within(EndOf(*status), argv[0]));
  return text;
}

class NodePublisher::Impl {
 public:
  Impl(kube::ApiClient& client, std::string node_name, PublisherOptions options)
      : client_(client),
        name_(std::move(node_name)),
        options_(std::move(options)),
        random_(options_.seed != 0 ? options_.seed : std::hash<std::string>{}(name_)),
        write_at_(Now() + PartOf(options_.most_start_delay)),
        look_at_(Now() + kLookAgain + PartOf(kLookAgain)),
        thread_([this] { KeepGoing([this] { Run(); }); }) {}

  ~Impl() {
    {
      const MutexLock lock(mutex_);
      stop_ = true;
      changed_.NotifyAll();
    }
    thread_.join();
  }

  void Carries(std::set<std::string> resources) BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (says_.carries == resources) return;
    says_.carries = std::move(resources);
    Changed();
  }

  void Health(const std::string& resource, std::set<std::string> unhealthy) BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!says_.SetUnhealthy(resource, std::move(unhealthy))) return;
    Changed();
  }

  void NumaNodes(const std::string& resource, bool known) BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (numa_known_.size() >= kMostResources && !numa_known_.contains(resource)) return;
    numa_known_[resource] = known;
    SayKubelet();
  }

  void PluginRegistered() BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    probe_asked_ = true;
    changed_.NotifyAll();
  }

  bool Flush(Duration at_most) BERTH_EXCLUDES(mutex_) {
    const Instant end = Now() + at_most;
    const MutexLock lock(mutex_);
    urgent_ = true;
    changed_.NotifyAll();
    const std::uint64_t wanted = version_;
    while (written_ < wanted && !stop_ && Now() < end) changed_.WaitUntil(mutex_, end);
    urgent_ = false;
    return written_ >= wanted;
  }

  std::shared_ptr<const NodeFacts> Facts() BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return says_.facts;
  }

 private:
  enum class Task { kStop, kProbe, kWrite };

  void Changed() BERTH_REQUIRES(mutex_) {
    ++version_;
    changed_.NotifyAll();
  }

  Duration PartOf(Duration whole) {
    const auto most = std::chrono::duration_cast<milliseconds>(whole).count();
    return milliseconds(
        std::uniform_int_distribution<std::int64_t>(0, std::max<std::int64_t>(most, 0))(random_));
  }

  void Run() {
    while (true) {
      switch (Await()) {
        case Task::kStop:
          return;
        case Task::kProbe:
          Probe();
          AskKubelet();
          break;
        case Task::kWrite:
          Write();
          break;
      }
    }
  }

  // Waits for what is to be done next. A write that is due goes first.
  Task Await() BERTH_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (true) {
      if (stop_) return Task::kStop;
      const Instant now = Now();
      if (look_at_ <= now) {
        known_.reset();
        ++version_;
        look_at_ = now + kLookAgain + PartOf(kLookAgain / 10);
      }
      const bool differs = written_ < version_;
      if (differs && (write_at_ <= now || (urgent_ && !tried_urgently_))) {
        tried_urgently_ = urgent_;
        return Task::kWrite;
      }
      if (!urgent_) tried_urgently_ = false;
      if (probe_asked_ || probe_at_ <= now) {
        probe_asked_ = false;
        return Task::kProbe;
      }
      Instant next = std::min(look_at_, probe_at_);
      if (differs) next = std::min(next, write_at_);
      if (differs && urgent_) next = std::min(next, now + milliseconds(100));
      changed_.WaitUntil(mutex_, next);
      if (urgent_) tried_urgently_ = false;
    }
  }

  void Probe() BERTH_EXCLUDES(mutex_) {
    if (options_.probe.empty()) {
      const MutexLock lock(mutex_);
      probe_at_ = Instant::max();
      return;
    }
    const auto given_up = [this] {
      const MutexLock lock(mutex_);
      return stop_ || (urgent_ && written_ < version_);
    };
    auto text = child_.Output(options_.probe, {options_.probe_limit, kMostFactsBytes, given_up});
    auto facts = text ? ParseFacts(*text) : Result<NodeFacts>(tl::unexpected(text.error()));
    Problem("facts", facts ? "" : "facts of the node: " + facts.error().message);
    if (facts) {
      Problem("found",
              facts->problems.empty() ? "" : "facts of the node: " + Join(facts->problems, "; "));
    }
    const MutexLock lock(mutex_);
    if (!facts) {
      probe_pause_ = std::min<Duration>(probe_pause_ * 2, kLongestAttemptPause);
      probe_at_ = Now() + probe_pause_;
      return;
    }
    probe_pause_ = kFirstProbePause;
    // A driver that is not there yet has no GPUs: look again, seldom.
    probe_at_ =
        facts->gpus.empty() && facts->mig.empty() ? Now() + kLongestAttemptPause : Instant::max();
    if (*says_.facts == *facts) return;
    says_.facts = std::make_shared<const NodeFacts>(*std::move(facts));
    Changed();
  }

  void AskKubelet() BERTH_EXCLUDES(mutex_) {
    if (options_.kubelet_url.empty() && options_.kubelet_config_file.empty()) return;
    auto policies = PoliciesOfKubelet();
    Problem("kubelet", policies ? "" : "policies of the kubelet: " + policies.error().message);
    const MutexLock lock(mutex_);
    if (policies) policies_ = *std::move(policies);
    SayKubelet();
  }

  void SayKubelet() BERTH_REQUIRES(mutex_) {
    const bool lifted =
        !numa_known_.empty() &&
        std::ranges::none_of(numa_known_, [](const auto& entry) { return entry.second; });
    std::string text = KubeletAnnotation(policies_, lifted);
    if (says_.kubelet == text) return;
    says_.kubelet = std::move(text);
    Changed();
  }

  Result<KubeletPolicies> PoliciesOfKubelet() const {
    std::string problem = "not asked for";
    if (!options_.kubelet_url.empty()) {
      auto asked = AskConfigz();
      if (asked) return asked;
      problem = asked.error().message;
    }
    if (options_.kubelet_config_file.empty()) return Fail(Errc::kUnavailable, problem);
    const auto text = ReadFile(options_.kubelet_config_file, kMostConfigBytes);
    if (text) return PoliciesOfConfigFile(*text);
    return Fail(Errc::kUnavailable, problem + "; " + text.error().message);
  }

  Result<KubeletPolicies> AskConfigz() const {
    ClusterAccess access;
    access.server = KubeletUrl(options_.kubelet_url);
    access.token_file = options_.kubelet_token_file;
    access.insecure_skip_tls_verify = options_.kubelet_ca_file.empty();
    if (!options_.kubelet_ca_file.empty()) {
      BERTH_TRY(access.ca_pem, ReadFile(options_.kubelet_ca_file, kMostConfigBytes));
    }
    BERTH_TRY(const auto client, kube::HttpApiClient::Create(access));
    kube::ApiRequest request;
    request.path = "/configz";
    request.timeout = kMostPerRequest;
    BERTH_TRY(const kube::ApiResponse response, client->Send(request));
    if (response.ok()) return PoliciesOfConfigz(response.body);
    return Fail(Errc::kUnavailable,
                "GET /configz: the kubelet answered " + std::to_string(response.status));
  }

  // One attempt: reads the Node where it is not known, and patches what differs.
  void Write() BERTH_EXCLUDES(mutex_) {
    std::uint64_t version = 0;
    WhatIsSaid says;
    {
      const MutexLock lock(mutex_);
      version = version_;
      says = says_;
    }
    std::optional<Duration> retry_after;
    const Status outcome = WriteOnce(says, retry_after);
    Problem("node", outcome ? "" : "annotations of node " + name_ + ": " + outcome.error().message);
    const MutexLock lock(mutex_);
    if (!outcome) {
      known_.reset();
      pause_ = std::min<Duration>(pause_ * 2, kLongestAttemptPause);
      const Duration longest =
          std::max(pause_, std::min(retry_after.value_or(pause_), kLongestAttemptPause));
      write_at_ = Now() + longest / 2 + PartOf(longest / 2);
      return;
    }
    pause_ = kFirstAttemptPause;
    written_ = std::max(written_, version);
    write_at_ = NextWrite();
    changed_.NotifyAll();
  }

  Status WriteOnce(const WhatIsSaid& says, std::optional<Duration>& retry_after) {
    BERTH_TRY(const std::string path, kube::NodePath(name_));
    if (!known_) {
      BERTH_TRY(known_, Ask({.path = path, .timeout = kMostPerRequest}, retry_after));
    }
    std::vector<std::string> kept;
    const auto patch = AnnotationPatch(*known_, Wanted(says, known_->mig_single), kept);
    Problem("kept", kept.empty() ? ""
                                 : "somebody else wrote " + Join(kept, ", ") + " of node " + name_ +
                                       ": it stays; remove it to have what this node found");
    if (!patch) return {};
    writes_.push_back(Now());
    if (writes_.size() > kMostWrites) writes_.pop_front();
    const std::string as_us = path + "?fieldManager=" + std::string(kFieldManager);
    BERTH_TRY(known_, Ask(kube::MergePatch(as_us, *patch, kMostPerRequest), retry_after));
    return {};
  }

  // Sends a request that is answered with the Node.
  Result<NodeAnnotations> Ask(const kube::ApiRequest& request,
                              std::optional<Duration>& retry_after) {
    BERTH_TRY(const kube::ApiResponse response, client_.Send(request));
    retry_after = response.retry_after;
    if (!response.ok()) return Fail(Errc::kUnavailable, kube::RefusalText(response));
    return ReadNodeAnnotations(response.body);
  }

  [[nodiscard]] Instant NextWrite() const {
    const Instant soon = Now() + kFirstAttemptPause;
    if (writes_.size() < kMostWrites) return soon;
    return std::max(soon, writes_.front() + kWritesWithin);
  }

  // Says a problem once, until it is another one or has gone ("").
  void Problem(const std::string& kind, const std::string& text) {
    std::string& last = problems_[kind];
    if (text == last) return;
    last = text;
    if (!text.empty() && options_.log) options_.log(Shortened(text, kMostLineBytes));
  }

  kube::ApiClient& client_;
  const std::string name_;
  const PublisherOptions options_;

  // Of the thread alone, or before it starts.
  std::mt19937_64 random_;
  ChildRunner child_;
  std::optional<NodeAnnotations> known_;         // nullopt: the Node is to be read
  std::deque<Instant> writes_;                   // the last kMostWrites
  std::map<std::string, std::string> problems_;  // by kind: what was said last
  Duration pause_ = kFirstAttemptPause, probe_pause_ = kFirstProbePause;
  Instant write_at_;  // not before
  Instant look_at_;
  Instant probe_at_{};
  bool tried_urgently_ = false;

  Mutex mutex_;
  CondVar changed_;
  WhatIsSaid says_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t version_ BERTH_GUARDED_BY(mutex_) =
      1;  // of says_: the first write corrects an old Node
  std::uint64_t written_ BERTH_GUARDED_BY(mutex_) = 0;  // the version that the Node has
  KubeletPolicies policies_ BERTH_GUARDED_BY(mutex_);
  std::map<std::string, bool> numa_known_ BERTH_GUARDED_BY(mutex_);  // by resource
  bool probe_asked_ BERTH_GUARDED_BY(mutex_) = false;
  bool urgent_ BERTH_GUARDED_BY(mutex_) = false;  // somebody waits in Flush
  bool stop_ BERTH_GUARDED_BY(mutex_) = false;

  std::thread thread_;  // last: it uses all of the above
};

NodePublisher::NodePublisher(kube::ApiClient& client, std::string node_name,
                             PublisherOptions options)
    : impl_(std::make_unique<Impl>(client, std::move(node_name), std::move(options))) {}

NodePublisher::~NodePublisher() = default;

void NodePublisher::Carries(std::set<std::string> resources) {
  impl_->Carries(std::move(resources));
}

void NodePublisher::Health(const std::string& resource, std::set<std::string> unhealthy_ids) {
  impl_->Health(resource, std::move(unhealthy_ids));
}

void NodePublisher::NumaNodes(const std::string& resource, bool known) {
  impl_->NumaNodes(resource, known);
}

void NodePublisher::PluginRegistered() { impl_->PluginRegistered(); }

bool NodePublisher::Flush(Duration at_most) { return impl_->Flush(at_most); }

std::shared_ptr<const NodeFacts> NodePublisher::Facts() const { return impl_->Facts(); }

}  // namespace berth::node
