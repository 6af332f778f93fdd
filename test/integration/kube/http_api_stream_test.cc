// SPDX-License-Identifier: Apache-2.0
//
// HttpApiClient::Stream: how watches and lists arrive, end and are ended.
#include <atomic>
#include <chrono>
#include <stop_token>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "server/kube/client/http_api_client.h"
#include "test/support/api_client_fixture.h"
#include "test/support/http_fixture.h"

namespace berth::kube::http_api_stream_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Eventually;
using test::kPatience;
using test::StreamReply;
using test::StreamRequest;

using HttpApiStream = test::ApiClientTest;

// One chunk per event, until the client goes away.
TEST_F(HttpApiStream, DeliversEachEventAsItComes) {
  std::atomic<int> seen = 0;
  Serve([&](const StreamRequest&, StreamReply& reply) {
    reply.BeginChunks();
    for (int i = 0; i < 50; ++i) {
      reply.Chunk("event " + std::to_string(i) + "\n");
      // The next one is sent only after this one has arrived on the other side.
      if (!Eventually([&] { return seen > i; })) return reply.Cut();
    }
    reply.EndChunks();
  });
  std::string text;
  const auto answer = Client()->Stream("/x?watch=1", kPatience, {}, [&](std::string_view bytes) {
    text += bytes;
    ++seen;
    return true;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(seen, 50);
  EXPECT_TRUE(text.ends_with("event 49\n"));
}

TEST_F(HttpApiStream, ReadsAnEmptyAndALargeStream) {
  const std::string large(3'000'000, 'x');
  Serve([&](const StreamRequest& request, StreamReply& reply) {
    if (request.target == "/whole") {
      reply.Whole(200, large);
      return;
    }
    reply.BeginChunks();
    if (request.target == "/large") reply.Chunk(large);
    reply.EndChunks();
  });
  const auto client = Client();
  const auto size_of = [&](const std::string& path) -> std::size_t {
    std::size_t size = 0;
    const auto answer = client->Stream(path, kPatience, {}, [&](std::string_view bytes) {
      size += bytes.size();
      return true;
    });
    return answer ? size : 1;
  };
  EXPECT_EQ(size_of("/empty"), 0U);
  EXPECT_EQ(size_of("/large"), large.size());
  EXPECT_EQ(size_of("/whole"), large.size());
}

// The head of a page of a list names the next page, which is asked for meanwhile.
TEST_F(HttpApiStream, GivesTheBeginningOfADownloadAtOnceAndThenLargePieces) {
  constexpr int kChunks = 500;
  const std::string chunk(4096, 'x');
  std::atomic<bool> began = false;
  Serve([&](const StreamRequest&, StreamReply& reply) {
    reply.BeginChunks();
    reply.Chunk("head");
    if (!Eventually([&] { return bool(began); })) return reply.Cut();
    for (int i = 0; i < kChunks; ++i) reply.Chunk(chunk);
    reply.EndChunks();
  });
  std::size_t size = 0, pieces = 0;
  const auto answer = Client()->Download("/x", kPatience, {}, [&](std::string_view bytes) {
    size += bytes.size();
    ++pieces;
    began = true;
    return true;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(size, 4 + kChunks * chunk.size());
  EXPECT_LT(pieces, 40U) << "of 2 MiB in chunks of 4 KiB";
}

// Each of its pieces comes in time, and all of them are less than what is worth waking for.
TEST_F(HttpApiStream, ReadsADownloadThatComesSlowly) {
  Serve([](const StreamRequest&, StreamReply& reply) {
    reply.BeginChunks();
    for (int i = 0; i < 8; ++i) {
      reply.Chunk("slow");
      std::this_thread::sleep_for(milliseconds(300));
    }
    reply.EndChunks();
  });
  std::string text;
  const auto answer = Client()->Download("/x", milliseconds(1500), {}, [&](std::string_view bytes) {
    text += bytes;
    return true;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(text.size(), 32U);
}

TEST_F(HttpApiStream, ReportsAStreamThatIsCut) {
  Serve([](const StreamRequest&, StreamReply& reply) {
    reply.BeginChunks();
    reply.Chunk("half");
    reply.Cut();
  });
  std::string text;
  const auto answer = Client()->Stream("/x", kPatience, {}, [&](std::string_view bytes) {
    text += bytes;
    return true;
  });
  EXPECT_FALSE(answer);
  EXPECT_EQ(text, "half");
}

TEST_F(HttpApiStream, FindsASilentPeerByTheIdleTimeout) {
  Serve([](const StreamRequest&, StreamReply& reply) {
    reply.BeginChunks();
    for (int i = 0; i < 6; ++i) {  // all together longer than the idle timeout
      reply.Chunk("x");
      std::this_thread::sleep_for(milliseconds(300));
    }
    reply.Hang();
  });
  std::size_t size = 0;
  const auto answer = Client()->Stream("/x", milliseconds(1500), {}, [&](std::string_view bytes) {
    size += bytes.size();
    return true;
  });
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("nothing came"), std::string::npos)
      << answer.error().message;
  EXPECT_EQ(size, 6U);
}

// A watch of what never changes: its head comes at once, and then nothing for long.
TEST_F(HttpApiStream, GivesABodyTheIdleTimeoutEvenWhenTheHeadHadLess) {
  Serve([](const StreamRequest&, StreamReply& reply) {
    std::this_thread::sleep_for(milliseconds(1200));
    reply.BeginChunks();
    std::this_thread::sleep_for(milliseconds(1200));
    reply.Chunk("late");
    reply.EndChunks();
  });
  std::string seen;
  const auto answer = Client()->Stream("/x", seconds(2), {}, [&](std::string_view bytes) {
    seen += bytes;
    return true;
  });
  EXPECT_TRUE(answer.has_value());
  EXPECT_EQ(seen, "late");
}

TEST_F(HttpApiStream, StopsAtOnceWhateverTheServerDoes) {
  Serve([](const StreamRequest& request, StreamReply& reply) {
    if (request.target == "/no-head") return reply.Hang();
    reply.BeginChunks();
    reply.Chunk("x");
    while (request.target == "/busy" && reply.Chunk(std::string(10'000, 'x'))) {
    }
    reply.Hang();
  });
  const auto client = Client();
  for (const char* path : {"/no-head", "/silent", "/busy"}) {
    std::stop_source stop;
    const std::jthread stopper([&] {
      std::this_thread::sleep_for(milliseconds(100));
      stop.request_stop();
    });
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = client->Stream(path, std::chrono::hours(1), stop.get_token(),
                                       [](std::string_view) { return true; });
    EXPECT_TRUE(answer) << path;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(5)) << path;
  }
  EXPECT_TRUE(Eventually([&] { return server_->open_connections() == 0; }));
}

TEST_F(HttpApiStream, EndsAStreamThatTheSinkHasEnoughOf) {
  Serve([](const StreamRequest&, StreamReply& reply) {
    reply.BeginChunks();
    while (reply.Chunk("event\n")) {
    }
  });
  int calls = 0;
  EXPECT_TRUE(Client()->Stream("/x", kPatience, {}, [&](std::string_view) { return ++calls < 3; }));
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(Eventually([&] { return server_->open_connections() == 0; }));
}

// What is in flight is bounded by our queue, the library's buffer and the sockets' of both sides.
TEST_F(HttpApiStream, SlowsTheServerDownToTheSpeedOfTheSink) {
  constexpr std::size_t kBound = std::size_t{32} << 20;
  constexpr std::size_t kTotal = std::size_t{128} << 20;
  std::atomic<std::size_t> sent = 0;
  std::atomic<bool> blocked = true;
  Serve([&](const StreamRequest&, StreamReply& reply) {
    const std::string chunk(10'000, 'x');
    reply.BeginChunks();
    while (sent < kTotal && reply.Chunk(chunk)) sent += chunk.size();
    reply.EndChunks();
  });
  std::size_t got = 0;
  std::size_t sent_while_blocked = 0;
  const auto answer = Client()->Stream("/x", kPatience, {}, [&](std::string_view bytes) {
    if (blocked.exchange(false)) {
      // Until the server has got stuck: nothing more is sent in half a second.
      std::size_t before = 1;
      while (before != sent && sent < kTotal) {
        before = sent;
        std::this_thread::sleep_for(milliseconds(500));
      }
      sent_while_blocked = sent;
    }
    got += bytes.size();
    return true;
  });
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_LT(sent_while_blocked, kBound);
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace berth::kube::http_api_stream_test
