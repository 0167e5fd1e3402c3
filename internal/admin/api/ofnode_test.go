package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/cluster"
	"headgate/internal/exchange"
	"headgate/internal/operator"
	"headgate/internal/query"
	"headgate/internal/store"
	"headgate/internal/store/local"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// engine is a store in memory that machines share.
type engine struct{ *memory.Store }

// Close leaves the engine to the other machines.
func (engine) Close() error { return nil }

// group is two machines that share a store and query each other: a, whose API is used, and b.
type group struct {
	*house
	b      *house
	silent *atomic.Bool // b does not answer
}

// startGroup starts two machines. Nothing of b but its state is served.
func startGroup(t *testing.T) *group {
	t.Helper()
	e := engine{memory.New()}
	share := func(files *local.Store) (store.Store, error) {
		return cluster.Open(context.Background(), cluster.Options{Copy: files, Engine: e, Name: "memory"})
	}
	g := &group{house: &house{t: t, node: "a", share: share}, b: &house{t: t, node: "b", share: share}, silent: &atomic.Bool{}}
	g.start(t, mainConfig)
	g.b.ring = recent.New(recent.Config{})
	g.b.controlOf(t, mainConfig)
	g.b.api = New(Options{Control: g.b.c, Operators: g.ops, Recent: func() *recent.Ring { return g.b.ring }, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})

	g.api.Peers = g.c.Peers()
	g.b.c.Peers().Handle(NodeQuestion, func(ctx context.Context, from string, data []byte) ([]byte, error) {
		if g.silent.Load() {
			<-ctx.Done()
		}
		return g.b.api.AnswerNode(ctx, from, data)
	})
	testhouse.Eventually(t, "a knows b", func() bool {
		nodes, err := store.Nodes(t.Context(), g.c.Store())
		return err == nil && len(nodes) == 2
	})
	return g
}

// served records a request that a machine has served.
func (h *house) served(path string) {
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Peer: "192.0.2.7"}, nil)
	ex.Request.Method, ex.Request.Host, ex.Request.Path, ex.Response.Status = "GET", "shop.example.com", path, 200
	ex.Place = &exchange.Place{Port: "main", Proxy: "main", Route: "/"}
	ex.Times.Start = exchange.Now()
	ex.Times.End = ex.Times.Start
	h.ring.Record(ex)
}

// paths returns the paths of a list of requests.
func paths(out map[string]any) string {
	var all []string
	items, _ := out["items"].([]any)
	for _, item := range items {
		all = append(all, fmt.Sprint(item.(map[string]any)["path"]))
	}
	return strings.Join(all, " ")
}

func TestAMachineShowsTheLogOfAnother(t *testing.T) {
	g := startGroup(t)
	g.served("/of-a")
	for _, path := range []string{"/1", "/2", "/3"} {
		g.b.served(path)
	}
	for query, want := range map[string]string{"": "/of-a", "?node=": "/of-a", "?node=a": "/of-a", "?node=b": "/3 /2 /1", "?node=b&path=/2": "/2"} {
		if _, out := g.does("GET", "/logs/access"+query, "", 200, "", "as: viewer"); paths(out) != want {
			t.Errorf("%q: got %q, want %q", query, paths(out), want)
		}
	}
	_, out := g.does("GET", "/logs/access?node=b&limit=2", "", 200, "", "as: viewer")
	if paths(out) != "/3 /2" {
		t.Errorf("the first page: %v", out)
	}
	if _, out := g.does("GET", "/logs/access?node=b&limit=2&cursor="+fmt.Sprint(out["next"]), "", 200, "", "as: viewer"); paths(out) != "/1" {
		t.Errorf("the second page: %v", out)
	}
	// A refusal is that of the other machine, with its place.
	_, out = g.does("GET", "/logs/access?node=b&status=x", "", 400, "invalid", "as: viewer")
	if out["parameter"] != "status" || out["remedy"] == "" {
		t.Errorf("got %v", out)
	}
}

func TestAMachineShowsTheStateOfAnother(t *testing.T) {
	g := startGroup(t)
	port := fmt.Sprintf(`{"name":"only-b","address":%q,"protocol":"http","nodes":["b"]}`, testhouse.Addresses(t, 1)[0])
	g.does("POST", "/ports", port, 201, "", "as: admin", always)
	has := func(query string) string {
		_, out := g.does("GET", "/status"+query, "", 200, "", "as: viewer")
		return fmt.Sprint(out["ports"])
	}
	testhouse.Eventually(t, "b listens", func() bool { return strings.Contains(has("?node=b"), "listening") })
	if text := has("?node=a"); strings.Contains(text, "listening") {
		t.Errorf("the ports of a: %s", text)
	}
	for _, path := range []string{"/summary", "/series?period=15m", "/discovery", "/status?proxy=main"} {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		_, here := g.does("GET", path, "", 200, "", "as: viewer")
		_, there := g.does("GET", path+sign+"node=b", "", 200, "", "as: viewer")
		for name := range here {
			if _, ok := there[name]; !ok {
				t.Errorf("%s of b has no %s", path, name)
			}
		}
	}
	g.does("GET", "/series?proxy=none&node=b", "", 404, "not_found", "as: viewer")
}

