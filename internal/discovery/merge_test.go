package discovery_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/discovery"
	"headgate/internal/discovery/discoverytest"
	"headgate/internal/plan"
	"headgate/internal/schema"
)

// hand is what operators wrote.
const hand = `
version: 1
ports:
  web: {address: "127.0.0.1:8080", protocol: http}
  other: {address: "127.0.0.1:8081", protocol: http}
  secure: {address: "127.0.0.1:8443", protocol: https}
acme:
  main: {email: a@example.com}
  private: {email: a@example.com}
policies:
  staff: {ip_filter: {allow: [10.0.0.0/8]}}
proxies:
  site:
    virtual_hosts: [www.example.com, "*.kept.example", '~^shop[0-9]+\.example\.net$']
    routes: [{path: /a, fixed_response: {status: 200}}]
  open:
    virtual_hosts: [open.example.com, "*.open.example"]
    share_hosts: true
    routes: [{path: /taken, fixed_response: {status: 200}}]
tcp_proxies:
  db: {port: secure, sni: [db.example.com], servers: [{address: "127.0.0.1:5433"}]}
  plain: {address: "127.0.0.1:5432", servers: [{address: "127.0.0.1:5433"}]}
discovery:
  docker:
    local: {}
`

func load(t testing.TB, text string) *config.Config {
	t.Helper()
	c, _, problems := config.Load("hand.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// merge merges the objects of one provider.
func merge(t testing.TB, text string, objects ...*config.Discovered) *discovery.Merged {
	t.Helper()
	c := load(t, text)
	return discovery.Merge(c, []discovery.Provider{{Name: "local", Bounds: c.Discovery.Docker["local"].Bounds(), Objects: objects}}, nil, nil)
}

// issueLines returns issues in short: "shop-1 conflict proxies shop".
func issueLines(m *discovery.Merged) []string {
	var out []string
	for _, i := range m.Issues {
		out = append(out, fmt.Sprintf("%s %s %s %s", i.Container, i.Code, i.Kind, i.Name))
	}
	return out
}

const server = "http://172.18.0.5:3000"

var proxy = discoverytest.Proxy

func TestWhatLabelsMayNotTake(t *testing.T) {
	administered := strings.Replace(hand, "proxies:\n", `admin: {hosts: [gate.example.com, console.example.org]}
proxies:
  console:
    virtual_hosts: [console.example.org]
    routes: [{fixed_response: {status: 200}}]
`, 1)
	bounded := strings.Replace(hand, "local: {}", `local: {hosts: ["*.apps.example", exact.example], acme: [main], ports: [web], listen: ["127.0.0.1:7000"]}`, 1)
	for _, test := range []struct {
		name   string
		text   string
		object *config.Discovered
		code   discovery.Code // "" is good
		says   string
	}{
		{"a new host", hand, proxy("s", 1, server, "virtual_hosts=new.example"), "", ""},
		{"a host by hand", hand, proxy("s", 1, server, "virtual_hosts=WWW.example.com."), discovery.HostTaken, "label headgate.http.s.virtual_hosts: the host www.example.com is one of proxy site (hand.yaml:13:3)"},
		{"a host by hand, on another port", hand, proxy("s", 1, server, "virtual_hosts=www.example.com", "ports=other", "routes.0.path=/b"), discovery.HostTaken, "share_hosts"},
		{"a host of a wildcard by hand", hand, proxy("s", 1, server, "virtual_hosts=a.kept.example"), discovery.HostTaken, "proxy site"},
		{"two labels below a wildcard", hand, proxy("s", 1, server, "virtual_hosts=a.b.kept.example"), "", ""},
		{"the wildcard itself", hand, proxy("s", 1, server, "virtual_hosts=*.kept.example"), discovery.HostTaken, "proxy site"},
		{"a host of an expression by hand", hand, proxy("s", 1, server, "virtual_hosts=shop7.example.net"), discovery.HostTaken, "proxy site"},
		{"a wildcard over an expression", hand, proxy("s", 1, server, "virtual_hosts=*.example.net"), discovery.HostTaken, "proxy site"},
		{"a wildcard beside an expression", hand, proxy("s", 1, server, "virtual_hosts=*.example.org"), "", ""},
		{"a host beside an expression", hand, proxy("s", 1, server, "virtual_hosts=shopx.example.net"), "", ""},
		{"a shared host", hand, proxy("s", 1, server, "virtual_hosts=open.example.com", "routes.0.path=/free"), "", ""},
		{"a path of a shared host", hand, proxy("s", 1, server, "virtual_hosts=open.example.com", "routes.0.path=/taken/"), discovery.HostTaken, "has the path /taken of open.example.com"},
		{"below a shared wildcard", hand, proxy("s", 1, server, "virtual_hosts=x.open.example", "routes.0.path=/taken"), "", ""},
		{"names of a TCP proxy by hand", hand, proxy("s", 1, server, "virtual_hosts=db.example.com"), discovery.HostTaken, "TCP proxy db"},
		{"a name of the admin listener", administered, proxy("s", 1, server, "virtual_hosts=gate.example.com"), discovery.HostTaken, "label headgate.http.s.virtual_hosts: the host gate.example.com is one of the admin listener (admin.hosts: gate.example.com)"},
		{"a wildcard over the admin listener", administered, proxy("s", 1, server, "virtual_hosts=*.example.com"), discovery.HostTaken, "the host *.example.com is one of the admin listener"},
		{"a wildcard over an admin host with a proxy", administered, proxy("s", 1, server, "virtual_hosts=*.example.org"), "", ""},
		{"TLS names of the admin listener", administered, discoverytest.TCPProxy("s", 1, "172.18.0.5:1", "port=secure", "sni=gate.example.com"), discovery.HostTaken, "label headgate.tcp.s.sni"},
		{"localhost", hand, proxy("s", 1, server, "virtual_hosts=localhost"), discovery.OutOfBounds, "label headgate.http.s.virtual_hosts: labels cannot name the host localhost"},
		{"a name below localhost", hand, proxy("s", 1, server, "virtual_hosts=shop.localhost"), "", ""},
		{"an IPv4 address", hand, proxy("s", 1, server, "virtual_hosts=192.0.2.1"), discovery.OutOfBounds, "labels cannot name the host 192.0.2.1"},
		{"an IPv6 address", hand, proxy("s", 1, server, "virtual_hosts=[2001:DB8::1]"), discovery.OutOfBounds, "labels cannot name the host [2001:db8::1]"},
		{"localhost within the bounds", strings.Replace(hand, "local: {}", "local: {hosts: [localhost]}", 1), proxy("s", 1, server, "virtual_hosts=localhost"), "", ""},
		{"an expression", hand, proxy("s", 1, server, `virtual_hosts=~^new\.example$`), discovery.NotForLabels, "expression"},
		{"no host", hand, proxy("s", 1, server, "routes.0.path=/"), discovery.NoHost, "headgate.host"},
		{"a name by hand", hand, proxy("site", 1, server, "virtual_hosts=new.example"), discovery.Conflict, "a configuration file has a proxy site too (hand.yaml:13:3)"},
		{"an acme entry", hand, proxy("s", 1, server, "virtual_hosts=new.example", "acme=private"), "", ""},
		{"no acme entry", hand, proxy("s", 1, server, "virtual_hosts=new.example", "acme=mian"), discovery.NoSuchObject, `label headgate.http.s.acme: there is no acme entry "mian"; did you mean "main"?`},
		{"no policy", hand, proxy("s", 1, server, "virtual_hosts=new.example", "use=stuff"), discovery.NoSuchObject, `did you mean "staff"?`},
		{"no port", hand, proxy("s", 1, server, "virtual_hosts=new.example", "ports=wbe"), discovery.NoSuchObject, `did you mean "web"?`},
		{"an invalid host", hand, proxy("s", 1, server, "virtual_hosts=http://new.example/"), discovery.BadValue, "label headgate.http.s.virtual_hosts: \"http://new.example/\" is a URL"},
		{"an invalid name", hand, proxy("a/b", 1, server, "virtual_hosts=new.example"), discovery.Invalid, "invalid character"},
		{"out of bounds", hand, proxy("s", 1, server, "virtual_hosts=new.example", "routes.0.queue.length=99999999"), discovery.BadValue, "65536"},
		{"the admin listener", hand, proxy("s", 1, "http://127.0.0.1:9080", "virtual_hosts=new.example"), discovery.OwnSocket, "127.0.0.1:9080 is the admin listener of headgate itself"},
		{"a port of ours", hand, proxy("s", 1, "http://[::1]:8443", "virtual_hosts=new.example"), discovery.OwnSocket, "port secure"},
		{"loopback", hand, proxy("s", 1, "http://127.0.0.1:3000", "virtual_hosts=new.example"), "", ""},
		{"the same number elsewhere", hand, proxy("s", 1, "http://172.18.0.5:8080", "virtual_hosts=new.example"), "", ""},
		{"an address of ours", hand, shared(proxy("s", 1, "http://192.0.2.1:8080", "virtual_hosts=new.example")), discovery.OwnSocket, "port web"},

		{"a host within the bounds", bounded, proxy("s", 1, server, "virtual_hosts=a.b.apps.example,exact.example,*.apps.example"), "", ""},
		{"a host out of the bounds", bounded, proxy("s", 1, server, "virtual_hosts=apps.example"), discovery.OutOfBounds, "provider local does not let labels name the host apps.example; it allows *.apps.example, exact.example"},
		{"a wildcard out of the bounds", bounded, proxy("s", 1, server, "virtual_hosts=*.exact.example"), discovery.OutOfBounds, ""},
		{"a host that ends like a bound", bounded, proxy("s", 1, server, "virtual_hosts=xapps.example"), discovery.OutOfBounds, ""},
		{"an acme entry out of the bounds", bounded, proxy("s", 1, server, "virtual_hosts=exact.example", "acme=private"), discovery.OutOfBounds, "ACME entry private"},
		{"acme: none", bounded, proxy("s", 1, server, "virtual_hosts=exact.example", "acme=none"), "", ""},
		{"a port out of the bounds", bounded, proxy("s", 1, server, "virtual_hosts=exact.example", "ports=other"), discovery.OutOfBounds, "port other"},

		{"an address", hand, discoverytest.TCPProxy("s", 1, "172.18.0.5:1", "address=127.0.0.1:7000"), discovery.OutOfBounds, "label headgate.tcp.s.address: provider local does not let labels listen on 127.0.0.1:7000"},
		{"an address within the bounds", bounded, discoverytest.TCPProxy("s", 1, "172.18.0.5:1", "address=127.0.0.1:7000"), "", ""},
		{"an address out of the bounds", bounded, discoverytest.UDPProxy("s", 1, "172.18.0.5:1", "address=127.0.0.1:7001"), discovery.OutOfBounds, "it allows 127.0.0.1:7000"},
		{"an address for UDP", bounded, discoverytest.UDPProxy("s", 1, "172.18.0.5:1", "address=127.0.0.1:7000"), "", ""},
		{"TLS names", hand, discoverytest.TCPProxy("s", 1, "172.18.0.5:1", "port=secure", "sni=new.example"), "", ""},
		{"TLS names of a proxy by hand", hand, discoverytest.TCPProxy("s", 1, "172.18.0.5:1", "port=secure", "sni=www.example.com"), discovery.HostTaken, "label headgate.tcp.s.sni"},
		{"TLS names out of the bounds", bounded, discoverytest.TCPProxy("s", 1, "172.18.0.5:1", "port=secure", "sni=new.example"), discovery.OutOfBounds, ""},
		{"a stream to ourselves", hand, discoverytest.TCPProxy("s", 1, "127.0.0.1:9080", "port=secure", "sni=new.example"), discovery.OwnSocket, "admin"},
		{"a range with a port that is ours", hand, discoverytest.TCPProxy("s", 1, "127.0.0.1:9070-9090", "port=secure", "sni=new.example"), discovery.OwnSocket, "127.0.0.1:9080 is the admin listener"},
		{"no server for a stream", hand, discoverytest.TCPProxy("s", 1, "", "port=secure", "sni=new.example"), discovery.Invalid, "no server"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := merge(t, test.text, test.object)
			d := test.object
			if there := m.Config.Found(d.Kind, d.Name) != nil; there != (test.code == "") {
				t.Errorf("in the configuration: %v; issues %v", there, m.Issues)
			}
			if test.code == "" {
				if len(m.Issues) > 0 {
					t.Error(m.Issues)
				}
				compiles(t, m.Config)
				return
			}
			if i := slices.IndexFunc(m.Issues, func(i discovery.Issue) bool { return i.Code == test.code && strings.Contains(i.String(), test.says) }); i < 0 {
				t.Errorf("issues %v\nwant %s: %s", m.Issues, test.code, test.says)
			}
			for name, p := range load(t, test.text).Proxies {
				if !slices.Equal(m.Config.Proxies[name].VirtualHosts, p.VirtualHosts) {
					t.Errorf("proxy %s by hand has changed", name)
				}
			}
		})
	}
}

// What labels may not name is told together with what is wrong with them by themselves, so
// that one look at a container is enough.
func TestWrongLabelsAndBoundsAreToldAtOnce(t *testing.T) {
	bounded := strings.Replace(hand, "local: {}", `local: {hosts: [exact.example], acme: [main], ports: [web], listen: ["127.0.0.1:7000"]}`, 1)
	for _, test := range []struct {
		object *config.Discovered
		want   []string
	}{
		{proxy("s", 1, server, "virtual_hosts=new.example", "acme=private", "ports=other", "routes.0.queue.length=many"),
			[]string{"routes.0.queue.length: ", "the host new.example", "the ACME entry private", "the port other"}},
		{discoverytest.TCPProxy("s", 1, "172.18.0.5:1", "address=127.0.0.1:7001", "no_such_field=1"), []string{"no_such_field: ", "listen on 127.0.0.1:7001"}},
		{discoverytest.UDPProxy("s", 1, "172.18.0.5:1", "address=127.0.0.1:7001", "idle_timeout=soon"), []string{"idle_timeout: ", "listen on 127.0.0.1:7001"}},
		{proxy("s", 1, server, "virtual_hosts=http://", "routes.0.queue.length=many"), []string{"routes.0.queue.length: ", "virtual_hosts: "}},
	} {
		m := merge(t, bounded, test.object)
		var said []string
		for _, i := range m.Issues {
			said = append(said, i.String())
		}
		all := strings.Join(said, "\n")
		for _, want := range test.want {
			if !strings.Contains(all, want) {
				t.Errorf("issues:\n%s\nwant one of %q", all, want)
			}
		}
		if len(said) != len(test.want) {
			t.Errorf("%d issues, want %d:\n%s", len(said), len(test.want), all)
		}
	}
}

// compiles tells of problems but the one that no key was loaded.
func compiles(t *testing.T, c *config.Config) {
	t.Helper()
	_, problems := plan.Compile(c, nil, plan.House{}, nil)
	for _, p := range problems {
		if !strings.Contains(p.What, "key/self-signed") {
			t.Error(p)
		}
	}
}

func shared(d *config.Discovered) *config.Discovered {
	d.Servers[0].Shared = true
	return d
}

func TestPortsOfTheProviderAreThoseOfItsProxies(t *testing.T) {
	text := strings.Replace(hand, "local: {}", "local: {ports: [web, other]}", 1)
	m := merge(t, text, proxy("a", 1, server, "virtual_hosts=a.example"), proxy("b", 2, server, "virtual_hosts=b.example", "ports=web"))
	if a, b := m.Config.Proxies["a"].Ports, m.Config.Proxies["b"].Ports; !slices.Equal(a, []string{"web", "other"}) || !slices.Equal(b, []string{"web"}) {
		t.Errorf("ports %v and %v; issues %v", a, b, m.Issues)
	}
}

func TestTheOlderContainerWinsAndBothAreTold(t *testing.T) {
	old := proxy("old", 1, server, "virtual_hosts=a.example,b.example", "routes.0.path=/x")
	young := proxy("young", 2, server, "virtual_hosts=a.example", "routes.0.path=/y", "routes.1.path=/x")
	beside := proxy("beside", 3, server, "virtual_hosts=a.example", "routes.0.path=/z")
	m := merge(t, hand, young, beside, old)
	if m.Config.Found("proxies", "old") == nil || m.Config.Found("proxies", "young") != nil || m.Config.Found("proxies", "beside") == nil {
		t.Errorf("issues %v", m.Issues)
	}
	if got := issueLines(m); !slices.Equal(got, []string{"old-1 conflict proxies old", "young-1 conflict proxies young"}) {
		t.Errorf("issues %q", got)
	}
	for i, other := range []string{"young", "old"} {
		if !strings.Contains(m.Issues[i].Message, "proxy "+other+" of container "+other+"-1") || !strings.Contains(m.Issues[i].Message, "the host a.example and the path /x") {
			t.Errorf("the issue names not the other: %v", m.Issues[i])
		}
	}
	one, two := proxy("same", 1, server, "virtual_hosts=a.example"), proxy("same", 2, server, "virtual_hosts=b.example")
	two.Origin.Container = "same-2"
	m = merge(t, hand, two, one)
	if f := m.Config.Found("proxies", "same"); f == nil || f.Discovered != one || len(m.Issues) != 2 {
		t.Errorf("of one name: %v", m.Issues)
	}
	// Names of a stream are a whole host.
	m = merge(t, hand, proxy("web", 1, server, "virtual_hosts=a.example", "routes.0.path=/x"), discoverytest.TCPProxy("tls", 2, "172.18.0.5:1", "port=secure", "sni=a.example"))
	if m.Config.Found("tcp_proxies", "tls") != nil || len(m.Issues) != 2 {
		t.Errorf("a stream and a proxy: %v", m.Issues)
	}
	// Two that listen at one address.
	text := strings.Replace(hand, "local: {}", `local: {listen: ["127.0.0.1:7000"]}`, 1)
	m = merge(t, text, discoverytest.TCPProxy("b", 2, "172.18.0.5:1", "address=127.0.0.1:7000"), discoverytest.TCPProxy("a", 1, "172.18.0.5:1", "address=127.0.0.1:7000"))
	if m.Config.Found("tcp_proxies", "a") == nil || m.Config.Found("tcp_proxies", "b") != nil || len(m.Issues) != 1 || m.Issues[0].Label != "headgate.tcp.b.address" {
		t.Errorf("two streams at one address: %v", m.Issues)
	}
}

func TestWhatIsTheSameIsTheSameObjectAgain(t *testing.T) {
	c := load(t, hand)
	c2, _, _ := config.LoadDocuments(config.Documents{List: []config.Document{{Name: "hand.yaml", Data: []byte(hand + "x-note: other\n")}}}, c)
	make := func() []*config.Discovered {
		return []*config.Discovered{proxy("a", 1, server, "virtual_hosts=a.example", "use=staff"), proxy("b", 2, server, "virtual_hosts=b.example")}
	}
	provide := func(objects []*config.Discovered) []discovery.Provider {
		return []discovery.Provider{{Name: "local", Objects: objects}}
	}
	first := discovery.Merge(c, provide(make()), nil, nil)
	again := discovery.Merge(c2, provide(make()), first, nil) // equal, and other pointers
	for _, name := range []string{"a", "b", "site"} {
		if first.Config.Proxies[name] == nil || first.Config.Proxies[name] != again.Config.Proxies[name] {
			t.Errorf("proxy %s is another object: %v", name, first.Issues)
		}
	}
	changed := make()
	changed[0] = proxy("a", 1, server, "virtual_hosts=a.example,c.example", "use=staff")
	third := discovery.Merge(c2, provide(changed), again, nil)
	if third.Config.Proxies["a"] == again.Config.Proxies["a"] || third.Config.Proxies["b"] != again.Config.Proxies["b"] {
		t.Error("a change of one proxy")
	}
	if !again.Same(discovery.Merge(c2, provide(make()), again, nil)) || again.Same(third) {
		t.Error("Same is wrong")
	}
	d := diff.Compare(again.Config, third.Config)
	if len(d.Objects) != 1 || d.Objects[0].Name != "a" || d.Objects[0].Origin == nil || d.Objects[0].Origin.Container != "a-1" {
		t.Errorf("the difference is %v", d.Objects)
	}
}

func TestAPolicyThatChangesChangesWhatUsesIt(t *testing.T) {
	objects := []*config.Discovered{proxy("a", 1, server, "virtual_hosts=a.example", "use=staff")}
	c := load(t, hand)
	first := discovery.Merge(c, []discovery.Provider{{Name: "local", Objects: objects}}, nil, nil)
	without := load(t, strings.Replace(hand, "staff: {ip_filter: {allow: [10.0.0.0/8]}}", "other: {ip_filter: {allow: [10.0.0.0/8]}}", 1))
	second := discovery.Merge(without, []discovery.Provider{{Name: "local", Objects: objects}}, first, nil)
	if second.Config.Found("proxies", "a") != nil || len(second.Issues) != 1 || second.Issues[0].Code != discovery.NoSuchObject {
		t.Errorf("the policy is gone: %v", second.Issues)
	}
	if first.Config.Proxies["a"].IPFilter == nil {
		t.Error("the policy has no effect")
	}
}

func TestBlameFindsTheObjectAndItsLabel(t *testing.T) {
	m := merge(t, hand, proxy("a", 1, server, "virtual_hosts=a.example", "routes.0.path=/x"), proxy("b", 2, server, "virtual_hosts=b.example"))
	problems := []schema.Problem{{Field: "proxies.a.routes[0].path", What: "bad", Remedy: "mend it"}, {Field: "proxies.site.routes[0].path", What: "by hand"}}
	blamed, rest := m.Blame(problems)
	if len(blamed) != 1 || len(rest) != 1 || rest[0].What != "by hand" {
		t.Fatalf("blamed %v, rest %v", blamed, rest)
	}
	again := discovery.Merge(m.Config.Documents(), []discovery.Provider{{Name: "local", Objects: []*config.Discovered{
		proxy("a", 1, server, "virtual_hosts=a.example", "routes.0.path=/x"),
		proxy("c", 3, server, "virtual_hosts=a.example", "routes.0.path=/x"),
	}}}, m, blamed)
	if again.Config.Found("proxies", "a") != nil || len(again.Issues) != 1 || again.Issues[0].Label != "headgate.http.a.routes.0.path" || len(again.Blamed) != 1 {
		t.Errorf("issues %v", again.Issues)
	}
	if again.Config.Found("proxies", "c") == nil {
		t.Error("what the blamed object wanted is not free")
	}
}

// TestMergeIsTheSameInEveryOrder merges the same objects in many orders and with many
// histories before.
func TestMergeIsTheSameInEveryOrder(t *testing.T) {
	c := load(t, hand)
	rnd := rand.New(rand.NewPCG(1, 2))
	var all []*config.Discovered
	hosts := []string{"a.example", "b.example", "www.example.com", "x.kept.example", "open.example.com", "*.c.example"}
	for i := range 40 {
		labels := []string{"virtual_hosts=" + hosts[rnd.IntN(len(hosts))], fmt.Sprintf("routes.0.path=/%d", rnd.IntN(3))}
		if rnd.IntN(5) == 0 {
			labels = append(labels, "nonsense=1")
		}
		all = append(all, proxy(fmt.Sprintf("p%d", rnd.IntN(25)), rnd.IntN(10), server, labels...))
		all[i].Origin.Container = fmt.Sprintf("c%d", i)
	}
	provide := func(objects []*config.Discovered) []discovery.Provider {
		return []discovery.Provider{{Name: "local", Objects: objects}}
	}
	want := discovery.Merge(c, provide(all), nil, nil)
	compiles(t, want.Config)
	if len(want.Issues) < 10 || !slices.IsSortedFunc(want.Issues, func(a, b discovery.Issue) int { return strings.Compare(a.Container, b.Container) }) {
		t.Fatalf("%d issues", len(want.Issues))
	}
	var before *discovery.Merged
	for range 200 {
		some := slices.Clone(all)
		rnd.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		before = discovery.Merge(c, provide(some[:rnd.IntN(len(some))]), before, nil)
		got := discovery.Merge(c, provide(some), before, nil)
		if !slices.Equal(got.Issues, want.Issues) {
			t.Fatalf("issues\n%v\nwant\n%v", got.Issues, want.Issues)
		}
		if d := diff.Compare(want.Config, got.Config); !d.Empty() {
			t.Fatalf("the configuration is another: %v", d.Objects)
		}
		before = got
	}
}

func TestWithoutProvidersNothingIsDone(t *testing.T) {
	c := load(t, hand)
	if m := discovery.Merge(c, nil, nil, nil); m.Config != c || len(m.Issues) != 0 {
		t.Error("the configuration is another")
	}
}

func BenchmarkMerge1000Objects(b *testing.B) {
	c := load(b, hand)
	var all []*config.Discovered
	for i := range 1000 {
		label := "rate_limit.requests=5"
		if i%10 == 0 {
			label = "nonsense=1"
		}
		all = append(all, proxy(fmt.Sprintf("p%d", i), i, server, fmt.Sprintf("virtual_hosts=h%d.example", i), label))
	}
	provide := []discovery.Provider{{Name: "local", Objects: all}}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			discovery.Merge(c, provide, nil, nil)
		}
	})
	b.Run("again", func(b *testing.B) {
		before := discovery.Merge(c, provide, nil, nil)
		for b.Loop() {
			before = discovery.Merge(c, provide, before, nil)
		}
	})
}
