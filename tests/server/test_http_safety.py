"""What the HTTP door must bear: forged, framed, oversized, slow and hostile requests; and who may
do what.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from discreet.errors import UsageError
from discreet.server.auth import FREE_TRIES
from discreet.server.http.application import ROOT
from discreet.server.http.sessions import LONGEST, MOST, Sessions
from discreet.server.limits import ServerLimits
from discreet.server.serve import Address
from discreet.server.users import UserFile
from server.http_client import Browser, raw
from server.running_server import PASSWORD, POLICY, Running, open_town, running

COUNT = "SELECT COUNT(*) AS n FROM people"
LIMITS = ServerLimits(message=100_000, login=1.5)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(open_town(tmp_path_factory.mktemp("town")), limits=LIMITS) as found:
        yield found


@pytest.fixture(scope="module")
def users(town: Running) -> dict[str, Browser]:
    """One logged-in browser for each role, and nobody."""
    found = {"nobody": Browser(town.http)}
    for role, name in (("analyst", "alice"), ("curator", "carol"), ("auditor", "dave")):
        found[role] = Browser(town.http)
        assert found[role].log_in(name).status == 200
    return found


# --- who may do what ------------------------------------------------------------------------------

EVERYBODY = {"/health", "/login", "/openapi.json"}
ALL_USERS = {
    *(
        "/logout",
        "/session",
        "/tables",
        "/answers/{link}",
        "/releases",
        "/releases/{name}",
        "/releases/{name}/page",
    ),
    *(
        "/publications",
        "/publications/{name}",
        "/publications/{name}/page",
        "/descriptions/{link}/rows",
    ),
    *("/jobs/{id}", "/jobs/{id}/events"),
}
ASKERS = {"/quote", "/explain", "/ask", "/ask_all", "/budget", "/history"}
OVERSEERS = {"/metrics", "/descriptions"}
BODIES = {
    "/ask_all": {"questions": [{"sql": "SELECT 1"}]},
    "/users": {"name": "nobody-like-that"},
    "/policy": {"text": "unit: person"},
    "/policy/preview": {"text": "unit: person"},
    "/bounds": {"table": "nowhere", "column": "x", "epsilon": 1},
    "/describe": {"table": "nowhere", "epsilon": 1},
    "/users/{name}/tokens": {"days": 1},
}


def may(path: str) -> set[str]:
    """Who may use a route: whatever is not in a list is the curator's alone."""
    if path in EVERYBODY:
        return {"nobody", "analyst", "curator", "auditor"}
    if path in ALL_USERS:
        return {"analyst", "curator", "auditor"}
    if path in ASKERS:
        return {"analyst", "curator"}
    return {"curator", "auditor"} if path in OVERSEERS else {"curator"}


def test_every_route_is_denied_to_whom_it_is_not_for(users: dict[str, Browser]) -> None:
    routes = users["nobody"].get("/openapi.json").json["paths"]
    assert len(routes) > 35
    for full, methods in routes.items():
        path = full.removeprefix(ROOT)
        for method in methods:
            for role, browser in users.items():
                if role in may(path) and (
                    path in ("/login", "/logout", "/snapshot", "/check") or method == "delete"
                ):
                    continue
                filled = (
                    full.replace("{name}", "nothing")
                    .replace("{link}", "nothing")
                    .replace("{id}", "0")
                )
                body = BODIES.get(path, {"sql": "SELECT 1"}) if method in ("post", "put") else None
                reply = browser.send(method.upper(), filled, body)
                denied = reply.status in (401, 403) and reply.error["kind"] == "denied"
                assert denied != (role in may(path)), (method, path, role, reply.status, reply.body)
                if denied:
                    assert reply.status == (401 if role == "nobody" else 403)


def test_a_locked_or_removed_user_is_out_at_the_next_request(tmp_path: Path) -> None:
    with running(open_town(tmp_path)) as town:
        bob, token = Browser(town.http), Browser(town.http, token=town.users.add_token("bob"))
        bob.log_in("bob")
        assert (bob.get("/tables").status, token.get("/tables").status) == (200, 200)
        town.users.lock("bob")
        assert (bob.get("/tables").status, token.get("/tables").status) == (401, 401)
        town.users.lock("bob", locked=False)
        assert bob.get("/tables").status == 200
        town.users.remove("bob")
        # another bob: the old session is not his
        town.users.add("bob", password="another password")
        assert (bob.get("/tables").status, token.get("/tables").status) == (401, 401)


