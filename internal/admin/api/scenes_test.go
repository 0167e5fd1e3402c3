package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/event"
	"headgate/internal/notice"
	"headgate/internal/query"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
	"headgate/internal/upgrade"
)

// runtime is what is done and told beside the configuration.
// upgrade replaces a process that only says so.
func (s *scene) upgrade() {
	s.does(200, "GET", "/upgrade", "")
	s.does(409, "POST", "/upgrade", `{}`)
	s.does(409, "POST", "/upgrade/check", `{}`)
	o := &s.h.api.Options
	o.Upgrade = func(bool) (upgrade.Result, error) { return upgrade.Result{Version: "1.0.1"}, nil }
	o.CheckUpgrade = func(context.Context) upgrade.Check { return upgrade.Check{} }
	s.does(200, "POST", "/upgrade", `{"why":"a fix"}`)
	s.does(200, "POST", "/upgrade/check", `{}`)
	o.Upgrade, o.CheckUpgrade = nil, nil
}

// nodes drains the node that answers, and removes one that has stopped.
func (s *scene) nodes() {
	s.does(200, "GET", "/nodes", "")
	s.does(200, "GET", "/nodes/local", "")
	for _, verb := range []string{"/drain", "/undrain"} {
		s.does(404, "POST", "/nodes/none"+verb, "{}")
		s.does(200, "POST", "/nodes/local"+verb, `{"why":"new kernel"}`)
	}
	s.does(404, "GET", "/nodes/none", "")
	s.does(404, "DELETE", "/nodes/none", "")
	s.does(409, "DELETE", "/nodes/local", "")
	gone := store.Entry{Key: store.PrefixNode + "gone", Value: []byte(`{"version":"1.0.0","stopped":true}`)}
	if _, err := s.h.c.Store().Commit(s.h.t.Context(), store.Change{Put: []store.Entry{gone}}); err != nil {
		s.h.t.Fatal(err)
	}
	s.does(200, "GET", "/traffic", "")
	s.h.api.Peers = fixedAnswer{err: query.ErrNoAnswer}
	for _, r := range s.h.api.rows {
		if r.ofNode {
			s.does(404, "GET", r.path+"?node=none", "")
			s.does(504, "GET", r.path+"?node=gone", "")
		}
	}
	s.h.api.Peers = nil
	s.does(204, "DELETE", "/nodes/gone", "")
	s.does(200, "GET", "/store", "")
	s.does(409, "GET", "/store/check", "")
	s.h.api.CheckStore = func(context.Context) (StoreCheck, error) { return StoreCheck{Engine: "postgres://db/x"}, nil }
	s.does(200, "GET", "/store/check", "")
	s.h.api.CheckStore = nil
	s.does(409, "POST", "/store/migrate", "{}")
	outdated := true
	s.h.api.MigrateStore = func(context.Context, bool) (StoreMigration, error) {
		if outdated {
			return StoreMigration{}, &store.Outdated{Node: "web2", Release: "1.0.0", Knows: 1, Needs: 2}
		}
		return StoreMigration{From: 1, Version: 2, ReadableFrom: 2}, nil
	}
	s.does(409, "POST", "/store/migrate", "{}")
	outdated = false
	s.does(200, "POST", "/store/migrate", `{"why":"all nodes have it"}`)
	s.h.api.MigrateStore = nil
	for _, verb := range []string{"adopt", "push"} {
		s.does(409, "POST", "/store/"+verb, "{}")
	}
	o := &s.h.api.Options
	o.AdoptStore = func(context.Context) error { return nil }
	o.PushStore = o.AdoptStore
	for _, verb := range []string{"adopt", "push"} {
		s.does(200, "POST", "/store/"+verb, `{"why":"a restored backup"}`)
	}
	o.AdoptStore, o.PushStore = nil, nil
}

