package docker

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/discovery/docker/dockertest"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// follow starts a source over an engine, as a process on the engine's machine.
func follow(t *testing.T, endpoint string, settings *config.Docker) *Source {
	t.Helper()
	return followFrom(t, endpoint, settings, here{reaches: true})
}

func followFrom(t *testing.T, endpoint string, settings *config.Docker, h here) *Source {
	t.Helper()
	if settings == nil {
		settings = &config.Docker{}
	}
	settings.Endpoint = endpoint
	s, err := open("local", settings, discovery.Environment{}, h)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// story returns a snapshot in short lines: the state, the objects with their servers,
// the issues.
func story(s *discovery.Snapshot) string {
	var lines []string
	for _, o := range s.Objects {
		var fields, servers []string
		for _, l := range o.Labels {
			fields = append(fields, l.Path+"="+l.Value)
		}
		slices.Sort(fields)
		for _, sv := range o.Servers {
			text := sv.Address
			for _, l := range sv.Labels {
				text += " " + l.Path + "=" + l.Value
			}
			servers = append(servers, text)
		}
		slices.Sort(servers)
		lines = append(lines, fmt.Sprintf("%s %s: %s -> %s", o.Kind, o.Name, strings.Join(fields, " "), strings.Join(servers, ", ")))
	}
	for _, i := range s.Issues {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", i.Code, i.Container, i.Label)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// becomes waits until a source tells a story.
func becomes(t *testing.T, s *Source, want ...string) *discovery.Snapshot {
	t.Helper()
	slices.Sort(want)
	text := strings.Join(want, "\n")
	var got *discovery.Snapshot
	for until := time.Now().Add(testhouse.Patience); time.Now().Before(until); {
		if got = s.Snapshot(); got.Known && story(got) == text {
			return got
		}
		select {
		case <-s.Changed():
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("not in time:\n%s\ngot (%s, %s):\n%s", text, got.State, got.Reason, story(got))
	return nil
}

// waitForState waits until a source is in a state, and returns what it says of it.
func waitForState(t *testing.T, s *Source, state discovery.State) *discovery.Snapshot {
	t.Helper()
	testhouse.Eventually(t, "the state "+string(state), func() bool { return s.Snapshot().State == state })
	return s.Snapshot()
}

func web(name, address string, labels ...string) *dockertest.Container {
	c := &dockertest.Container{Name: name, Labels: map[string]string{}, Ports: []dockertest.Port{{Private: 80}}}
	if address != "" {
		c.Networks = map[string]string{"web": address}
	}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		c.Labels[key] = value
	}
	return c
}

func TestLifeOfAContainer(t *testing.T) {
	for _, form := range []struct {
		name  string
		speak func(*dockertest.Engine)
	}{
		{"api 1.40", func(e *dockertest.Engine) { e.SetVersions("1.12", "1.40") }},
		{"api 1.44", func(e *dockertest.Engine) { e.SetVersions("1.44", "1.48") }},
		{"api 1.52", func(e *dockertest.Engine) { e.SetVersions("1.52", "1.60") }},
		{"api of later", func(e *dockertest.Engine) { e.SetVersions("1.70", "1.80") }},
		{"podman", (*dockertest.Engine).Podman},
	} {
		t.Run(form.name, func(t *testing.T) {
			t.Parallel()
			e := dockertest.New(t)
			form.speak(e)
			before := e.Run(web("before", "172.18.0.2", "headgate.host=before.example"))
			s := follow(t, e.Endpoint(), nil)
			const one = "proxies before: virtual_hosts=before.example -> http://172.18.0.2:80"
			becomes(t, s, one)

			after := e.Run(web("after", "172.18.0.3", "headgate.host=after.example", "headgate.port=8080"))
			const two = "proxies after: virtual_hosts=after.example -> http://172.18.0.3:8080"
			becomes(t, s, one, two)

			e.Change(after, "pause", func() { after.State = "paused" })
			becomes(t, s, one, "proxies after: virtual_hosts=after.example -> ", "not_ready after")
			e.Change(after, "unpause", func() { after.State = "" })
			becomes(t, s, one, two)

			e.Change(after, "rename", func() { after.Name = "later"; after.Created = after.Created.Add(time.Second) })
			becomes(t, s, one, "proxies later: virtual_hosts=after.example -> http://172.18.0.3:8080")

			e.Attach(after, "second", "172.19.0.3")
			becomes(t, s, one, "proxies later: virtual_hosts=after.example -> ", "several_networks later headgate.network")
			e.Attach(after, "web", "")
			becomes(t, s, one, "proxies later: virtual_hosts=after.example -> http://172.19.0.3:8080")

			e.Die(before)
			becomes(t, s, "proxies later: virtual_hosts=after.example -> http://172.19.0.3:8080")
			e.Down()
			if got := waitForState(t, s, discovery.Failed); story(got) != "proxies later: virtual_hosts=after.example -> http://172.19.0.3:8080" {
				t.Errorf("while the engine is away:\n%s", story(got))
			}
			e.Up()
			waitForState(t, s, discovery.Running)
			e.Die(after)
			becomes(t, s)
			if n := e.Calls("/containers/" + after.ID() + "/json"); n != 0 {
				t.Errorf("a container was inspected")
			}
		})
	}
}

// TestAListBehindItsEvent has an engine tell of what happened before its list has it, as
// Docker does while its disk is busy.
func TestAListBehindItsEvent(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	c := e.Run(web("shop", "172.18.0.2", "headgate.host=shop.example"))
	s := follow(t, e.Endpoint(), nil)
	becomes(t, s, "proxies shop: virtual_hosts=shop.example -> http://172.18.0.2:80")
	asked := e.Calls("/containers/json")
	e.Change(c, "pause", func() {})
	testhouse.Eventually(t, "the containers are listed after the event", func() bool { return e.Calls("/containers/json") > asked })
	e.Change(c, "", func() { c.State = "paused" })
	becomes(t, s, "proxies shop: virtual_hosts=shop.example -> ", "not_ready shop")
}

func TestAContainerThatEndsIsReplacedBeforeItIsGone(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	replica := func(n int) *dockertest.Container {
		return web(fmt.Sprintf("shop-web-%d", n), fmt.Sprintf("172.18.0.%d", n), "headgate.host=shop.example", composeProject+"=shop", composeService+"=web")
	}
	const of = "proxies shop-web: virtual_hosts=shop.example -> "
	s := follow(t, e.Endpoint(), nil)
	one := e.Run(replica(1))
	becomes(t, s, of+"http://172.18.0.1:80")
	e.Kill(one, "15")
	e.Kill(one, "1")
	becomes(t, s, of+"http://172.18.0.1:80") // better than nobody
	two := e.Run(replica(2))
	becomes(t, s, of+"http://172.18.0.2:80")
	e.Die(one)
	becomes(t, s, of+"http://172.18.0.2:80")

	e.Kill(two, "1") // a reload
	three := e.Run(replica(3))
	becomes(t, s, of+"http://172.18.0.2:80, http://172.18.0.3:80")
	e.Kill(two, "SIGTERM")
	becomes(t, s, of+"http://172.18.0.3:80")
	e.Change(two, "start", func() {}) // it was restarted
	becomes(t, s, of+"http://172.18.0.2:80, http://172.18.0.3:80")

	var more []*dockertest.Container
	for n := 4; n <= 21; n++ {
		more = append(more, e.Run(replica(n)))
	}
	testhouse.Eventually(t, "20 servers", func() bool { o := s.Snapshot().Objects; return len(o) == 1 && len(o[0].Servers) == 20 })
	for _, c := range more {
		e.Die(c)
	}
	e.Die(two)
	becomes(t, s, of+"http://172.18.0.3:80")
	odd := replica(30)
	odd.Created = time.Now().Add(time.Hour)
	odd.Labels["headgate.path"] = "/x"
	e.Run(odd)
	becomes(t, s, of+"http://172.18.0.3:80", "replicas_differ shop-web-30")
	e.Kill(three, "15")
	becomes(t, s, "proxies shop-web: routes.0.path=/x virtual_hosts=shop.example -> http://172.18.0.30:80", "replicas_differ shop-web-3")
	oneOff := replica(31)
	oneOff.Labels[composeOneOff] = "True"
	e.Run(oneOff)
	e.Die(three)
	becomes(t, s, "proxies shop-web: routes.0.path=/x virtual_hosts=shop.example -> http://172.18.0.30:80")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.41", "1.52"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			e := dockertest.New(t)
			e.SetVersions("1.40", version)
			c := web("app", "172.18.0.2", "headgate.host=a.example")
			c.Health = "starting"
			e.Run(c)
			s := follow(t, e.Endpoint(), nil)
			const served = "proxies app: virtual_hosts=a.example -> http://172.18.0.2:80"
			const unserved = "proxies app: virtual_hosts=a.example -> "
			becomes(t, s, unserved, "not_ready app")
			e.Change(c, "health_status: healthy", func() { c.Health = "healthy" })
			becomes(t, s, served)
			e.Change(c, "health_status: unhealthy", func() { c.Health = "unhealthy" })
			becomes(t, s, unserved, "unhealthy app")
			e.Change(c, "start", func() { c.Health, c.Up = "starting", "About a minute" })
			got := becomes(t, s, served, "not_ready app")
			if !strings.Contains(got.Issues[0].Message, "all the same") {
				t.Errorf("message: %s", got.Issues[0].Message)
			}
		})
	}
}

// TestBadEngines holds that the state says in words what is wrong, and that what was
// found before stays.
func TestBadEngines(t *testing.T) {
	t.Parallel()
	text := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Del("Api-Version")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	endless := func(w http.ResponseWriter, rq *http.Request) {
		fmt.Fprint(w, `[{"Id":"`)
		for rq.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat("x", 64<<10))); err != nil {
				return
			}
		}
	}
	hangUp := func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }
	for _, tt := range []struct {
		name, call   string
		answer       http.HandlerFunc
		reason, hint string
	}{
		{"garbage", "/containers/json", text(200, "\x00\xff\x01garbage"), "not JSON", "endpoint leads to Docker"},
		{"HTML", "/containers/json", text(200, "<html><body>welcome</body></html>"), "not JSON", "endpoint leads to Docker"},
		{"HTML at ping", "/_ping", text(200, "<html><body>welcome</body></html>"), "does not speak as an engine", "endpoint leads to Docker"},
		{"half JSON", "/containers/json", text(200, `[{"Id":"a","Names":["/a"]},{"Id":`), "ends too early", "endpoint leads to Docker"},
		{"nothing", "/containers/json", text(200, ""), "empty", "endpoint leads to Docker"},
		{"null", "/containers/json", text(200, "null"), "not JSON", "endpoint leads to Docker"},
		{"endless", "/containers/json", endless, "larger than", "endpoint leads to Docker"},
		{"hangs up", "/containers/json", hangUp, "EOF", ""},
		{"403", "/containers/json", text(403, "<html>no</html>"), "/containers/json: 403 Forbidden", "CONTAINERS=1"},
		{"403 for events", "/events", text(403, ""), "/events: 403 Forbidden; containers are listed every 10s instead", "EVENTS=1"},
		{"events are garbage", "/events", text(200, "hello"), "/events: the answer is not JSON", "endpoint leads to Docker"},
		{"broken", "/containers/json", text(500, `{"message":"out of order\nreally"}`), "out of order really", "log of the engine"},
		{"elsewhere", "/containers/json", func(w http.ResponseWriter, rq *http.Request) {
			http.Redirect(w, rq, "http://192.0.2.1/", http.StatusFound)
		}, "302", "endpoint leads to Docker"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := dockertest.New(t)
			e.Run(web("app", "172.18.0.2", "headgate.host=a.example"))
			s := follow(t, e.Endpoint(), nil)
			const found = "proxies app: virtual_hosts=a.example -> http://172.18.0.2:80"
			becomes(t, s, found)
			e.Answer(tt.call, tt.answer)
			e.Cut()
			got := waitForState(t, s, discovery.Failed)
			if !strings.Contains(got.Reason, tt.reason) || !strings.Contains(got.Hint, tt.hint) || tt.hint == "" && got.Hint != "" {
				t.Errorf("reason %q, hint %q; want %q and %q in them", got.Reason, got.Hint, tt.reason, tt.hint)
			}
			if strings.ContainsAny(got.Reason, "\n\x00") || len(got.Reason) > 1000 {
				t.Errorf("the reason is not a line: %q", got.Reason)
			}
			if story(got) != found {
				t.Errorf("what was found before is gone: %s", story(got))
			}
			e.Answer(tt.call, nil)
			e.Cut()
			if tt.call != "/events" { // those are asked for again after a minute
				waitForState(t, s, discovery.Running)
			}
		})
	}
}