func TestAMachineThatDoesNotAnswerIsReported(t *testing.T) {
	g := startGroup(t)
	_, out := g.does("GET", "/status?node=c", "", 404, "not_found", "as: viewer")
	if out["parameter"] != "node" || !strings.Contains(fmt.Sprint(out["detail"]), "the machines are a, b") {
		t.Errorf("got %v", out)
	}
	g.silent.Store(true)
	began := time.Now()
	_, out = g.does("GET", "/status?node=b", "", 504, "node_away", "as: viewer")
	if took := time.Since(began); took < nodeTimeout || took > nodeTimeout+testhouse.Patience {
		t.Errorf("answered after %v", took)
	}
	text := fmt.Sprint(out["detail"], out["remedy"])
	for _, want := range []string{"machine b", "3s", "last published its state at " + time.Now().UTC().Format("2006-01-02T"), "headgate node list"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q has no %q", text, want)
		}
	}
	g.does("GET", "/logs/access/stream?node=b", "", 504, "node_away", "as: viewer") // before the stream begins

	if _, err := g.c.Store().Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixNode + "c", Value: []byte(`{"version":"1.0.0","stopped":true}`)}}}); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "a knows c", func() bool {
		_, err := g.c.Node(t.Context(), "c")
		return err == nil
	})
	_, out = g.does("GET", "/status?node=c", "", 504, "node_away", "as: viewer") // is not queried
	if !strings.Contains(fmt.Sprint(out["detail"]), "stopped") {
		t.Errorf("got %v", out)
	}
}

func TestTheReasonWhyAMachineCannotBeQueriedIsShown(t *testing.T) {
	g := startGroup(t)
	for _, c := range []struct {
		err    error
		status int
		code   string
		text   string
	}{
		{query.ErrUnknown, 503, "unavailable", "runs headgate"},
		{query.ErrBusy, 503, operator.CodeOverloaded, "too many queries"},
		{fmt.Errorf("%w: connection refused", store.ErrUnavailable), 503, "unavailable", "connection refused"},
		{&query.Failure{Text: "broken"}, 503, "unavailable", "broken"},
	} {
		g.api.Peers = fixedAnswer{err: c.err}
		_, out := g.does("GET", "/summary?node=b", "", c.status, c.code, "as: viewer")
		if !strings.Contains(fmt.Sprint(out["detail"]), c.text) || out["remedy"] == nil {
			t.Errorf("%v: got %v", c.err, out)
		}
	}
}

// fixedAnswer is another machine that always answers the same.
type fixedAnswer struct {
	data []byte
	err  error
}

func (a fixedAnswer) QueryNodes(_ context.Context, nodes []string, _ string, _ []byte) map[string]query.Answer {
	return map[string]query.Answer{nodes[0]: {Data: a.data, Err: a.err}}
}

