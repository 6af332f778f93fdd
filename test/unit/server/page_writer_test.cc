// SPDX-License-Identifier: Apache-2.0
#include "server/pages/page_writer.h"

#include <zlib.h>

#include <atomic>
#include <future>
#include <latch>
#include <map>
#include <new>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/http_fixture.h"

namespace berth::test::page_writer_test {
namespace {

using http::HttpRequest;
using http::HttpResponse;

// Asks, and gives the answer when it is there.
std::future<HttpResponse> Ask(const http::HttpHandler& handler, bool gzip = false,
                              std::string_view tag = "") {
  HttpRequest request{"GET", "/page", "", {}, {}, gzip, tag};
  const HttpResponse response = handler(request);
  auto answer = std::make_shared<std::promise<HttpResponse>>();
  response.later(http::Reply([answer](HttpResponse given) { answer->set_value(given); }));
  return answer->get_future();
}

std::string TextOf(const HttpResponse& response) { return http::BodyOf(response); }

// A page whose text is that of `text` now; counts how often it is written.
struct CountedPage {
  std::atomic<int> writes{0};
  std::atomic<int> version{1};
  std::function<std::string(int)> text = [](int v) { return "version " + std::to_string(v); };

  Page AsPage() {
    return {"text/plain", [this] {
              const int now = version;
              return PageDraft{std::to_string(now), {}, [this, now] {
                                 ++writes;
                                 return text(now);
                               }};
            }};
  }
};

TEST(PageWriter, RequestsDuringAWriteShareTheNextText) {
  std::latch begun(1), go_on(1);
  CountedPage page;
  page.text = [&](int v) {
    if (v == 1) {
      begun.count_down();
      go_on.wait();
    }
    return std::to_string(v);
  };
  PageWriter writer;
  const auto handler = writer.Handler(page.AsPage());
  auto first = Ask(handler);
  begun.wait();
  page.version = 2;
  std::vector<std::future<HttpResponse>> others;
  for (int i = 0; i < 10; ++i) others.push_back(Ask(handler));
  go_on.count_down();
  EXPECT_EQ(TextOf(first.get()), "1");
  for (auto& other : others) EXPECT_EQ(TextOf(other.get()), "2") << "not older than its request";
  EXPECT_EQ(page.writes, 2);
}

TEST(PageWriter, APageThatShowsTheSameIsNotWrittenAgainAndSharesItsText) {
  CountedPage page;
  PageWriter writer;
  const auto handler = writer.Handler(page.AsPage());
  const HttpResponse first = Ask(handler).get(), second = Ask(handler).get();
  EXPECT_EQ(page.writes, 1);
  EXPECT_EQ(first.shared_body, second.shared_body);
  page.version = 2;
  EXPECT_EQ(TextOf(Ask(handler).get()), "version 2");
  EXPECT_EQ(page.writes, 2);
}

TEST(PageWriter, WhoHasTheTextAlreadyGetsNoBody) {
  CountedPage page;
  PageWriter writer;
  const auto handler = writer.Handler(page.AsPage());
  const std::string tag = Ask(handler).get().etag;
  ASSERT_FALSE(tag.empty());
  const HttpResponse same = Ask(handler, true, tag).get();
  EXPECT_EQ(same.status, 304);
  EXPECT_EQ(same.etag, tag);
  EXPECT_EQ(TextOf(same), "");
  EXPECT_EQ(Ask(handler, false, "\"other\", " + tag).get().status, 304);
  EXPECT_EQ(Ask(handler, false, "\"other\"").get().status, 200);
  page.version = 2;
  const HttpResponse changed = Ask(handler, false, tag).get();
  EXPECT_EQ(changed.status, 200);
  EXPECT_NE(changed.etag, tag);
}

TEST(PageWriter, WhoTakesGzipGetsTheSameTextCompressed) {
  CountedPage page;
  page.text = [](int) { return std::string(1'000'000, 'x'); };
  PageWriter writer;
  const HttpResponse response = Ask(writer.Handler(page.AsPage()), true).get();
  ASSERT_TRUE(response.gzip);
  const std::string packed = TextOf(response);
  EXPECT_LT(packed.size(), 100'000u);
  std::string text(2'000'000, '\0');
  z_stream stream{};
  ASSERT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(text.data());
  stream.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  text.resize(stream.total_out);
  inflateEnd(&stream);
  EXPECT_EQ(text, page.text(1));
}

TEST(PageWriter, APageForWhichThereIsNoMemoryIs503AndTheNextOneIsThere) {
  CountedPage page;
  page.text = [](int v) -> std::string {
    if (v == 1) throw std::bad_alloc();
    return "there";
  };
  PageWriter writer;
  const auto handler = writer.Handler(page.AsPage());
  EXPECT_EQ(Ask(handler).get().status, 503);
  page.version = 2;
  EXPECT_EQ(TextOf(Ask(handler).get()), "there");
}

TEST(PageWriter, TextsThatNobodyReadsAreBounded) {
  CountedPage page;
  page.text = [](int v) { return std::string(PageWriter::kMostSentBytes / 4, char('a' + v)); };
  std::vector<HttpResponse> unread;
  std::map<int, int> statuses;
  PageWriter writer;
  const auto handler = writer.Handler(page.AsPage());
  for (int i = 0; i < 12; ++i) {
    ++page.version;
    unread.push_back(Ask(handler).get());
    ++statuses[unread.back().status];
  }
  EXPECT_GE(statuses[200], 4);
  EXPECT_GE(statuses[503], 6);
  EXPECT_LE(writer.held_bytes(), PageWriter::kMostSentBytes * 5 / 4);
  unread.clear();
  EXPECT_EQ(Ask(handler).get().status, 200);
}

TEST(PageWriter, WhoWaitsWhenTheServerStopsGetsAnAnswer) {
  CountedPage page;
  std::latch begun(1), go_on(1);
  page.text = [&](int) {
    begun.count_down();
    go_on.wait();
    return std::string("late");
  };
  auto writer = std::make_unique<PageWriter>();
  const auto handler = writer->Handler(page.AsPage());
  auto first = Ask(handler);
  begun.wait();
  auto second = Ask(handler);
  std::thread end([&] { writer.reset(); });
  go_on.count_down();
  EXPECT_EQ(first.get().status, 200);
  const int status = second.get().status;
  EXPECT_TRUE(status == 503 || status == 200) << status;
  end.join();
}

TEST(PageWriter, NobodyElseWaitsForAPageOnTheOneThreadOfAServer) {
  std::latch go_on(1);
  CountedPage page;
  page.text = [&](int) {
    go_on.wait();
    return std::string("page");
  };
  http::Router router = EchoRoutes();
  http::HttpServerOptions options = LocalOptions();
  options.threads = 1;
  std::unique_ptr<http::HttpServer> server;
  PageWriter writer;
  router.Add("GET", "/page", writer.Handler(page.AsPage()));
  server = StartServer(options, router);
  RawClient viewer = ConnectTo(*server), probe = ConnectTo(*server);
  viewer.Send(Request("GET", "/page", "Accept-Encoding: br, gzip\r\n"));
  EXPECT_TRUE(Eventually([&] { return server->stats().requests >= 1; }));
  probe.Send(Request("GET", "/healthz"));
  EXPECT_EQ(probe.Read().body, "ok");
  go_on.count_down();
  const RawResponse answer = viewer.Read();
  EXPECT_EQ(answer.Field("Content-Encoding"), "gzip");
  viewer.Send(Request("GET", "/page", "If-None-Match: " + answer.Field("ETag") + "\r\n"));
  const RawResponse again = viewer.Read();
  EXPECT_EQ(again.status, 304);
  EXPECT_FALSE(again.Has("Content-Length"));
  viewer.Send(Request("GET", "/page"));
  EXPECT_EQ(viewer.Read().body, "page") << "the connection goes on after a 304";
}

// --- Answers of their own

HttpResponse AskFor(const http::HttpHandler& handler, std::string_view path) {
  HttpRequest request{"GET", path, "text", {}};
  const HttpResponse response = handler(request);
  std::promise<HttpResponse> answer;
  response.later(http::Reply([&answer](HttpResponse given) { answer.set_value(given); }));
  return answer.get_future().get();
}

TEST(PageWriter, ARequestForItsOwnAnswerGetsTheAnswerToItsPathAndQuery) {
  PageWriter writer;
  const auto handler = writer.Handler([](OwnRequest& request) {
    HttpResponse response;
    response.body = request.path + "?" + request.query;
    return response;
  });
  EXPECT_EQ(AskFor(handler, "/a").body, "/a?text");
  EXPECT_EQ(AskFor(handler, "/b").body, "/b?text");
}

TEST(PageWriter, AnAnswerOfItsOwnMayDependOnTheBody) {
  PageWriter writer;
  const auto handler = writer.Handler([](OwnRequest& request) {
    HttpResponse response;
    response.body = request.body.str() + "!";
    return response;
  });
  HttpRequest request{"POST", "/a", "", PaddedText("body")};
  const HttpResponse response = handler(request);
  std::promise<HttpResponse> answer;
  response.later(http::Reply([&answer](HttpResponse given) { answer.set_value(given); }));
  EXPECT_EQ(answer.get_future().get().body, "body!");
}

TEST(PageWriter, AnAnswerOfItsOwnIsNotMadeForAClientThatHasGone) {
  PageWriter writer;
  std::atomic<int> made{0};
  const auto handler = writer.Handler([&made](OwnRequest& request) {
    ++made;
    HttpResponse response;
    response.body = request.waits() ? "waits" : "gone";
    return response;
  });
  std::vector<std::string> bodies;
  for (const bool waits : {false, true}) {
    HttpRequest request{"POST", "/plan", "", PaddedText("body")};
    const HttpResponse response = handler(request);
    std::promise<HttpResponse> answer;
    response.later(http::Reply([&answer](HttpResponse given) { answer.set_value(given); },
                               [waits] { return waits; }));
    const HttpResponse given = answer.get_future().get();
    EXPECT_EQ(given.status, waits ? 200 : 503);
    bodies.push_back(given.body);
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(bodies.back(), "waits");
}

TEST(PageWriter, AnAnswerThatFindsNoMemoryIs503) {
  PageWriter writer;
  const auto handler = writer.Handler([](OwnRequest&) -> HttpResponse { throw std::bad_alloc(); });
  EXPECT_EQ(AskFor(handler, "/a").status, 503);
}

TEST(PageWriter, RequestsBeyondTheQueueGet503) {
  std::latch begun(1), go_on(1);
  std::vector<std::future<HttpResponse>> answers;
  {
    PageWriter writer;
    const auto handler = writer.Handler([&](const OwnRequest& request) {
      if (request.path == "/page") {
        begun.count_down();
        go_on.wait();
      }
      return HttpResponse();
    });
    auto first = Ask(handler);
    begun.wait();
    http::HttpRequest request{"GET", "/next", "", {}};
    for (std::size_t i = 0; i <= PageWriter::kMostWaiting; ++i) {
      auto answer = std::make_shared<std::promise<HttpResponse>>();
      answers.push_back(answer->get_future());
      handler(request).later(
          http::Reply([answer](HttpResponse given) { answer->set_value(given); }));
    }
    EXPECT_EQ(answers.back().get().status, 503) << "one too many";
    go_on.count_down();
    EXPECT_EQ(first.get().status, 200);
  }
  for (std::size_t i = 0; i < PageWriter::kMostWaiting; ++i) {
    const int status = answers[i].get().status;
    EXPECT_TRUE(status == 200 || status == 503) << status;
  }
}

}  // namespace
}  // namespace berth::test::page_writer_test