// TestPingIsNotNeeded holds that a socket proxy may refuse /_ping.
func TestPingIsNotNeeded(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	e.Answer("/_ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) })
	e.Run(web("app", "172.18.0.2", "headgate.host=a.example"))
	s := follow(t, e.Endpoint(), nil)
	becomes(t, s, "proxies app: virtual_hosts=a.example -> http://172.18.0.2:80")
	if p := e.Paths(); !slices.Contains(p, "/containers/json") {
		t.Errorf("asked for %q", p)
	}
}

func TestWithoutEvents(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	e.Answer("/events", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) })
	e.Run(web("app", "172.18.0.2", "headgate.host=a.example"))
	s := follow(t, e.Endpoint(), nil)
	becomes(t, s, "proxies app: virtual_hosts=a.example -> http://172.18.0.2:80")
	e.Run(web("more", "172.18.0.3", "headgate.host=b.example"))
	becomes(t, s, "proxies app: virtual_hosts=a.example -> http://172.18.0.2:80", "proxies more: virtual_hosts=b.example -> http://172.18.0.3:80")
}

// TestStreamThatIsCutAllTheTime holds that a stream that ends is normal.
func TestStreamThatIsCutAllTheTime(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	s := follow(t, e.Endpoint(), nil)
	for n := range 5 {
		c := e.Run(web("app", fmt.Sprintf("172.18.0.%d", 2+n), "headgate.host=a.example"))
		got := becomes(t, s, fmt.Sprintf("proxies app: virtual_hosts=a.example -> http://172.18.0.%d:80", 2+n))
		if got.State != discovery.Running {
			t.Errorf("the state is %s: %s", got.State, got.Reason)
		}
		e.Cut()
		e.Die(c)
		becomes(t, s)
	}
}