// TestAnswersOfOtherMachinesAreNotTrusted sends what no headgate answers.
func TestAnswersOfOtherMachinesAreNotTrusted(t *testing.T) {
	g := startGroup(t)
	pack := func(r nodeReply, body string) []byte {
		r.body = []byte(body)
		out, err := New(Options{}).pack(&r)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	named := func(node string, r nodeReply, body string) []byte {
		line, packed, _ := strings.Cut(string(pack(r, body)), "\n")
		return []byte(strings.Replace(line, `"node":""`, `"node":"`+node+`"`, 1) + "\n" + packed)
	}
	ok := nodeReply{Status: 200}
	large := named("b", ok, `"`+strings.Repeat("x", maxNodeBody-2)+`"`)
	for name, data := range map[string][]byte{
		"nothing":         {},
		"no body":         []byte(`{"node":"b","status":200}` + "\n"),
		"another machine": named("c", ok, `{}`),
		"no JSON":         named("b", ok, `{"items":[`),
		"a script":        named("b", ok, `<script>alert(1)</script>`),
		"cut":             large[:len(large)-20],
		"a bad problem":   named("b", nodeReply{Status: 403}, `[]`),
	} {
		g.api.Peers = fixedAnswer{data: data}
		_, out := g.does("GET", "/summary?node=b", "", 503, "unavailable", "as: viewer")
		if out["remedy"] == nil {
			t.Errorf("%s: got %v", name, out)
		}
	}
	// A problem has one of our codes and texts of limited length; more of it is not shown.
	g.api.Peers = fixedAnswer{data: named("b", nodeReply{Status: 401}, `{"code":"none_of_ours","detail":"`+strings.Repeat("y", 5000)+`","status":200,"grant":"all"}`)}
	_, out := g.does("GET", "/summary?node=b", "", 500, "internal", "as: viewer")
	if len(fmt.Sprint(out["detail"])) > maxDetail+10 || out["grant"] != nil {
		t.Errorf("got %v", out)
	}
	g.api.Peers = fixedAnswer{data: large}
	if rs, err := g.client.Do(g.request("GET", "/summary?node=b")); err != nil || rs.StatusCode != 200 {
		t.Errorf("an answer of the largest size: %v, %v", rs, err)
	} else {
		rs.Body.Close()
	}
}

// TestAnOperatorSeesNoMoreOnAnotherMachine queries a machine as other machines could, for rows
// and roles that an API never asks for.
func TestAnOperatorSeesNoMoreOnAnotherMachine(t *testing.T) {
	g := startGroup(t)
	question := func(q nodeQuestion) (int, map[string]any) {
		t.Helper()
		data, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		packed, err := g.b.api.AnswerNode(t.Context(), "a", data)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := readReply(packed)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]any{}
		if err := json.Unmarshal(reply.body, &out); err != nil {
			t.Fatal(err)
		}
		return reply.Status, out
	}
	shown := 0
	for _, r := range g.api.rows {
		for _, path := range []string{r.path, Prefix + r.path, r.path + "/", "/status/.." + r.path, strings.ToUpper(r.path), r.path + "?x=1"} {
			status, out := question(nodeQuestion{Path: path, Who: "ann", Role: operator.Admin})
			if r.ofNode && path == r.path && path != "" {
				shown++
				if status != 200 {
					t.Errorf("%s: %d %v", path, status, out)
				}
			} else if status != 404 {
				t.Errorf("%s %q is answered: %d %v", r.method, path, status, out)
			}
		}
	}
	if shown != 6 {
		t.Errorf("%d rows are shown to other machines, want 6: a new one must be read-only and without secrets", shown)
	}
	for _, r := range g.api.rows {
		if r.ofNode && (r.method != http.MethodGet || r.access != viewer || r.in != nil || strings.Contains(r.path, "{")) {
			t.Errorf("%s %s must not be shown to other machines", r.method, r.path)
		}
	}
	for _, role := range []operator.Role{"", "root", "ADMIN"} {
		if status, out := question(nodeQuestion{Path: "/status", Who: "eve", Role: role}); status != 403 {
			t.Errorf("role %q: %d %v", role, status, out)
		}
	}
	scoped := nodeQuestion{Path: "/logs/access", Who: "token:ci", Role: operator.Viewer, Scopes: []string{"status"}}
	if status, out := question(scoped); status != 403 {
		t.Errorf("a token without the scope: %d %v", status, out)
	}
	scoped.Path = "/status"
	if status, out := question(scoped); status != 200 {
		t.Errorf("a token with the scope: %d %v", status, out)
	}
	for _, parameters := range []string{"node=a", "node=b", "secrets=true", "limit=-1", "proxy=a&proxy=b"} {
		if status, out := question(nodeQuestion{Path: "/status", Query: parameters, Who: "ann", Role: operator.Admin}); status != 400 {
			t.Errorf("%s: %d %v", parameters, status, out)
		}
	}
	if _, err := g.b.api.AnswerNode(t.Context(), "a", []byte("{")); err == nil {
		t.Error("half a question is answered")
	}

	// Of the machine that asks: a viewer sees what a viewer may see, and no other method passes.
	g.does("GET", "/status?node=b", "", 401, "signed_out")
	g.does("GET", "/status?node=b", "", 403, "forbidden", "as: narrow")
	g.does("GET", "/audit?node=b", "", 403, "forbidden", "as: viewer")
	g.does("GET", "/audit?node=b", "", 400, "unknown_parameter", "as: admin")
	g.does("GET", "/config?node=b", "", 400, "unknown_parameter", "as: admin")
	g.does("DELETE", "/status?node=b", "", 405, "method_not_allowed", "as: admin")
	g.does("GET", "/status?node="+url.QueryEscape("../a"), "", 404, "not_found", "as: viewer")
	g.does("GET", "/status?node=b&node=a", "", 400, "invalid", "as: viewer")
}

