// SPDX-License-Identifier: Apache-2.0
//
// The cases of the extender protocol that can be tried from outside, without knowledge of the
// extender's cluster, and those that cannot.
#pragma once

#include <cstddef>
#include <span>

#include "bench/replay/conform/checks.h"

namespace berth::conform {

// How a request goes over the wire.
enum class Form {
  kPlain,
  kDoubleSlash,
  kTrailingSlash,
  kQuery,
  kUnknownPath,
  kGet,
  kPut,
  kHead,
  kNoType,
  kOtherType,
  kExpect,
  kChunked,
  kTwoLengths,
  kGzip,
  kAcceptGzip,
  kSlowHead,   // another client stops within its header; then the request
  kSlowBody,   // another one within its body
  kLeaves,     // others leave in the middle of theirs
  kPipelined,  // the request twice in one packet
  kMany,       // from 100 connections at once
  kIdle,       // again on the same connection, a second later
  kTwice,      // again: the same answer
};

struct Case {
  int number;  // of the list in docs/conform.md
  const char*
      verbs;         // f filter, p prioritize, v preempt, b bind; "*": the first of those there are
  const char* sent;  // in words
  Form form;
  // $ARGS is an ordinary request of the verb, $POD and $GPU pods, $LIST nodes as kube-scheduler
  // sends them, $NAMES and $ITEMS a list of them, $NODE the first one.
  const char* body;
  const Want* want;
  const char* why;
  std::size_t nodes = 3;
};

std::span<const Case> ConformCases();

// Cases that take a cluster, or control over the extender.
struct Untried {
  int number;
  const char* what;
  const char* reason;
};
std::span<const Untried> UntriedCases();

}  // namespace berth::conform
