package discovery_test

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/discovery/discoverytest"
)

// written returns a proxy of a document with one server.
func written(name, url string, more ...string) *config.Discovered {
	d := discoverytest.Proxy(name, 0, "", append([]string{"virtual_hosts=" + name + ".example"}, more...)...)
	for i := range d.Labels {
		d.Labels[i].Container, d.Labels[i].Name = "", d.Labels[i].Path
	}
	d.Labels = append(d.Labels, config.Label{Path: "routes.0.servers.0.url", Value: url, Name: "routes[0].servers[0].url"})
	d.Written, d.Created = true, time.Time{}
	d.Origin = config.Origin{Via: config.ViaHTTP, Provider: "cmdb", Document: "https://cmdb.example/doc.yaml"}
	return d
}

func writtenStream(listen, server string) *config.Discovered {
	d := discoverytest.TCPProxy("s", 0, "", "address="+listen)
	d.Labels = append(d.Labels, config.Label{Path: "servers.0.address", Value: server})
	d.Written, d.Created = true, time.Time{}
	d.Origin = config.Origin{Via: config.ViaHTTP, Provider: "cmdb", Document: "https://cmdb.example/doc.yaml"}
	return d
}

// outOfDocument merges objects of a document within bounds, and returns the only issue.
func outOfDocument(t *testing.T, bounds config.Bounds, objects ...*config.Discovered) (*discovery.Merged, string) {
	t.Helper()
	m := discovery.Merge(load(t, hand+"admin: {address: '127.0.0.1:9080', hosts: [gate.example.com]}\n"), []discovery.Provider{{Name: "cmdb", Bounds: bounds, Objects: objects}}, nil, nil)
	text := ""
	for _, i := range m.Issues {
		text += string(i.Code) + ": " + i.String() + "\n"
	}
	return m, text
}

func TestServersThatADocumentMayName(t *testing.T) {
	some := []string{"10.0.0.0/8", "192.0.2.7", "*.internal.example", "db.example", "127.0.0.0/8"}
	for _, c := range []struct {
		bounds []string
		url    string
		want   string
	}{
		{nil, "http://10.1.2.3:8080", ""},
		{nil, "https://[2001:db8::1]", ""},
		{nil, "http://127.0.0.1:3000", "is this machine"},
		{nil, "http://[::ffff:127.0.0.1]:3000", "is this machine"},
		{nil, "http://[::1]:3000", "is this machine"},
		{nil, "http://localhost:3000", "is a name"},
		{nil, "http://app.internal.example", "is a name"},
		{nil, "http://169.254.169.254", "metadata"},
		{[]string{"0.0.0.0/0", "*"}, "http://169.254.169.254", "metadata"},
		{[]string{"::/0"}, "http://[fd00:ec2::254]", "metadata"},
		{[]string{"0.0.0.0/0"}, "http://0.0.0.0:80", "link-local"},
		{nil, "unix:/run/app.sock", "Unix socket"},
		{[]string{"*"}, "unix:/run/app.sock", "Unix socket"},
		{[]string{"*"}, "fcgi+unix:/run/php.sock", "Unix socket"},
		{some, "http://10.1.2.3", ""},
		{some, "http://192.0.2.7", ""},
		{some, "http://192.0.2.8", "it allows 10.0.0.0/8"},
		{some, "http://app.internal.example:8080", ""},
		{some, "http://internal.example:8080", "does not let the document name"},
		{some, "http://DB.example", ""},
		{some, "http://127.0.0.1:3000", ""},
		{some, "http://127.0.0.1:9080", "the admin listener of headgate"},
		{[]string{"*"}, "http://any.example", ""},
		{[]string{"*"}, "http://10.0.0.1", "does not let the document name"},
	} {
		m, text := outOfDocument(t, config.Bounds{Servers: c.bounds}, written("a", c.url))
		if used := m.Config.Found("proxies", "a") != nil; used != (c.want == "") || !strings.Contains(text, c.want) || used && text != "" {
			t.Errorf("%s within %v: used %v, issues %s\nwant %q", c.url, c.bounds, used, text, c.want)
		}
	}
	listen := config.Bounds{Listen: load(t, hand).Discovery.Docker["local"].Listen}
	for address, want := range map[string]string{"10.0.0.1:5432": "does not let the document listen", "127.0.0.1:5432": "is this machine", "db.internal:5432": "is a name"} {
		if m, text := outOfDocument(t, listen, writtenStream("0.0.0.0:7000", address)); m.Config.Found("tcp_proxies", "s") != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %s, want %q", address, text, want)
		}
	}
}

func TestWhatADocumentMayNotTake(t *testing.T) {
	for name, c := range map[string]struct {
		object *config.Discovered
		want   string
	}{
		"admin":             {forHost("gate.example.com"), "host_taken: "},
		"localhost":         {forHost("localhost"), "the document cannot name the host localhost"},
		"an expression":     {forHost(`~^.*$`), "the document cannot name hosts by an expression"},
		"a host of a file":  {forHost("www.example.com"), "host_taken: "},
		"a field for files": {written("a", "http://10.0.0.1", "routes.0.mirror.servers.0.url=http://10.0.0.2"), "not_for_labels: proxy a, field routes.0.mirror"},
		"access to people":  {written("a", "http://10.0.0.1", "gate.enabled=true"), "the document cannot set gate"},
		"another's name":    {written("site", "http://10.0.0.1"), "conflict: "},
	} {
		m, text := outOfDocument(t, config.Bounds{}, c.object)
		if m.Config.Found(c.object.Kind, c.object.Name) != nil || !strings.Contains(text, c.want) {
			t.Errorf("%s: %s\nwant %q", name, text, c.want)
		}
	}
}

// forHost is a proxy of a document for a host.
func forHost(host string) *config.Discovered {
	d := written("a", "http://10.0.0.1")
	d.Labels[0].Value = host
	return d
}

func TestADocumentHasPrecedenceOverContainers(t *testing.T) {
	container := proxy("b", 1, server, "virtual_hosts=a.example")
	doc := written("a", "http://10.0.0.1")
	c := load(t, hand)
	m := discovery.Merge(c, []discovery.Provider{{Name: "local", Objects: []*config.Discovered{container}}, {Name: "cmdb", Objects: []*config.Discovered{doc}}}, nil, nil)
	text := ""
	for _, i := range m.Issues {
		text += i.String() + "\n"
	}
	if m.Config.Found("proxies", "a") == nil || m.Config.Found("proxies", "b") != nil || !strings.Contains(text, "proxy a of https://cmdb.example/doc.yaml has the host a.example and the path /, and takes precedence") {
		t.Errorf("issues %s", text)
	}
	if o, ok := m.Config.Origin("proxies", "a"); !ok || o.String() != "https://cmdb.example/doc.yaml" || o.Via != config.ViaHTTP {
		t.Errorf("origin %+v", o)
	}
}