func TestEndpointsThatCannotBeReached(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "hg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	for _, tt := range []struct{ endpoint, reason, hint string }{
		{"unix://" + dir + "/none.sock", "there is no socket " + dir + "/none.sock", "mount the folder " + dir},
		{"unix://" + stale, "connection refused", "mount the folder " + dir + " and not the socket"},
		{"tcp://" + free.Addr().String(), "connection refused", "set another endpoint"},
	} {
		s := follow(t, tt.endpoint, nil)
		got := waitForState(t, s, discovery.Failed)
		if !strings.Contains(got.Reason, tt.reason) || !strings.Contains(got.Hint, tt.hint) || got.Known {
			t.Errorf("%s: known %v, reason %q, hint %q", tt.endpoint, got.Known, got.Reason, got.Hint)
		}
	}
}

func TestSocketOfAnotherOwner(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "docker.sock")
	if err := os.WriteFile(file, nil, 0o660); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o660); err != nil {
		t.Fatal(err)
	}
	e, err := newEngine("unix://"+file, nil)
	if err != nil {
		t.Fatal(err)
	}
	reason, hint := e.explain(&net.OpError{Op: "dial", Err: os.ErrPermission})
	for _, want := range []string{"permission denied: " + file + " belongs to user ", " and group ", "(mode 0660), and headgate runs as user "} {
		if !strings.Contains(reason, want) {
			t.Errorf("reason %q has not %q", reason, want)
		}
	}
	if !strings.Contains(hint, "group_add") {
		t.Errorf("hint %q", hint)
	}
}

