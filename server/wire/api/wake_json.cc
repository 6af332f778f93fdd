// SPDX-License-Identifier: Apache-2.0
#include "server/wire/api/wake_json.h"

#include "server/wire/api/lease_json.h"
#include "server/wire/json/json_text.h"

namespace berth::wire {

std::string EncodeWake(const PodId& pod, WallTime now) {
  const std::string time = SecondTime(now);
  std::string out = R"({"metadata":{"uid":)";
  AppendString(out, pod.uid);
  out += R"(},"status":{"conditions":[{"type":"berth.dev/RoomSeen","status":"True",)";
  out += R"("reason":"AskAgain","message":"berth has room for the pod since it was refused",)";
  out += R"("lastProbeTime":")" + time + R"(","lastTransitionTime":")" + time + R"("}]}})";
  return out;
}

}  // namespace berth::wire
