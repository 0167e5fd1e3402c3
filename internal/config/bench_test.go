package config

import (
	"fmt"
	"strings"
	"testing"
)

// large returns a configuration of n proxies with three routes each.
func large(n int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nports:\n  web: {address: \"0.0.0.0:8080\", protocol: http}\nproxies:\n")
	for i := range n {
		fmt.Fprintf(&b, "  p%05d:\n    virtual_hosts: [h%05d.example.com]\n    routes:\n", i, i)
		for r := range 3 {
			fmt.Fprintf(&b, "      - path: /r%d\n        servers:\n          - {url: \"http://127.0.0.1:3000/\"}\n", r)
		}
	}
	return []byte(b.String())
}

func TestALargeConfigurationIsForQuick(t *testing.T) {
	data := large(50)
	c, _ := mustLoad(t, string(data))
	if len(c.Proxies) != 50 || len(c.Proxies["p00049"].Routes) != 3 {
		t.Errorf("%d proxies", len(c.Proxies))
	}
	if c.loaded.docs[0].Entry("proxies", "p00049").Text == "" {
		t.Error("the library reads it")
	}
}

func BenchmarkLoad10000Proxies(b *testing.B) {
	data := large(10_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, _, problems := Load("headgate.yaml", data); len(problems) > 0 {
			b.Fatal(problems[0])
		}
	}
}

func BenchmarkCheck10000Proxies(b *testing.B) {
	c, doc, _ := Load("headgate.yaml", large(10_000))
	b.ReportAllocs()
	for b.Loop() {
		Check(c, doc.Report())
	}
}

func BenchmarkEffective(b *testing.B) {
	p, r := newProxy("a"), NewRoute()
	b.ReportAllocs()
	for b.Loop() {
		p.Effective(r)
	}
}