// TestOneBadContainerLeavesOthers holds that what is wrong with a container concerns
// that one alone.
func TestOneBadContainerLeavesOthers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", maxValue+1)
	many := web("bad", "172.18.0.9", "headgate.host=bad.example")
	for n := range 10_000 {
		many.Labels[fmt.Sprintf("headgate.http.a%d.virtual_hosts", n)] = "x.example"
	}
	long := web("bad", "172.18.0.9", "headgate.host=bad.example")
	long.Labels["headgate.http."+strings.Repeat("n", 1<<20)] = "x"
	huge := web("bad", "172.18.0.9", "headgate.host=bad.example", "other="+strings.Repeat("x", maxContainer))
	for _, tt := range []struct {
		name  string
		c     *dockertest.Container
		wants []string
	}{
		{"a label of more than the maximum", web("bad", "172.18.0.9", "headgate.host="+large), []string{"too_many bad headgate.host"}},
		{"10 000 labels", many, []string{"too_many bad"}},
		{"a long name", long, []string{"too_many bad headgate.http." + strings.Repeat("n", 46) + "…"}},
		{"labels of 4 MiB", huge, []string{"too_many bad"}},
		{"labels of 1 MB that are not ours", web("bad", "172.18.0.9", "headgate.host=b.example", "other="+strings.Repeat("x", 1<<20)), []string{"proxies bad: virtual_hosts=b.example -> http://172.18.0.9:80"}},
		{"no Id", &dockertest.Container{Name: "bad", Raw: `{"Names":["/bad"]}`}, []string{"too_many bad"}},
		{"of another shape", &dockertest.Container{Name: "bad", Raw: `{"Id":7,"Names":["/bad"]}`}, []string{"too_many bad"}},
		{"null everywhere", &dockertest.Container{Name: "bad", Raw: `{"Id":"x","Names":null,"Labels":null,"Ports":null,"NetworkSettings":null,"HostConfig":null,"Health":null,"State":null}`}, nil},
		{"null in networks", &dockertest.Container{Name: "bad", Raw: `{"Id":"x","Names":["/bad"],"Labels":{"headgate.host":"x.example","headgate.port":"1"},"NetworkSettings":{"Networks":{"a":null}},"State":"running"}`}, []string{"proxies bad: virtual_hosts=x.example -> ", "no_shared_network bad"}},
		{"enable", web("bad", "172.18.0.9", "headgate.host=b.example", "headgate.enable=yes"), []string{"bad_value bad headgate.enable"}},
		{"unknown", web("bad", "172.18.0.9", "headgate.host=b.example", "headgate.ip_filter.allow=10.0.0.0/8"), []string{"unknown_label bad headgate.ip_filter.allow"}},
		{"twice", web("bad", "172.18.0.9", "headgate.host=b.example", "Headgate.Host=c.example"), []string{"bad_value bad headgate.host"}},
		{"port", web("bad", "172.18.0.9", "headgate.host=b.example", "headgate.port=http"), []string{"bad_value bad headgate.port", "proxies bad: virtual_hosts=b.example -> "}},
		{"port 0", web("bad", "172.18.0.9", "headgate.host=b.example", "headgate.port=0"), []string{"bad_value bad headgate.port", "proxies bad: virtual_hosts=b.example -> "}},
		{"scheme", web("bad", "172.18.0.9", "headgate.host=b.example", "headgate.scheme=unix"), []string{"bad_value bad headgate.scheme", "proxies bad: virtual_hosts=b.example -> "}},
		{"base path", web("bad", "172.18.0.9", "headgate.http.b.virtual_hosts=b.example", "headgate.http.b.base_path=@evil.example/"), []string{"bad_value bad headgate.http.b.base_path", "proxies b: virtual_hosts=b.example -> "}},
		{"host", web("bad", "172.18.0.9", "headgate.enable=true"), []string{"no_host bad"}},
		{"host misspelt", web("bad", "172.18.0.9", "headgate.http.b.virtual_host=b.example"), []string{"no_host bad", "proxies b: virtual_host=b.example -> http://172.18.0.9:80"}},
		{"path without host", web("bad", "172.18.0.9", "headgate.http.b.virtual_hosts=b.example", "headgate.path=/x"), []string{"misplaced_labels bad headgate.path", "proxies b: virtual_hosts=b.example -> http://172.18.0.9:80"}},
		{"no field", web("bad", "172.18.0.9", "headgate.http.b=b.example"), []string{"unknown_label bad headgate.http.b"}},
		{"Swarm", web("bad", "172.18.0.9", "headgate.host=b.example", swarmService+"=stack_web"), []string{"misplaced_labels bad", "proxies stack_web: virtual_hosts=b.example -> http://172.18.0.9:80"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := dockertest.New(t)
			e.Run(web("good", "172.18.0.2", "headgate.host=good.example"))
			e.Run(tt.c)
			got := becomes(t, follow(t, e.Endpoint(), nil), append(tt.wants, "proxies good: virtual_hosts=good.example -> http://172.18.0.2:80")...)
			for _, i := range got.Issues {
				if len(i.Message)+len(i.Hint)+len(i.Label) > 2000 || strings.ContainsAny(i.Message+i.Hint+i.Label, "\n\x00") {
					t.Errorf("the issue is no line: %.300q", i)
				}
			}
		})
	}
}