// agents report the containers of other machines.
func (s *scene) agents() {
	for _, name := range []string{"web7", "web8"} {
		_, out := s.does(201, "POST", "/tokens", `{"name":"`+name+`","role":"editor","scopes":["agents"]}`)
		s.h.tokens[name] = fmt.Sprint(out["token"])
	}
	s.does(200, "PUT", "/settings/discovery", `{"agent":{"web7":{"address":"10.0.0.7"}}}`, always)
	as := "Authorization: Bearer " + s.h.tokens["web7"]
	report := `{"objects":[{"kind":"proxies","name":"far","container":"far-1","labels":[{"path":"virtual_hosts","value":"far.example","container":"far-1","name":"headgate.host"}],"servers":[{"address":"http://192.0.2.1:8080","container":"far-1"}]}]}`
	s.does(403, "PUT", "/discovery/agents/web7", report) // not even an admin
	s.does(403, "PUT", "/discovery/agents/web8", report, as)
	s.does(404, "PUT", "/discovery/agents/web8", report, "Authorization: Bearer "+s.h.tokens["web8"])
	s.does(403, "GET", "/proxies", "", as)
	s.does(403, "POST", "/tokens", `{"name":"more","role":"editor","scopes":["config"]}`, as)
	s.does(400, "PUT", "/discovery/agents/web7", `{"objects":[{"kind":"ports","name":"far"}]}`, as)
	s.does(204, "PUT", "/discovery/agents/web7", report, as)
	s.does(429, "PUT", "/discovery/agents/web7", report, as)
	testhouse.Eventually(s.h.t, "the proxy of the agent is served", func() bool {
		cfg := s.h.c.Plan().Config()
		return cfg.Found("proxies", "far") != nil && cfg.Proxies["far"].Routes[0].Servers[0].URL == "http://10.0.0.7:8080"
	})
	s.does(204, "DELETE", "/tokens/web7", "", always)
	s.does(401, "PUT", "/discovery/agents/web7", report, as)
	s.does(200, "PUT", "/settings/discovery", `{}`, always)
}

// splits decides about the split of a proxy.
func (s *scene) splits() {
	s.does(201, "POST", "/proxies", `{"name":"canary","virtual_hosts":["canary.example.com"],"routes":[{"servers":[{"url":"http://127.0.0.1:1"},{"url":"http://127.0.0.1:2","group":"candidate"}],"split":{"candidate":5}}]}`, always)
	s.does(200, "GET", "/splits", "")
	for _, verb := range []string{"hold", "return", "restart", "promote"} {
		s.does(404, "POST", "/splits/"+verb, `{"proxy":"none"}`)
		s.does(200, "POST", "/splits/"+verb, `{"proxy":"canary"}`)
		if verb == "hold" || verb == "return" {
			s.does(409, "POST", "/splits/"+verb, `{"proxy":"canary"}`)
		}
	}
	s.does(409, "POST", "/splits/promote", `{"proxy":"canary"}`)
	s.does(200, "GET", "/mirrors", "")
	s.does(404, "GET", "/mirrors?proxy=canary", "")
	s.does(204, "DELETE", "/proxies/canary", "", always)
}

