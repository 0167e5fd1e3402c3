package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// discovered returns an object of one container that says labels, as "path=value".
func discovered(kind, name string, labels ...string) *Discovered {
	d := &Discovered{
		Kind: kind, Name: name, Created: time.Unix(1000, 0),
		Origin: Origin{Via: ViaDocker, Provider: "local", Container: name + "-1"},
	}
	for _, l := range labels {
		path, value, _ := strings.Cut(l, "=")
		d.Labels = append(d.Labels, Label{Path: path, Value: value, Container: name + "-1", Name: "headgate.http." + name + "." + path})
	}
	address := "172.18.0.5:8080"
	if kind == "proxies" {
		address = "http://" + address
	}
	d.Servers = []DiscoveredServer{{Address: address, Container: name + "-1"}}
	return d
}

func TestLabelsSetWhatDocumentsWouldSet(t *testing.T) {
	d := discovered("proxies", "shop",
		"virtual_hosts=a.example, b.example", "routes.0.path=/", "Routes.1.Path=/api", "routes.1.strip_prefix=False",
		"rate_limit.requests=10", "rate_limit.period=1m", "compression=true", "redirect_http_to_https=false", "request_body_limit=5MiB",
		"headers.0.direction=response", "headers.0.name=x-a", "headers.0.value=v", "routes.1.sticky_cookie.name=s", "description=123 ${HOME}")
	d.Servers[0].Labels = []Label{{Path: "weight", Value: "3", Container: "shop-1", Name: "headgate.http.shop.weight"}}
	f := Find(d, []string{"web"})
	if len(f.Problems) > 0 {
		t.Fatal(f.Problems)
	}
	want, _, problems := Load("want.yaml", []byte(`
version: 1
ports: {web: {address: "127.0.0.1:80", protocol: http}}
proxies:
  shop:
    virtual_hosts: [a.example, b.example]
    ports: [web]
    rate_limit: {requests: 10, period: 1m}
    compression: {}
    redirect_http_to_https: false
    request_body_limit: 5MiB
    description: "123 $${HOME}"
    headers: [{direction: response, name: x-a, value: v}]
    routes:
    - {path: /, servers: [{url: "http://172.18.0.5:8080", weight: 3}]}
    - {path: /api, strip_prefix: false, sticky_cookie: {name: s}, servers: [{url: "http://172.18.0.5:8080", weight: 3}]}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	a := NewAdder(want, nil)
	delete(a.config.Proxies, "shop")
	if problems := a.Add(f); len(problems) > 0 {
		t.Fatal(problems)
	}
	got, _ := a.Config().Canonical("proxies", "shop", false)
	form, _ := want.Canonical("proxies", "shop", false)
	if string(got) != string(form) || !strings.Contains(string(form), "${HOME}") {
		t.Errorf("labels give\n%s\nwant\n%s", got, form)
	}
	if o, ok := a.Config().Origin("proxies", "shop"); !ok || o.Container != "shop-1" {
		t.Errorf("origin %v", o)
	}
}

func TestWithoutServersAProxyAnswers503(t *testing.T) {
	d := discovered("proxies", "shop", "virtual_hosts=a.example", "routes.0.path=/", "routes.1.path=/x", "routes.1.fixed_response.status=204")
	d.Servers = nil
	f := Find(d, nil)
	if len(f.Problems) > 0 {
		t.Fatal(f.Problems)
	}
	p := f.Object.(*Proxy)
	if a, b := p.Routes[0].FixedResponse.Status, p.Routes[1].FixedResponse.Status; a != 503 || b != 204 {
		t.Errorf("routes answer %d and %d", a, b)
	}
	if a, b := p.Routes[0].Unserved, p.Routes[1].Unserved; !a || b {
		t.Errorf("routes are unserved: %v and %v", a, b)
	}
	d = discovered("tcp_proxies", "db", "address=127.0.0.1:5432")
	d.Servers = nil
	if f := Find(d, nil); f.Object != nil || len(f.Problems) != 1 || !strings.Contains(f.Problems[0].What, "no server") {
		t.Errorf("a TCP proxy without servers gives %v", f.Problems)
	}
}

func TestProblemsOfLabels(t *testing.T) {
	for _, test := range []struct {
		label string
		fault LabelFault
		text  string
	}{
		{"virtual_host=a.example", LabelUnknown, `proxies.shop.virtual_host: unknown key; did you mean "virtual_hosts"?`},
		{"zzz=a", LabelUnknown, "proxies.shop.zzz: unknown key; known are description, tags, virtual_hosts"},
		{"routes.0.ratelimit.requests=1", LabelUnknown, `did you mean "rate_limit"?`},
		{"routes.0.servers.0.url=http://10.0.0.1", LabelForbidden, "labels cannot set routes[0].servers"},
		{"routes.0.servers=http://10.0.0.1", LabelForbidden, "labels cannot set routes[0].servers"},
		{"routes.0.mirror.percent=5", LabelForbidden, "labels cannot set routes[0].mirror"},
		{"forward_auth.url=http://10.0.0.1", LabelForbidden, "labels cannot set forward_auth"},
		{"client_ip.trusted=0.0.0.0/0", LabelForbidden, "labels cannot set client_ip"},
		{"access_log.enabled=false", LabelForbidden, "labels cannot set access_log"},
		{"share_hosts=true", LabelForbidden, "labels cannot set share_hosts"},
		{"maintenance.file=/etc/passwd", LabelForbidden, "labels cannot set maintenance.file"},
		{"error_pages.0.file=/etc/passwd", LabelForbidden, "labels cannot set error_pages[0].file"},
		{"cache.memory_limit=64GiB", LabelForbidden, "labels cannot set cache.memory_limit"},
		{"routes.x.path=/", LabelUnknown, `routes is a list, and "x" is not the number of an element`},
		{"routes.500.path=/", LabelUnknown, "not the number of an element"},
		{"routes.1.path=/", LabelValue, "routes has 1 elements, and none has the number 0; number the elements from 0"},
		{"routes=/", LabelValue, "routes is a list of objects; name the fields of each element, such as routes.0.path"},
		{"active.x=/", LabelUnknown, "active has no fields"},
		{"active=maybe", LabelValue, `found the string "maybe", expected true or false`},
		{"active=", LabelValue, `found the string "", expected true or false`},
		{"rate_limit.requests=null", LabelValue, "expected a whole number"},
		{"rate_limit.requests=${N}", LabelValue, `found the string "${N}", expected a whole number`},
		{"request_timeout=soon", LabelValue, "soon"},
		{"request_timeout=99h", LabelValue, "24h"},
		{"compression=maybe", LabelValue, `compression is an object, and found the value "maybe"; name one of its fields`},
		{"headers.0.value=1m", LabelValue, "proxies.shop.headers[0].direction: missing"},
		{"host_header=a b", "", ""}, // a check that an Adder does
		{"description=" + strings.Repeat("x", MaxLabelSize+1), LabelValue, "longer than 16384 bytes"},
		{strings.Repeat("x", MaxLabelSize+1) + "=1", LabelValue, "longer than 16384 bytes"},
		{"=x", LabelUnknown, "unknown key"},
		{"virtual_hosts..x=1", LabelUnknown, "is a list"},
	} {
		f := Find(discovered("proxies", "shop", test.label), nil)
		if test.fault == "" {
			if len(f.Problems) > 0 {
				t.Errorf("%.60s: %v", test.label, f.Problems)
			}
			continue
		}
		if f.Object != nil || len(f.Problems) == 0 {
			t.Errorf("%.60s: no problem", test.label)
			continue
		}
		p := f.Problems[0]
		if !strings.Contains(p.Error(), test.text) || p.Fault != test.fault {
			t.Errorf("%.60s: %s: %v\nwant %s: %s", test.label, p.Fault, p.Error(), test.fault, test.text)
		}
		if p.Label == nil {
			t.Errorf("%.60s: the problem names no label: %v", test.label, p)
		}
	}
}

func TestAllProblemsOfLabelsAreToldAtOnce(t *testing.T) {
	f := Find(discovered("proxies", "shop", "virtual_host=a.example", "virtual_hosts=no host/", "rate_limit.requests=many",
		"certificates=x", "request_body_limit=5 apples", "headers=x", "routes.1.path=/a"), []string{"web"})
	var got []string
	in, _, problems := Load("in.yaml", []byte(`{version: 1, ports: {web: {address: "127.0.0.1:80", protocol: http}}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	a := NewAdder(in, nil)
	for _, p := range a.Add(f) {
		got = append(got, fmt.Sprint(p.Fault, " ", p.Field))
	}
	if a.Has("proxies", "shop") {
		t.Error("an object with problems was added")
	}
	slices.Sort(got)
	want := []string{
		"unknown proxies.shop.certificates", "unknown proxies.shop.virtual_host",
		"value proxies.shop.headers", "value proxies.shop.rate_limit.requests", "value proxies.shop.request_body_limit",
		"value proxies.shop.routes", "value proxies.shop.virtual_hosts[0]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestLabelsThatSayTheSameFieldTwice(t *testing.T) {
	f := Find(discovered("proxies", "shop", "virtual_hosts=a.example", "Virtual_Hosts=b.example"), nil)
	if len(f.Problems) != 1 || !strings.Contains(f.Problems[0].What, "virtual_hosts is set twice") {
		t.Error(f.Problems)
	}
	if f := Find(discovered("proxies", "shop", "virtual_hosts=a.example", "Virtual_Hosts=a.example"), nil); len(f.Problems) != 0 {
		t.Error(f.Problems)
	}
}

func TestManyLabelsAreOneProblem(t *testing.T) {
	var labels []string
	for i := range 10_000 {
		labels = append(labels, fmt.Sprintf("nonsense%d=x", i))
	}
	f := Find(discovered("proxies", "shop", labels...), nil)
	if len(f.Problems) != 1 || !strings.Contains(f.Problems[0].What, "10000 labels, more than the maximum of 2000") {
		t.Error(f.Problems)
	}
	if f := Find(discovered("proxies", "shop", labels[:100]...), nil); len(f.Problems) != maxLabelProblems {
		t.Errorf("%d problems", len(f.Problems))
	}
}

// TestNoLabelReachesTheMachine holds that no field is for labels that reaches for a file,
// a command, or another's address.
func TestNoLabelReachesTheMachine(t *testing.T) {
	forbidden := map[string]bool{"servers": true, "url": true, "file": true, "trusted": true, "share_hosts": true, "mirror": true, "forward_auth": true, "client_ip": true}
	fields := 0
	for _, kind := range []string{"proxies", "tcp_proxies", "udp_proxies"} {
		for _, o := range KindOf(kind).Schema().Objects() {
			for _, f := range o.Fields {
				if !f.Label {
					continue
				}
				fields++
				if f.Host != "" || forbidden[f.Name] || strings.HasSuffix(f.Name, "_file") || strings.Contains(f.Name, "command") {
					t.Errorf("%s.%s may be set by labels", o.Name(), f.Name)
				}
			}
		}
	}
	if fields < 150 {
		t.Errorf("only %d fields", fields)
	}
}

func FuzzLabels(f *testing.F) {
	f.Add("virtual_hosts=a.example\nroutes.0.path=/\nroutes.0.servers.0.url=x")
	f.Add("routes.0.headers.0.name=x\nroutes.3.path=/\ncompression=true\ncompression.min_size=1KiB")
	f.Add("virtual_hosts.0=a\nvirtual_hosts=b\nactive=~\nrate_limit.requests=1e9\ntags=a,,b")
	f.Add("\x00=\x00\n..=.\nroutes.0.fixed_response.status=999\nbasic_auth.users.0.password_hash=$2y$")
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []string{"proxies", "tcp_proxies", "udp_proxies"} {
			found := Find(discovered(kind, "shop", strings.Split(text, "\n")...), []string{"web"})
			if found.Object == nil && len(found.Problems) == 0 {
				t.Fatal("neither an object nor a problem")
			}
			if found.Object == nil {
				continue
			}
			a := NewAdder(New(), nil)
			if problems := a.Add(found); len(problems) > 0 {
				if a.Has(kind, "shop") {
					t.Fatal("an object with problems was added")
				}
				continue
			}
			o := KindOf(kind).Find(a.Config(), "shop")
			switch o := o.(type) {
			case *Proxy:
				for _, r := range o.Routes {
					for _, s := range r.Servers {
						if s.URL != "http://172.18.0.5:8080" {
							t.Fatalf("a label decided about the server %s", s.URL)
						}
					}
				}
			case *TCPProxy:
				if o.Servers[0].Address != "172.18.0.5:8080" {
					t.Fatal("a label decided about a server")
				}
			}
		}
	})
}