// TestLabels holds how labels are taken apart.
func TestLabels(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		labels []string
		wants  []string
	}{
		{[]string{"HEADGATE.Host=a.example", "headgate.PATH=/x", "headgate.ports=web", "headgate.acme=main", "traefik.enable=true"},
			[]string{"proxies app: acme=main ports=web routes.0.path=/x virtual_hosts=a.example -> http://172.18.0.2:80"}},
		{[]string{"headgate.http.Shop.virtual_hosts=a.example,b.example", "headgate.http.shop.routes.0.path=/", "headgate.http.shop.port=8080", "headgate.http.shop.weight=3",
			"headgate.http.api.virtual_hosts=c.example", "headgate.http.api.base_path=/v2/", "headgate.port=9000", "headgate.http.api.scheme=h2c"},
			[]string{"proxies shop: routes.0.path=/ virtual_hosts=a.example,b.example -> http://172.18.0.2:8080 weight=3", "proxies api: virtual_hosts=c.example -> h2c://172.18.0.2:9000/v2/"}},
		{[]string{"headgate.tcp.db.sni=db.example", "headgate.tcp.db.ports=websecure", "headgate.tcp.db.port=5432", "headgate.udp.dns.address=0.0.0.0:53", "headgate.udp.dns.port=53"},
			[]string{"tcp_proxies db: port=websecure sni=db.example -> 172.18.0.2:5432", "udp_proxies dns: address=0.0.0.0:53 -> 172.18.0.2:53"}},
		{[]string{"headgate.enable=false", "headgate.host=a.example", "headgate.oops=1"}, []string{"unknown_label app headgate.oops"}},
		{[]string{"headgate.enable=FALSE", "headgate.host=a.example"}, nil},
		{[]string{"headgatehost=a.example", "xheadgate.host=a.example"}, nil},
	} {
		e := dockertest.New(t)
		e.Run(web("app", "172.18.0.2", tt.labels...))
		becomes(t, follow(t, e.Endpoint(), nil), tt.wants...)
	}
}

