// SPDX-License-Identifier: Apache-2.0
#include "node/guard/heartbeat.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

namespace berth::node {
namespace {

constexpr std::size_t kPageBytes = 4096;

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             Instant::clock::now().time_since_epoch())
      .count();
}

Error HeartbeatProblem(Errc code) {
  return {code, "heartbeat: " + std::generic_category().message(errno)};
}

}  // namespace

Result<Heartbeat> Heartbeat::Create() {
  const int descriptor = memfd_create("berth-heartbeat", 0);
  if (descriptor < 0 || ftruncate(descriptor, kPageBytes) != 0) {
    return tl::unexpected(HeartbeatProblem(Errc::kUnavailable));
  }
  return Map(descriptor);
}

Result<Heartbeat> Heartbeat::Join(int descriptor) { return Map(descriptor); }

Result<Heartbeat> Heartbeat::Map(int descriptor) {
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (page == MAP_FAILED) return tl::unexpected(HeartbeatProblem(Errc::kInvalidArgument));
  return Heartbeat(descriptor, static_cast<Page*>(page));
}

Heartbeat::Heartbeat(Heartbeat&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      page_(std::exchange(other.page_, nullptr)) {}

Heartbeat::~Heartbeat() {
  if (page_ == nullptr) return;
  munmap(page_, kPageBytes);
  close(descriptor_);
}

void Heartbeat::Beat() { page_->last_ns = NowNs(); }

void Heartbeat::Reset() { page_->last_ns = 0; }

std::optional<Duration> Heartbeat::Age() const {
  const std::int64_t last = page_->last_ns;
  if (last == 0) return std::nullopt;
  return std::chrono::nanoseconds(NowNs() - last);
}

void Heartbeat::SetKubeletKeepsBoth(bool keeps) { page_->keeps_both = keeps ? 1 : 0; }

bool Heartbeat::KubeletKeepsBoth() const { return page_->keeps_both == 1; }

}  // namespace berth::node