func (s *scene) runtime() {
	s.does(200, "GET", "/servers/held", "")
	meant := `{"proxy":"main","server":"127.0.0.1:1"%s}`
	for _, verb := range []string{"drain", "disable", "enable"} {
		s.does(404, "POST", "/servers/"+verb, `{"proxy":"none","server":"127.0.0.1:1"}`)
		s.does(200, "POST", "/servers/"+verb, fmt.Sprintf(meant, `,"kind":"proxies"`))
	}
	s.does(409, "POST", "/servers/enable", fmt.Sprintf(meant, `,"kind":"proxies"`))
	s.does(200, "POST", "/servers/test", `{"url":"http://127.0.0.1:1"}`)
	s.splits()
	s.does(200, "GET", "/ech", "")
	s.does(200, "GET", "/gate/tokens", "")
	s.does(404, "GET", "/gate/tokens/none", "")
	s.does(404, "DELETE", "/gate/tokens/none", "")
	s.does(400, "POST", "/gate/tokens", `{"name":"phone","person":"ann@example.com"}`)
	s.does(400, "POST", "/gate/tokens", `{"name":"phone","proxies":["none"]}`)
	s.does(201, "POST", "/gate/tokens", `{"name":"phone","proxies":["main"],"paths":["/dav"]}`)
	s.does(409, "POST", "/gate/tokens", `{"name":"phone"}`)
	s.does(200, "GET", "/gate/tokens/phone", "")
	s.does(204, "DELETE", "/gate/tokens/phone", "")
	s.does(200, "GET", "/banned", "")
	s.does(200, "GET", "/banned/rules", "")
	s.does(404, "POST", "/banned/lift", `{"address":"192.0.2.9"}`)
	s.does(201, "POST", "/banned", `{"address":"192.0.2.9","for":"1h"}`)
	s.does(409, "POST", "/banned", `{"address":"127.0.0.1","for":"1h"}`)
	s.does(200, "POST", "/banned/lift", `{"address":"192.0.2.9","why":"a mistake"}`)
	s.does(200, "GET", "/addresses/192.0.2.9", "")
	s.does(404, "GET", "/addresses/nobody", "")
	s.does(404, "GET", "/lists/none/state", "")
	s.does(200, "GET", "/geo", "")
	s.does(200, "GET", "/dns_providers", "")
	s.does(400, "POST", "/dns_providers/test", `{"host":"www.example.com","provider":"nobody"}`)
	s.does(200, "POST", "/dns_providers/test", `{"host":"www.example.com","provider":"duckdns","credentials":{"token":"t"},"zone":"duckdns.org","resolvers":["127.0.0.1:1"]}`)
	s.does(200, "GET", "/lists/main/state", "")
	for _, kind := range []string{"ports", "tcp_proxies", "udp_proxies"} {
		s.does(404, "POST", "/"+kind+"/none/reset", "{}")
		s.does(409, "POST", "/"+kind+"/main/reset", "{}")
	}
	at := testhouse.Addresses(s.h.t, 3)
	s.does(200, "PATCH", "/ports/main", `{"address":"`+at[0]+`","active":true}`, always)
	s.does(200, "PATCH", "/tcp_proxies/main", `{"address":"`+at[1]+`","active":true}`, always)
	s.does(200, "PATCH", "/udp_proxies/main", `{"address":"`+at[2]+`","active":true}`, always)
	for _, kind := range []string{"ports", "tcp_proxies", "udp_proxies"} {
		s.does(200, "POST", "/"+kind+"/main/reset", "{}")
	}
	s.shareLinks()
	s.does(200, "GET", "/discovery", "")
	s.does(200, "GET", "/status", "")
	s.does(404, "GET", "/status?proxy=none", "")
	s.does(200, "GET", "/summary", "")
	s.does(200, "GET", "/series", "")
	s.does(404, "GET", "/series?proxy=none", "")
	s.does(200, "POST", "/explain", `{"url":"http://shop.example.com/"}`)
	if _, out := s.does(200, "POST", "/explain/stream", `{"address":"tcp://`+at[1]+`"}`); out["proxy"] != "main" {
		s.h.t.Errorf("the connection is explained as %v", out)
	}
	s.does(400, "POST", "/explain/stream", `{"address":"http://`+at[1]+`"}`)
	s.does(404, "POST", "/cache/purge", `{"all":true}`)
	s.does(200, "PATCH", "/proxies/main", `{"cache":{}}`, always)
	s.caches()
	s.does(200, "POST", "/cache/purge", `{"all":true}`)

	s.does(200, "GET", "/events/history", "")
	for _, queue := range []string{"/webhooks/chat", "/notices/phone"} {
		s.does(200, "GET", queue+"/state", "")
		s.does(404, "GET", queue+"no/state", "")
		s.does(200, "POST", queue+"/test", "{}")
		s.does(404, "POST", queue+"no/test", "{}")
		s.does(404, "POST", queue+"/resend", `{"event":1}`)
	}
	s.deadLetter()
	s.does(200, "GET", "/logs/access", "")
	for _, path := range []string{"/events", "/logs/access/stream"} {
		ctx, stop := context.WithCancel(s.h.t.Context())
		stop() // it ends when its head is sent
		rq := httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+Prefix+path, nil)
		rq.Header.Set("Authorization", "Bearer "+s.h.tokens["viewer"])
		s.to.ServeHTTP(httptest.NewRecorder(), rq)
	}
	kept := s.h.ring
	s.h.ring = nil
	s.does(404, "GET", "/logs/access", "")
	s.does(404, "GET", "/logs/access/stream", "")
	s.h.ring = kept
}