# --- sessions -------------------------------------------------------------------------------------


def test_the_cookie_is_for_this_host_and_no_script(town: Running) -> None:
    reply = Browser(town.http).log_in("alice")
    flags = {part.strip().lower() for part in reply.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert not any(flag.startswith("domain") for flag in flags)


def test_a_proxy_is_believed_where_the_server_says_so_and_nowhere_else(
    town: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.server.auth.FIRST_WAIT", 600.0)  # however slow this machine is
    claims = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.0.0.1"}
    unasked = Browser(town.http, headers=claims)
    assert "__Host-" not in unasked.log_in("alice").headers["set-cookie"]
    with running(open_town(tmp_path), proxied=True) as behind:
        for wrong in ({}, {"X-Forwarded-Proto": "http"}, {"X-Forwarded-Proto": "https, http"}):
            plain = Browser(behind.http, headers=wrong)
            assert plain.log_in("alice").status == 403
            assert plain.send("GET", "/login").status == 403
            assert plain.get("/health").status == 200
        alice = Browser(behind.http, headers=claims)
        reply = alice.log_in("alice")
        assert reply.headers["set-cookie"].startswith("__Host-discreet=")
        assert "secure" in reply.headers["set-cookie"].lower()
        assert "strict-transport-security" in reply.headers
        assert alice.get("/session").status == 200
        for number in range(FREE_TRIES["address"]):
            # the last address is the proxy's own word: what stands before it is anybody's
            wrong = claims | {"X-Forwarded-For": "10.0.0.1, 10.0.0.2"}
            assert (
                Browser(behind.http, headers=wrong).log_in(f"nobody {number}", "wrong").status
                == 401
            )
        assert (
            Browser(behind.http, headers=claims | {"X-Forwarded-For": "10.0.0.2"})
            .log_in("bob")
            .status
            == 429
        )
        assert Browser(behind.http, headers=claims).log_in("bob").status == 200


def test_behind_a_proxy_the_door_is_open_to_this_machine_alone() -> None:
    Address.parse(":8080").require_private(None, proxied=True)
    with pytest.raises(UsageError, match="claim to be the proxy"):
        Address.parse("0.0.0.0:8080").require_private(None, proxied=True)


def test_a_change_by_cookie_needs_the_token_of_its_own_session(users: dict[str, Browser]) -> None:
    alice, carol = users["analyst"], users["curator"]
    body = {"sql": COUNT, "epsilon": 0.01}
    assert replace(alice, csrf=None).post("/ask", body).status == 403
    assert replace(alice, csrf="wrong").post("/ask", body).status == 403
    assert replace(alice, csrf=carol.csrf).post("/ask", body).status == 403
    assert alice.post("/ask", body, Origin="https://evil.example").status == 403
    assert alice.post("/ask", body, Origin="null").status == 403
    assert alice.post("/ask", body, Sec_Fetch_Site="cross-site").status == 403
    assert alice.post("/ask", body).status == 200


def test_a_login_is_not_sent_by_other_pages(town: Running) -> None:
    body = {"user": "alice", "password": PASSWORD}
    browser = Browser(town.http)
    assert browser.post("/login", body, Origin="https://evil.example").status == 403
    form = b"user=alice&password=whatever"
    assert (
        browser.post("/login", form, Content_Type="application/x-www-form-urlencoded").status == 422
    )
    as_text = json.dumps(body).encode()
    assert browser.post("/login", as_text, Content_Type="text/plain").status == 422


def test_a_session_is_new_at_every_login(town: Running) -> None:
    """A cookie that somebody planted in a browser is no session after its owner logs in."""
    planted = "discreet_session=chosen-by-somebody-else"
    victim = Browser(town.http, cookie=planted)
    victim.log_in("alice")
    assert victim.cookie != planted
    assert Browser(town.http, cookie=planted).get("/session").status == 401
    first = victim.cookie
    victim.log_in("alice")
    assert victim.cookie != first
    # the login before it has ended
    assert Browser(town.http, cookie=first).get("/session").status == 401
    victim.post("/logout")
    assert victim.get("/session").status == 401


def test_sessions_end(tmp_path: Path) -> None:
    policy = open_town(tmp_path).policy
    alice = UserFile(policy).read().users["alice"]
    now = [0.0]
    sessions = Sessions(idle=100.0, clock=lambda: now[0])
    secret, _ = sessions.begin(alice)
    now[0] = 99.0
    assert sessions.find(secret) is not None
    now[0] = 200.0
    assert sessions.find(secret) is None
    secret, _ = sessions.begin(alice)
    for _ in range(int(LONGEST / 90) + 2):
        now[0] += 90.0
        sessions.find(secret)
    assert sessions.find(secret) is None
    secrets = [sessions.begin(alice)[0] for _ in range(MOST + 1)]
    assert sessions.find(secrets[0]) is None
    assert sessions.find(secrets[1]) is not None


def test_wrong_logins_look_alike_and_must_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("discreet.server.auth.FIRST_WAIT", 600.0)  # however slow this machine is
    with running(open_town(tmp_path)) as town:
        browser = Browser(town.http)
        known, unknown = (
            browser.log_in("bob", "wrong password"),
            browser.log_in("mallory", "wrong password"),
        )
        assert (known.status, known.body) == (unknown.status, unknown.body)
        assert known.status == 401
        for _ in range(4):
            browser.log_in("bob", "wrong password")
        late = browser.log_in("bob")
        assert late.status == 429
        assert int(late.headers["retry-after"]) >= 0


# --- what a browser is told -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/api/v1/health", "/api/v1/tables", "/nowhere", "/api/v1/openapi.json"]
)
def test_every_reply_has_the_headers_that_keep_it_in_its_place(town: Running, path: str) -> None:
    headers = Browser(town.http).send("GET", path, Origin="https://evil.example").headers
    policy = headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not any(name.startswith("access-control") for name in headers)
    assert "server" not in headers


def test_other_hosts_pages_read_nothing_unless_the_server_says_so(tmp_path: Path) -> None:
    from discreet.server.serve import Address, Server

    with running(open_town(tmp_path)) as town:
        preflight = {"Origin": "https://a.example", "Access_Control_Request_Method": "POST"}
        assert (
            "access-control-allow-origin"
            not in Browser(town.http).send("OPTIONS", f"{ROOT}/ask", **preflight).headers
        )

        async def allowing() -> tuple[Server, int]:
            server = Server(curator=town.server.curator, origins=("https://a.example",))
            return server, (await server.open_http(Address(host="127.0.0.1", port=0)))[1]

        server, port = town.run(allowing())
        reply = Browser(port).send("OPTIONS", f"{ROOT}/ask", **preflight)
        assert reply.headers["access-control-allow-origin"] == "https://a.example"
        assert "access-control-allow-credentials" not in reply.headers
        other = Browser(port).get("/health", Origin="https://b.example")
        assert "access-control-allow-origin" not in other.headers
        town.run(server.close())


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/static/../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/static//etc/passwd",
        "/api/v1/answers/..%2f..%2fledger",
        "/api/v1/answers/%00",
        "/api/v1/releases/..%2f..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_path_leads_out(town: Running, users: dict[str, Browser], path: str) -> None:
    for browser in users.values():
        reply = browser.send("GET", path)
        assert reply.status in (400, 401, 403, 404)
        assert b"root:" not in reply.body


# --- large, slow, broken --------------------------------------------------------------------------


def test_large_requests_are_refused(town: Running, users: dict[str, Browser]) -> None:
    alice = users["analyst"]
    large = alice.post("/ask", {"sql": "x" * LIMITS.message})
    assert (large.status, large.error["kind"]) == (413, "large")
    head = b"POST /api/v1/ask HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    claimed = raw(town.http, head + b"Content-Length: 99999999999\r\n\r\n")
    assert claimed.startswith(b"HTTP/1.1 413")
    chunk = b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
    chunked = raw(
        town.http, head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 4 + b"0\r\n\r\n"
    )
    assert chunked.startswith(b"HTTP/1.1 413")
    assert raw(town.http, b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000)[:12] in (b"HTTP/1.1 400", b"")
    assert raw(town.http, b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400")
    both = head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert not raw(town.http, both).startswith(b"HTTP/1.1 200")
    assert alice.get("/session").status == 200


def test_slow_requests_are_left(town: Running) -> None:
    assert raw(town.http, b"") == b""  # nothing comes: the server closes
    # a head that does not end
    assert raw(town.http, b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n") == b""
    head = b"POST /api/v1/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"
    assert raw(town.http, head).startswith(b"HTTP/1.1 408")


def refused(port: int, request: bytes) -> bool:
    """Whether a connection is closed without an answer."""
    try:
        return raw(port, request) == b""
    except OSError:
        return True


def test_many_idle_connections_of_one_address_are_closed(tmp_path: Path) -> None:
    limits = ServerLimits(connections_before_login_per_address=5)
    with running(open_town(tmp_path), limits=limits) as town:
        held = [socket.create_connection(("127.0.0.1", town.http), timeout=60) for _ in range(5)]
        for connection in held:  # each is there: it is answered
            connection.sendall(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        request = b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        assert refused(town.http, request)
        for connection in held:
            connection.close()


# --- time, and words ------------------------------------------------------------------------------


def test_with_a_deadline_everything_leaves_at_a_multiple_of_it(tmp_path: Path) -> None:
    """S13: what is free or refused is held like what is asked."""
    policy = POLICY.replace("limits: {epsilon: 100}", "limits: {epsilon: 100, deadline: 0.3s}")
    with running(open_town(tmp_path, policy)) as town:
        alice = Browser(town.http)
        for send in (
            lambda: alice.log_in("alice"),
            lambda: alice.get("/health"),
            lambda: alice.get("/nowhere"),
            lambda: alice.get("/tables"),
            lambda: alice.post("/ask", {"sql": "nonsense", "epsilon": 1}),
            lambda: alice.post("/ask", {"sql": COUNT, "epsilon": 0.01}),
        ):
            began = time.monotonic()
            send()
            assert time.monotonic() - began >= 0.299


XSS = [
    "<script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "</title><svg/onload=alert(1)>",
    "{{7*7}}",
]


@pytest.mark.parametrize("text", XSS)
def test_what_is_hostile_stays_text(users: dict[str, Browser], text: str) -> None:
    """Whatever a request says comes back as JSON or as a file, never as a page."""
    alice = users["analyst"]
    name = text.replace('"', '""')
    for reply in (
        alice.post("/ask", {"sql": f'SELECT COUNT(*) AS "{name}" FROM people', "epsilon": 0.01}),
        alice.post(
            "/ask?format=csv", {"sql": f'SELECT COUNT(*) AS "{name}" FROM people', "epsilon": 0.01}
        ),
        alice.post("/ask", {"sql": text, "epsilon": 1}),
        alice.post("/login", {"user": text, "password": text}),
        alice.send("GET", "/api/v1/answers/%3Cscript%3E"),
        alice.send("GET", "/%3Cscript%3Ealert(1)%3C/script%3E"),
    ):
        assert reply.headers["content-type"].partition(";")[0] in ("application/json", "text/csv")
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert alice.get("/history").headers["content-type"] == "application/json"


def test_failures_of_our_own_tell_nothing(
    town: Running, users: dict[str, Browser], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def __getattr__(self, name: str) -> object:
            raise ZeroDivisionError("secret")

    desk = town.server.http._config.loaded_app._app.state.desk  # type: ignore[union-attr]
    answers, desk.answers = desk.answers, Broken()
    try:
        reply = users["analyst"].get("/history")
    finally:
        desk.answers = answers
    assert reply.status == 500
    assert reply.error["kind"] == "internal"
    assert b"secret" not in reply.body
    assert "secret" not in caplog.text