func TestALargeAnswerHasFewerRowsAndTheCursorOfTheRest(t *testing.T) {
	g := startGroup(t)
	size, calls := 40<<10, 0
	for _, r := range g.b.api.rows {
		if r.path != "/logs/access" {
			continue
		}
		r.handle = func(c *call) (any, error) {
			calls++
			n := c.number("limit", defaultPage, maxPage)
			return page{Items: make([]struct{ Text paddedText }, n), Next: fmt.Sprint("after-", n)}, nil
		}
	}
	padding = strings.Repeat("x", size)
	defer func() { padding = "" }()
	_, out := g.does("GET", "/logs/access?node=b&limit=1000", "", 200, "", "as: viewer")
	items, _ := out["items"].([]any)
	if len(items) != 125 || out["next"] != "after-125" || calls != 4 {
		t.Errorf("got %d rows, next %v, after %d calls", len(items), out["next"], calls)
	}
	padding = strings.Repeat("x", maxNodeBody)
	_, out = g.does("GET", "/logs/access?node=b&limit=1", "", 503, "unavailable", "as: viewer")
	if !strings.Contains(fmt.Sprint(out["detail"]), "too large") {
		t.Errorf("got %v", out)
	}
}

// paddedText is written as padding.
type paddedText struct{}

var padding string

func (paddedText) MarshalText() ([]byte, error) { return []byte(padding), nil }

func TestTheLogOfAnotherMachineIsFollowed(t *testing.T) {
	g := startGroup(t)
	g.b.served("/before")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	rs, err := g.client.Do(g.request("GET", "/logs/access/stream?node=b&path=/x").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	const each = 12
	go func() {
		for i := range each {
			g.served("/x-of-a")
			g.b.served(fmt.Sprint("/x", i))
			g.b.served("/not-this")
			select {
			case <-time.After(200 * time.Millisecond): // over several questions
			case <-ctx.Done():
			}
		}
	}()
	var got []string
	lines := bufio.NewScanner(rs.Body)
	for len(got) < each && lines.Scan() {
		var q recent.Request
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &q) == nil {
			got = append(got, q.Path)
		}
	}
	for i, path := range got {
		if path != fmt.Sprint("/x", i) {
			t.Fatalf("got %v, want /x0 to /x%d, each once", got, each-1)
		}
	}
	// A machine that stops answering ends the stream.
	g.silent.Store(true)
	for lines.Scan() {
	}
	if err := lines.Err(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ends with %v", err)
	}
}

func TestTheTrafficOfAllMachinesIsListedWithOneQuestion(t *testing.T) {
	g := startGroup(t)
	answered := 0
	for _, r := range g.b.api.rows {
		if r.path == "/series" {
			r.handle = func(c *call) (any, error) {
				answered++
				if c.text("period") != trafficPeriod {
					t.Errorf("the period is %q", c.text("period"))
				}
				slow, fast := 80.5, 3.0
				return seriesBody{Step: 10, Points: []seriesPoint{{Requests: 100, ClientErrors: 5, P99: &slow}, {Requests: 300, ServerErrors: 10, P99: &fast}}}, nil
			}
		}
	}
	if _, err := g.c.Store().Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.PrefixNode + "c", Value: []byte(`{"version":"1.0.0","stopped":true}`)}}}); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "a knows c", func() bool {
		_, err := g.c.Node(t.Context(), "c")
		return err == nil
	})
	list := func() map[string]map[string]any {
		all := map[string]map[string]any{}
		_, out := g.does("GET", "/traffic", "", 200, "", "as: viewer")
		for _, item := range out["items"].([]any) {
			all[fmt.Sprint(item.(map[string]any)["node"])] = item.(map[string]any)
		}
		return all
	}
	all := list()
	if b := all["b"]; b["requests_per_second"] != 20.0 || b["errors_4xx_per_second"] != 0.25 || b["errors_5xx_per_second"] != 0.5 || b["p99_ms"] != 80.5 || b["problem"] != nil {
		t.Errorf("b: %v", b)
	}
	if a := all["a"]; a["problem"] != nil || a["requests_per_second"] != 0.0 {
		t.Errorf("a: %v", a)
	}
	if c := all["c"]; !strings.Contains(fmt.Sprint(c["problem"]), "stopped") || len(all) != 3 {
		t.Errorf("c: %v, of %d machines", c, len(all))
	}
	for range 5 {
		list()
	}
	if answered != 1 {
		t.Errorf("b was queried %d times within %v", answered, trafficKept)
	}
	g.api.trafficNow.at = time.Time{}
	g.silent.Store(true)
	if b := list()["b"]; !strings.Contains(fmt.Sprint(b["problem"]), "did not respond within 3s") {
		t.Errorf("b: %v", b)
	}
	g.does("GET", "/traffic", "", 403, "forbidden", "as: narrow")
}