// shareLinks makes a share link of an application behind a gate, and revokes it.
func (s *scene) caches() {
	_, state := s.does(200, "GET", "/cache?period=1m", "")
	if caches, _ := state["caches"].([]any); len(caches) != 1 {
		s.h.t.Errorf("one proxy has a cache, and the caches are %v", state)
	}
	s.does(400, "GET", "/cache?period=1s", "")
	s.does(200, "GET", "/cache/entries?sort=hits&limit=3", "")
	s.does(404, "GET", "/cache/entries?proxy=none", "")
	s.does(200, "GET", "/series?proxy=main&route=/", "")
	s.does(400, "GET", "/series?route=/", "")
	_, out := s.does(200, "POST", "/cache/explain", `{"url":"http://shop.example.com/"}`)
	if out["proxy"] != "main" || out["stores"] != nil { // the route requires a password
		s.h.t.Errorf("the response is explained as %v", out)
	}
}

func (s *scene) shareLinks() {
	s.does(200, "GET", "/gate/links", "")
	s.does(404, "DELETE", "/gate/links/none", "")
	s.does(400, "POST", "/gate/links", `{"url":"https://wiki.example.com/x","expires":"2020-01-01T00:00:00Z"}`)
	s.does(200, "POST", "/config/edits", `{"edits":[
		{"op":"set","path":"sign_in","value":{"local":true}},
		{"op":"set","path":"proxies.login","value":{"virtual_hosts":["login.example.com"],"client_ip":{"trusted":["127.0.0.1"]},"routes":[{"path":"/","sign_in":{}}]}},
		{"op":"set","path":"proxies.wiki","value":{"virtual_hosts":["wiki.example.com"],"client_ip":{"trusted":["127.0.0.1"]},"gate":{"allow":["domain:example.com"]},"routes":[{"path":"/","servers":[{"url":"http://127.0.0.1:1"}]}]}}]}`, always)
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	_, out := s.does(201, "POST", "/gate/links", `{"url":"https://wiki.example.com/album","expires":"`+expires+`","uses":1}`)
	id, _ := out["id"].(string)
	s.does(204, "DELETE", "/gate/links/"+id, "")
	s.does(200, "POST", "/config/edits", `{"edits":[{"op":"remove","path":"proxies.wiki"},{"op":"remove","path":"proxies.login"},{"op":"remove","path":"sign_in"}]}`, always)
}

// deadLetter has one sent again.
func (s *scene) deadLetter() {
	kept := memory.New()
	state, err := json.Marshal(notice.State{Dead: []notice.Delivery{{Event: &event.Event{ID: 1, Type: "process.started"}}}})
	if err != nil {
		s.h.t.Fatal(err)
	}
	if _, err := kept.Commit(s.h.t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixWebhook + "chat", Value: state}, {Key: store.PrefixNotice + "phone", Value: state}}}); err != nil {
		s.h.t.Fatal(err)
	}
	o := s.h.api.Options
	o.Notices = notice.New(notice.Options{Events: s.h.events, Store: kept, Log: slog.New(slog.DiscardHandler)})
	defer o.Notices.Close()
	o.Notices.Set(hooksAt(s.h.receiver.URL))
	to := &scene{s.h, s.seen.of(New(o)), s.seen}
	to.does(204, "POST", "/webhooks/chat/resend", `{"event":1}`)
	to.does(204, "POST", "/notices/phone/resend", `{"event":1}`)
}