func TestFiltersAreTheEngines(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	e.Run(web("a", "172.18.0.2", "headgate.host=a.example", "stage=production"))
	e.Run(web("b", "172.18.0.3", "headgate.host=b.example", "stage=test"))
	s := follow(t, e.Endpoint(), &config.Docker{Filters: []string{"label=stage=production"}})
	becomes(t, s, "proxies a: virtual_hosts=a.example -> http://172.18.0.2:80")
}

func TestExposedByDefault(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	e.Run(web("quiet", "172.18.0.2"))
	e.Run(web("off", "172.18.0.3", "headgate.enable=false"))
	becomes(t, follow(t, e.Endpoint(), nil))
	becomes(t, follow(t, e.Endpoint(), &config.Docker{ExposedByDefault: true}), "no_host quiet")
}

// TestObjectsStayTheSame holds that what did not change is the same pointer, so that
// nothing is done for it.
func TestObjectsStayTheSame(t *testing.T) {
	t.Parallel()
	e := dockertest.New(t)
	e.Run(web("a", "172.18.0.2", "headgate.host=a.example"))
	s := follow(t, e.Endpoint(), nil)
	first := becomes(t, s, "proxies a: virtual_hosts=a.example -> http://172.18.0.2:80").Objects[0]
	e.Run(web("b", "172.18.0.3", "headgate.host=b.example"))
	got := becomes(t, s, "proxies a: virtual_hosts=a.example -> http://172.18.0.2:80", "proxies b: virtual_hosts=b.example -> http://172.18.0.3:80")
	if !slices.Contains(got.Objects, first) {
		t.Error("the object was made again")
	}
}

// TestJSONOfHealth holds the forms in which health is told.
func TestJSONOfHealth(t *testing.T) {
	for text, want := range map[string]healthStatus{
		`{"Health":{"Status":"unhealthy","FailingStreak":3}}`: unhealthy,
		`{"Health":"healthy"}`:                                healthy,
		`{"Health":{"Status":"none"}}`:                        "",
		`{"Health":[1],"Status":"Up 2 hours (unhealthy)"}`:    unhealthy,
		`{"Status":"Up 2 hours (health: starting)"}`:          starting,
		`{"Status":"Up 2 hours"}`:                             "",
	} {
		c := &container{}
		if err := json.Unmarshal([]byte(text), c); err != nil || c.health() != want {
			t.Errorf("%s: %q, %v; want %q", text, c.health(), err, want)
		}
	}
}
