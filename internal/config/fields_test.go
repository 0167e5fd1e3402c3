package config

import (
	"slices"
	"strings"
	"testing"
)

// lacking returns what a release knows that lacks fields.
func lacking(fields ...string) []string {
	return slices.DeleteFunc(slices.Clone(KnownFields()), func(name string) bool { return slices.Contains(fields, name) })
}

func TestFieldsThatAnotherReleaseLacksAreFound(t *testing.T) {
	const text = `version: 1
x-anchors: {limits: &few {header_size: 1KiB}}
ports:
  web: {address: "0.0.0.0:80", protocol: http, limits: *few}
  side: {address: "0.0.0.0:81", protocol: http, nodes: [b]}
proxies:
  shop:
    virtual_hosts: [shop.example.com]
    compression: {}
    routes:
      - {path: /, servers: [{url: "http://127.0.0.1:1"}, {url: "http://127.0.0.1:2", backup: true}]}
`
	c, _, problems := Load("x.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for lack, want := range map[string]string{
		"":                   "",
		"UDPProxy.nodes":     "", // it is not used
		"Port.nodes":         "x.yaml:5",
		"Limits.header_size": "x.yaml:2", // behind an alias
		"Server.backup":      "x.yaml:11",
		"Proxy.compression":  "x.yaml:9",
		"Config.ports":       "x.yaml:3",
	} {
		var got []string
		for _, p := range c.FieldsOutside(lacking(lack), "node b (headgate 1.2)", "install it") {
			got = append(got, p.Error())
		}
		if want == "" && len(got) == 0 {
			continue
		}
		field := lack[strings.Index(lack, ".")+1:]
		if want == "" || len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.Contains(got[0], "node b (headgate 1.2) does not know the field "+field) {
			t.Errorf("without %s: got %q, want one at %s", lack, got, want)
		}
	}
	if got := c.FieldsOutside(nil, "it", "x"); len(got) == 0 || len(got) > maxOutside {
		t.Errorf("%d problems", len(got))
	}
	if !slices.IsSorted(KnownFields()) || slices.Contains(KnownFields(), "Config.x-anchors") {
		t.Error("the list is not sorted, or has keys that are ignored")
	}
}