// configuration is the configuration as a whole, its revisions, and a backup of it.
func (s *scene) configuration() {
	_, out := s.does(200, "GET", "/config", "")
	data, err := json.Marshal(map[string]any{"documents": out["documents"]})
	if err != nil {
		s.h.t.Fatal(err)
	}
	whole, edits := string(data), `{"edits":[{"op":"set","path":"proxies.main.description","value":"by an edit"}]}`
	s.does(200, "GET", "/config/schema", "")
	s.does(200, "PUT", "/config", whole, always)
	s.does(200, "POST", "/config/edits", edits, always)
	s.does(200, "POST", "/config/plan", edits)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.h.t.Fatal(err)
	}
	s.does(409, "POST", "/config/plan", fmt.Sprintf(`{"edits":[{"op":"set","path":"ports.busy","value":{"address":"%s","protocol":"http"}}]}`, busy.Addr()))
	busy.Close()
	s.does(200, "POST", "/config/validate", whole)
	s.does(200, "GET", "/revisions", "")
	s.does(200, "GET", "/revisions/1", "")
	s.does(404, "GET", "/revisions/9999", "")
	s.does(200, "GET", "/revisions/1/diff/current", "")
	s.does(404, "GET", "/revisions/9999/diff/current", "")
	s.does(200, "POST", "/revisions/1/rollback", "{}", always)
	s.does(404, "POST", "/revisions/9999/rollback", "{}", always)
	s.h.t.Setenv("HEADGATE_TEST_GONE", "x")
	s.does(200, "PATCH", "/proxies/main", `{"description":"${HEADGATE_TEST_GONE}"}`, always)
	os.Unsetenv("HEADGATE_TEST_GONE")
	_, out = s.does(200, "GET", "/revisions", "")
	gone := fmt.Sprint(out["items"].([]any)[0].(map[string]any)["number"])
	s.does(409, "GET", "/revisions/"+gone+"/diff/1", "")
	s.h.t.Setenv("HEADGATE_TEST_GONE", "x")
	s.does(200, "POST", "/revisions/1/rollback", "{}", always)

	s.does(409, "POST", "/confirm", "{}")
	s.does(409, "POST", "/revert", "{}")
	s.does(404, "POST", "/backup", "{}") // of an API without a state directory
	o := s.h.api.Options
	o.Backup = s.h.c.Backup
	kept := scene{s.h, s.seen.of(New(o)), s.seen}
	w, _ := kept.does(200, "POST", "/backup", "{}")
	archive := w.Body.String()
	kept.does(400, "POST", "/restore", "no archive", always)
	kept.pending(func() {
		s.does(409, "PUT", "/config", whole, always)
		s.does(409, "POST", "/config/edits", edits, always)
		s.does(409, "POST", "/revisions/1/rollback", "{}", always)
		kept.does(409, "POST", "/restore", archive, always)
	})
	s.does(200, "PATCH", "/proxies/main?confirm_within=5m", `{"description":"stays"}`, always)
	s.does(200, "POST", "/confirm", "{}")
	kept.does(413, "POST", "/restore", archive, always, "Length: ")
	kept.does(200, "POST", "/restore", archive, always)
}

// cutover is what helps to leave another proxy.
func (s *scene) cutover() {
	s.does(404, "GET", "/compare", "")
	s.does(404, "DELETE", "/compare", "")
	gate := make(chan struct{})
	held := side(s.h.t, "x", gate)
	defer s.h.api.Close()
	defer close(gate)
	in := fmt.Sprintf(`{"old":[%[1]q],"new":[%[1]q],"list":"http://shop.example.com/","no_dns":true}`, held.Listener.Addr())
	s.does(202, "POST", "/compare", in)
	s.does(409, "POST", "/compare", in)
	s.does(200, "GET", "/compare", "")
	s.does(204, "DELETE", "/compare", "")
	s.moves()
	s.does(200, "POST", "/import", `{"source":"nginx","files":[{"name":"nginx.conf","text":"http { server { listen 80; } }"}]}`)
}

