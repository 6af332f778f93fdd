// SPDX-License-Identifier: Apache-2.0
#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include "server/http/connection.h"
#include "test/support/http_fixture.h"

namespace berth::http::http_router_test {
namespace {

using test::ConnectTo;
using test::EchoRoutes;
using test::Post;
using test::RawClient;
using test::RawResponse;
using test::Request;
using test::StartServer;

HttpResponse Call(const Router& router, std::string_view method, std::string_view path) {
  HttpRequest request{method, path, "", {}};
  return router(request);
}

TEST(RequestTarget, MeansTheSamePathInAllSpellings) {
  for (const char* target :
       {"/filter", "//filter", "/filter/", "///filter//", "/filter?timeout=5s", "/filter/?",
        "/filter#x", "http://berth:8080/filter", "http://berth//filter/?a=b"}) {
    EXPECT_EQ(ParseRequestTarget(target).path, "/filter") << target;
  }
  EXPECT_EQ(ParseRequestTarget("/a//b/").path, "/a/b");
  EXPECT_EQ(ParseRequestTarget("/").path, "/");
  EXPECT_EQ(ParseRequestTarget("http://berth").path, "/");
  EXPECT_EQ(ParseRequestTarget("*").path, "*");
}

TEST(RequestTarget, KeepsTheQueryAsSent) {
  EXPECT_EQ(ParseRequestTarget("/explain?pod=a%2Fb&x=//").query, "pod=a%2Fb&x=//");
  EXPECT_EQ(ParseRequestTarget("/explain?a=b#c?d").query, "a=b");
  EXPECT_EQ(ParseRequestTarget("/explain").query, "");
}

TEST(Router, FindsTheHandlerOfPathAndMethod) {
  Router router;
  router.Add("GET", "/config", [](HttpRequest&) { return HttpResponse{200, "", "", "read"}; });
  router.Add("PUT", "/config", [](HttpRequest&) { return HttpResponse{200, "", "", "written"}; });
  EXPECT_EQ(Call(router, "GET", "/config").body, "read");
  EXPECT_EQ(Call(router, "PUT", "/config").body, "written");
  EXPECT_EQ(Call(router, "HEAD", "/config").body, "read");
  EXPECT_EQ(Call(router, "POST", "/config").allow, "GET, HEAD, PUT");
}

TEST(Router, AnExactPathWinsAndThenTheLongestPrefix) {
  const auto answer = [](const char* body) {
    return [body](HttpRequest&) { return HttpResponse{200, "", "", body}; };
  };
  Router router;
  router.AddUnder("GET", "/pods", answer("pods"));
  router.AddUnder("GET", "/pods/kept", answer("kept"));
  router.Add("GET", "/pods/list", answer("list"));
  EXPECT_EQ(Call(router, "GET", "/pods/a/b").body, "pods");
  EXPECT_EQ(Call(router, "GET", "/pods/kept/b").body, "kept");
  EXPECT_EQ(Call(router, "GET", "/pods/list").body, "list");
  EXPECT_EQ(Call(router, "POST", "/pods/a").status, 405);
  EXPECT_EQ(Call(router, "GET", "/pods").status, 404) << "nothing below it";
  EXPECT_EQ(Call(router, "GET", "/podsmith/a").status, 404);
  EXPECT_EQ(Call(router, "GET", "*").status, 404);
}

TEST(Router, RefusesTraceAndConnect) {
  for (const char* method : {"TRACE", "CONNECT"}) {
    EXPECT_EQ(Call(EchoRoutes(), method, "/filter").status, 405);
    EXPECT_EQ(Call(EchoRoutes(), method, "/elsewhere").status, 404);
  }
}

TEST(Router, NeverRepeatsAStrangersBytesInAnError) {
  EXPECT_EQ(Call(EchoRoutes(), "GET", "/\"<script>").body, R"({"error":"no such path"})");
}

TEST(ExtenderProtocol, Case26_UnknownPathIsNotFound) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Post("/nowhere", "{}") + Post("/filter", "{}"));
  const RawResponse response = client.Read();
  EXPECT_EQ(response.status, 404);
  EXPECT_EQ(response.Field("Content-Type"), "application/json");
  EXPECT_EQ(response.body, R"({"error":"no such path"})");
  EXPECT_EQ(client.Read().status, 200) << "the connection is kept";
}

TEST(ExtenderProtocol, Case27_OtherMethodsOnAVerbAreNotAllowed) {
  const auto server = StartServer();
  for (const char* method : {"GET", "PUT", "DELETE", "TRACE", "BREW"}) {
    RawClient client = ConnectTo(*server);
    client.Send(Request(method, "/filter"));
    const RawResponse response = client.Read();
    EXPECT_EQ(response.status, 405) << method;
    EXPECT_EQ(response.Field("Allow"), "POST") << method;
  }
  RawClient client = ConnectTo(*server);
  client.Send(Request("HEAD", "/filter", "Connection: close\r\n"));
  const RawResponse response = client.ReadHeader();
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.Field("Allow"), "POST");
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST(ExtenderProtocol, Case28_DoubleAndTrailingSlashesAreNotRedirected) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  for (const char* path : {"//filter", "/filter/", "//filter//", "http://berth/filter"}) {
    client.Send(Post(path, "body"));
    const RawResponse response = client.Read();
    EXPECT_EQ(response.status, 200) << path;
    EXPECT_EQ(response.body, "body") << path;
  }
}

TEST(ExtenderProtocol, Case29_QueryIsIgnored) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Post("/filter?timeout=5s&x=/healthz", "body"));
  EXPECT_EQ(client.Read().body, "body");
}

TEST(ExtenderProtocol, Case30_ContentTypeIsNotLookedAt) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  for (const char* field : {"", "Content-Type: text/html\r\n", "Content-Type:\r\n"}) {
    client.Send(Request("POST", "/filter", std::string("Content-Length: 2\r\n") + field) + "{}");
    EXPECT_EQ(client.Read().body, "{}") << field;
  }
}

TEST(HttpServer, AnswersHeadLikeGetWithoutABody) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Request("HEAD", "/healthz") + Request("GET", "/healthz"));
  const RawResponse head = client.ReadHeader();
  const RawResponse get = client.Read();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.header, get.header);
  EXPECT_EQ(head.Field("Content-Length"), "2");
  EXPECT_EQ(get.body, "ok");
}

TEST(HttpServer, AnswersOptionsWithTheAllowedMethods) {
  const auto server = StartServer();
  RawClient client = ConnectTo(*server);
  client.Send(Request("OPTIONS", "/filter") + Request("OPTIONS", "/healthz") +
              Request("OPTIONS", "/nowhere"));
  const RawResponse filter = client.Read();
  EXPECT_EQ(filter.status, 200);
  EXPECT_EQ(filter.Field("Allow"), "POST");
  EXPECT_EQ(filter.Field("Content-Length"), "0");
  EXPECT_EQ(client.Read().Field("Allow"), "GET, HEAD");
  EXPECT_EQ(client.Read().status, 404);
}

}  // namespace
}  // namespace berth::http::http_router_test
