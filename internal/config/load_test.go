package config

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"headgate/internal/feature/rewrite"
	"headgate/internal/setting/unit"
)

func comparers() []cmp.Option {
	return []cmp.Option{cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }), cmpopts.IgnoreUnexported(Config{}, Proxy{})}
}

// mustLoad loads a file that has no problems.
func mustLoad(t testing.TB, text string) (*Config, *Loaded) {
	t.Helper()
	c, doc, problems := Load("headgate.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatalf("problems: %v\nin %s", problems, text)
	}
	return c, doc
}

const example = `version: 1
ports:
  web: {address: "0.0.0.0:8080", protocol: http}
proxies:
  shop:
    virtual_hosts: [shop.example.com, "*.shop.example.com"]
    request_timeout: 30s
    routes:
      - path: /api
        servers:
          - {url: "http://127.0.0.1:3000/v2/", weight: 3}
          - {url: "http://127.0.0.1:3001/v2/"}
        rewrite: {regex: "^/a/(.*)$", replacement: "/${1}"}
      - path: /gone
        fixed_response: {status: 410}
`

func TestLoadFillsEveryDefault(t *testing.T) {
	got, _ := mustLoad(t, example)
	want := New()
	web := newPort("web")
	web.Address, web.Protocol = netip.MustParseAddrPort("0.0.0.0:8080"), HTTP
	want.Ports = map[string]*Port{"web": web}
	shop := newProxy("shop")
	timeout := unit.Duration(30e9)
	shop.VirtualHosts, shop.RequestTimeout = []string{"shop.example.com", "*.shop.example.com"}, &timeout
	api, gone := NewRoute(), NewRoute()
	heavy := newServer("http://127.0.0.1:3000/v2/")
	heavy.Weight = 3
	api.Path, api.Servers = "/api", []*Server{heavy, newServer("http://127.0.0.1:3001/v2/")}
	api.Rewrite = &rewrite.Config{Enabled: true, Regex: "^/a/(.*)$", Replacement: "/${1}", RewriteResponse: true}
	gone.Path = "/gone"
	gone.FixedResponse = &FixedResponse{Status: 410, ContentType: "text/plain; charset=utf-8"}
	shop.Routes = []*Route{api, gone}
	want.Proxies = map[string]*Proxy{"shop": shop}
	if diff := cmp.Diff(want, got, comparers()...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	c, p, r, s := New(), newPort("p"), NewRoute(), newServer("http://x")
	for _, v := range []struct{ got, want any }{
		{c.Admin.Address.String(), "127.0.0.1:9080"},
		{c.AccessLog, AccessLog{Enabled: true, Format: LogJSON, Path: "stdout", Sample: 100, Recent: Recent{Enabled: true, MemoryLimit: 32 << 20}}},
		{c.Upstreams.IdleTimeout.String(), "1m30s"},
		{c.Upstreams.MaxIdleConnections, 128},
		{c.Upstreams.HeaderSize, 64 * unit.KiB},
		{p.Active, true},
		{p.DrainTimeout.String(), "30s"},
		{p.Limits.HeaderTimeout.String(), "30s"},
		{p.Limits.BodyIdleTimeout.String(), "1m"},
		{p.Limits.WriteIdleTimeout.String(), "1m"},
		{p.Limits.KeepAliveTimeout.String(), "2m"},
		{p.Limits.TunnelIdleTimeout.String(), "1h"},
		{p.Limits.HeaderSize, 32 * unit.KiB},
		{p.Limits.HeaderFields, 200},
		{p.Limits.URISize, 16 * unit.KiB},
		{p.Limits.MaxConnections, 0},
		{r.Path, "/"},
		{r.StripPrefix, true},
		{r.LoadBalancing, "round_robin"},
		{r.Timeouts.Connect.String(), "5s"},
		{s.Weight, 1},
		{newProxy("x").HostHeader, "preserve"},
		{newProxy("x").ForwardedStyle, ForwardedCompat},
		{newProxy("x").ViaStyle, ViaCompat},
	} {
		if diff := cmp.Diff(v.want, v.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestJSONIsAConfiguration(t *testing.T) {
	got, _ := mustLoad(t, `{"version": 1, "proxies": {"a": {"routes": [{"fixed_response": {"status": 204}}]}}}`)
	if got.Proxies["a"].Routes[0].FixedResponse.Status != 204 {
		t.Errorf("got %+v", got.Proxies["a"])
	}
}

func TestWindowsFilesAreRead(t *testing.T) {
	got, doc := mustLoad(t, "\ufeffversion: 1\r\nadmin: {address: \"\"}\r\nproxies:\r\n  a:\r\n    routes: [{fixed_response: {status: 204}}]\r\n")
	if line, _ := doc.Position("proxies.a"); line != 4 || got.Admin.Address.IsValid() {
		t.Errorf("line %d, admin %v", line, got.Admin.Address)
	}
}

func TestFeaturesAreInheritedFieldByField(t *testing.T) {
	c, _ := mustLoad(t, `version: 1
proxies:
  a:
    request_body_limit: 1MiB
    rewrite: {add_prefix: /x}
    routes:
      - {path: /inherits, fixed_response: {status: 204}}
      - {path: /own, request_body_limit: 2MiB, request_timeout: 5s, fixed_response: {status: 204}}
      - {path: /off, request_body_limit: 0, request_timeout: 0, rewrite: {enabled: false}, fixed_response: {status: 204}}
`)
	p := c.Proxies["a"]
	var got []string
	for _, r := range p.Routes {
		f := p.Effective(r)
		line := r.Path
		if f.RequestBodyLimit != nil {
			line += " " + f.RequestBodyLimit.String()
		}
		if f.RequestTimeout != nil {
			line += " " + f.RequestTimeout.String()
		}
		if f.Rewrite != nil {
			line += " " + f.Rewrite.AddPrefix
		}
		got = append(got, line)
	}
	want := []string{"/inherits 1MiB 1m /x", "/own 2MiB 5s /x", "/off"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMergeKeysAndNull(t *testing.T) {
	c, _ := mustLoad(t, `version: 1
x-anything: [{goes: here}]
x-common: &common
  host_header: upstream
  routes: [{fixed_response: {status: 204}}]
x-more: &more {host_header: preserve, via_style: rfc9110, access_log: {enabled: false}}
access_log:
proxies:
  a:
    <<: [*common, *more]
    forwarded_style: off
  b: *common
`)
	a, b := c.Proxies["a"], c.Proxies["b"]
	if a.HostHeader != "upstream" || a.ViaStyle != ViaRFC9110 || a.ForwardedStyle != ForwardedOff || a.AccessLog.Enabled || len(a.Routes) != 1 {
		t.Errorf("a = %+v", a)
	}
	if b.Name != "b" || b.HostHeader != "upstream" || b.AccessLog != nil || !c.AccessLog.Enabled {
		t.Errorf("b = %+v", b)
	}
}

func TestPositions(t *testing.T) {
	_, doc := mustLoad(t, example+"x-a: &a {k: v}\n")
	for path, want := range map[string]string{
		"":                                    "1:1",
		"version":                             "1:10",
		"ports":                               "2:1",
		"ports.web":                           "3:8",
		"ports.web.address":                   "3:18",
		"ports.web.limits.header_size":        "3:8",
		"proxies.shop":                        "5:3",
		"proxies.shop.virtual_hosts[1]":       "6:39",
		"proxies.shop.routes":                 "8:5",
		"proxies.shop.routes[0]":              "9:9",
		"proxies.shop.routes[0].path":         "9:15",
		"proxies.shop.routes[0].servers[1]":   "12:13",
		"proxies.shop.routes[1].path":         "14:15",
		"proxies.shop.routes[7].path":         "8:5",
		`proxies["no such"].x`:                "4:1",
		"proxies.shop.routes[x].path":         "8:5",
		"proxies.shop.routes[0].servers[0].x": "11:13",
	} {
		line, column := doc.Position(path)
		if got := fmt.Sprintf("%d:%d", line, column); got != want {
			t.Errorf("Position(%q) = %s, want %s", path, got, want)
		}
	}
	r := doc.Report()
	r.Root().Field("proxies").Field("shop").Field("routes").Index(1).Field("path").Problem("taken", "")
	if got := r.Problems()[0].Error(); got != "headgate.yaml:14:15: proxies.shop.routes[1].path: taken" {
		t.Errorf("a later problem reads %s", got)
	}
}

// TestRelativeFilesBeginAtTheConfiguration holds that ${file:name} is looked for
// beside the document, whatever the working directory is.
func TestRelativeFilesBeginAtTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "secrets", "text"), []byte("beside\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	docs := one("headgate.yaml", []byte("version: 1\nproxies: {a: {routes: [{fixed_response: {status: 200, body: \"${file:secrets/text}\"}}]}}\n"))
	docs.Dir = dir
	c, _, problems := LoadDocuments(docs, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if got := c.Proxies["a"].Routes[0].FixedResponse.Body; got != "beside" {
		t.Errorf("body = %q, want what the file beside the configuration holds", got)
	}
	docs.Dir = filepath.Join(dir, "secrets")
	if _, _, problems := LoadDocuments(docs, nil); len(problems) != 1 || !strings.Contains(problems[0].What, filepath.Join(dir, "secrets", "secrets", "text")) {
		t.Errorf("problems of a file that is not there: %v, want the whole path", problems)
	}
}

func TestVariablesInAFile(t *testing.T) {
	t.Setenv("HEADGATE_TEST_HOST", "shop.example.com, evil: [")
	t.Setenv("HEADGATE_TEST_WEIGHT", "7")
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _ := mustLoad(t, `version: 1
proxies:
  a:
    routes:
      - path: /a
        servers: [{url: "http://${HEADGATE_TEST_NONE:-127.0.0.1}:80/", weight: "${HEADGATE_TEST_WEIGHT}"}]
        rewrite: {regex: "(?P<A>a)", replacement: "${A}"}
      - path: /b
        fixed_response: {status: 200, body: "${file:`+filepath.ToSlash(secret)+`} ${HEADGATE_TEST_HOST}"}
`)
	r := c.Proxies["a"].Routes
	if r[0].Servers[0].Weight != 7 || r[0].Servers[0].URL != "http://127.0.0.1:80/" || r[0].Rewrite.Replacement != "${A}" {
		t.Errorf("route a = %+v, %+v", r[0].Servers[0], r[0].Rewrite)
	}
	if got := r[1].FixedResponse.Body; got != "s3cret shop.example.com, evil: [" {
		t.Errorf("body = %q", got)
	}
}

func TestHostileFilesAreRefused(t *testing.T) {
	laughs := "version: 1\nx-a: &a0 [l, l, l, l, l, l, l, l, l, l]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("x-%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i+1, i, i, i, i, i, i, i, i, i, i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"a file of 100 MB":         {strings.Repeat("a", 100<<20), "more than the maximum of 8MiB"},
		"four million values":      {"a: [" + strings.Repeat("a,", 2<<20) + "a]", "2097152 lines and commas"},
		"binary":                   {"\x7fELF\x02\x01\x01\x00", "control character 0x7F"},
		"a NUL":                    {"version: 1\nx: \x00", "2:4: the file contains the control character 0x00"},
		"not UTF-8":                {"version: 1\n# \xff", "byte 0xFF is not valid UTF-8"},
		"deep flow":                {"version: 1\nx-a: " + strings.Repeat("[", 100), "more than 64 deep"},
		"deep flow, closed":        {"version: 1\nx-a: " + strings.Repeat("[", 20000) + strings.Repeat("]", 20000), "more than 64 deep"},
		"deep mappings":            {"version: 1\nx-a: " + strings.Repeat("{a: ", 100) + strings.Repeat("}", 100), "more than 64 deep"},
		"deep block":               {"version: 1\nx-a:\n" + deepBlock(100), "more than 64 deep"},
		"anchors that expand":      {laughs, "more than 2000000 values"},
		"an anchor in itself":      {"version: 1\nx-a: &a [*a]\n", "deep, counted with aliases"},
		"anchors in themselves":    {"version: 1\nx-a: &a [*a, *a, *a]\n", "deep"},
		"a mapping merging itself": {"version: 1\nproxies: &a\n  <<: *a\n", "deep"},
		"empty":                    {"", "the file is empty"},
		"blank":                    {"\n  \n", "the file is empty"},
		"only a marker":            {"---\n", "the file is empty"},
		"null":                     {"null\n", "the file is empty"},
		"two documents":            {"version: 1\n---\nversion: 1\n", "2:1: the file contains more than one document"},
	} {
		c2, doc, problems := Load("f", []byte(c.text))
		if c2 != nil || doc != nil || len(problems) != 1 || !strings.Contains(problems[0].Error(), c.want) {
			t.Errorf("%s: %.300v, want %q", name, problems, c.want)
		}
	}
}

func TestManyProblemsAreCounted(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\n")
	for i := range 100_000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	_, _, problems := Load("f", []byte(b.String()))
	if len(problems) != 1001 || problems[1000].What != "99000 more problems are not shown" {
		t.Errorf("%d problems, the last %v", len(problems), problems[len(problems)-1])
	}
}

func deepBlock(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String()
}

func TestObjectsHaveBounds(t *testing.T) {
	many := func(n int, f string) string {
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, f, i)
		}
		return b.String()
	}
	for field, text := range map[string]string{
		"proxies: 10001 entries":                     "proxies:\n" + many(10001, "  p%d: {routes: [{fixed_response: {status: 204}}]}\n"),
		"proxies.a.routes: 501 entries":              "proxies:\n  a:\n    routes:\n" + many(501, "      - {path: /%d, fixed_response: {status: 204}}\n"),
		"proxies.a.virtual_hosts: 1001 entries":      "proxies:\n  a:\n    routes: [{fixed_response: {status: 204}}]\n    virtual_hosts:\n" + many(1001, "      - h%d\n"),
		"proxies.a.routes[0].servers: 257 entries":   "proxies:\n  a:\n    routes:\n      - servers:\n" + many(257, "          - {url: \"http://h%d\"}\n"),
		"proxies.a.routes[0].rewrite.regex: 1025 by": "proxies:\n  a:\n    routes:\n      - fixed_response: {status: 204}\n        rewrite: {regex: " + strings.Repeat("a", 1025) + "}\n",
	} {
		_, _, problems := Load("", []byte("version: 1\n"+text))
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), field) {
			t.Errorf("%.300v, want %q", problems, field)
		}
	}
}