// moves are ports that take over the addresses of the other proxy, and go back.
func (s *scene) moves() {
	s.does(404, "GET", "/cutover", "")
	s.does(404, "DELETE", "/cutover", "")
	at := testhouse.Addresses(s.h.t, 2)
	s.does(200, "PATCH", "/ports/main", `{"address":"`+at[0]+`","active":true}`, always)
	taken, err := net.Listen("tcp", at[1])
	if err != nil {
		s.h.t.Fatal(err)
	}
	moves := `{"moves":[{"port":"main","to":"` + at[1] + `"}]%s}`
	plain, watched := fmt.Sprintf(moves, ""), fmt.Sprintf(moves, `,"watch":{"max_errors_percent":5,"min_healthy_percent":50}`)
	if _, out := s.does(409, "POST", "/cutover", plain, always); out["code"] != "address_in_use" {
		s.h.t.Errorf("an address that is in use: %v", out)
	}
	taken.Close()
	s.does(400, "POST", "/cutover", `{"moves":[{"port":"none","to":"80"}]}`, always)
	s.does(400, "POST", "/cutover", watched, always) // nothing to confirm
	s.does(400, "POST", "/cutover?confirm_within=2m", fmt.Sprintf(moves, `,"watch":{"max_errors_percent":101,"min_healthy_percent":50}`), always)
	state := func(want string) map[string]any {
		s.h.t.Helper()
		_, out := s.does(200, "GET", "/cutover", "")
		if out["state"] != want {
			s.h.t.Fatalf("the cutover is %v, want %s", out["state"], want)
		}
		return out
	}
	s.does(200, "POST", "/cutover?confirm_within=2m", watched, always)
	if out := state("pending"); out["watch"] == nil {
		s.h.t.Errorf("no watch in %v", out)
	}
	s.does(409, "POST", "/cutover", plain, always)
	s.does(200, "DELETE", "/cutover", "")
	state("reverted")
	s.does(409, "DELETE", "/cutover", "")
	s.does(200, "POST", "/cutover", plain, always)
	state("confirmed")
	s.does(409, "POST", "/cutover", plain, always) // it is there
	s.does(200, "DELETE", "/cutover", "")
	testhouse.Eventually(s.h.t, "the address is free", func() bool {
		held, ok := state("returned")["held"].([]any)
		return ok && len(held) == 0
	})
	s.does(200, "PATCH", "/ports/main", `{"active":false}`, always)
}

// orders are certificates by ACME of an authority.
func orders(t *testing.T, seen *answers) {
	at := testhouse.Addresses(t, 1)[0]
	_, text, _ := strings.Cut(at, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	authority := acmetest.Start(t, acmetest.Settings{HTTPPort: port, HTTPSPort: 1})
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	authority.Meddle = func(_ http.ResponseWriter, rq *http.Request) bool {
		if strings.Contains(rq.URL.Path, "order-plz") {
			<-held
		}
		return false
	}
	defer release()
	h := startWith(t, `version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  web: {address: "`+at+`", protocol: http}
acme:
  main: {directory: "`+authority.Directory+`", ca_file: "`+authority.CAFile+`", challenge: http-01, resolvers: ["`+authority.Names+`"], http_port: `+text+`}
proxies:
  main:
    acme: main
    virtual_hosts: [shop.example.com]
    routes: [{fixed_response: {status: 200}}]
`)
	s := h.scene(seen)
	const one = "/orders/shop.example.com"
	eventually := func(what string, holds func() bool) { t.Helper(); testhouse.Eventually(t, what, holds) }
	s.does(200, "GET", "/orders", "")
	s.does(404, "GET", "/orders/none.example.com", "")
	for _, verb := range []string{"order", "renew", "preflight"} {
		s.does(404, "POST", "/orders/none.example.com/"+verb, "{}")
	}
	eventually("the order is under way", func() bool {
		w, _ := s.call("POST", one+"/renew", "{}")
		return w.Code == 409
	})
	release()
	eventually("the certificate has come", func() bool {
		_, out := s.does(200, "GET", one, "")
		return out["state"] == "valid"
	})
	s.does(409, "POST", one+"/order", "{}")
	s.does(200, "POST", one+"/preflight", "{}")
	s.does(204, "POST", "/acme/main/rollover", "{}")
	s.does(404, "POST", "/acme/none/rollover", "{}")
	s.does(202, "POST", one+"/renew", "{}")
	s.does(200, "PATCH", "/acme/main", `{"directory":"https://127.0.0.1:1/directory"}`, always)
	s.does(409, "POST", "/acme/main/rollover", "{}")
	s.does(200, "PATCH", "/proxies/main", `{"virtual_hosts":["new.example.com"]}`, always)
	eventually("the order has failed", func() bool {
		_, out := s.call("GET", "/orders/new.example.com", "")
		return out["state"] == "failed"
	})
	eventually("it is ordered again", func() bool {
		if w, _ := s.call("POST", "/orders/new.example.com/order?dry_run=true", "{}"); w.Code != 200 {
			return false
		}
		w, _ := s.call("POST", "/orders/new.example.com/order", "{}")
		return w.Code == 202
	})
}
