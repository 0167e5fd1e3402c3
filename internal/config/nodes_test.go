package config

import (
	"slices"
	"strings"
	"testing"
)

const ofNodes = `version: 1
ports:
  web: {address: "0.0.0.0:80", protocol: http}
  side: {address: "0.0.0.0:8080", protocol: http, nodes: [b]}
  other: {address: "0.0.0.0:8080", protocol: http, nodes: [a, c]}
tcp_proxies:
  db: {address: "0.0.0.0:5432", servers: [{address: "127.0.0.1:1"}], nodes: [b]}
  db2: {address: "0.0.0.0:5432", servers: [{address: "127.0.0.1:2"}], nodes: [c]}
udp_proxies:
  dns: {address: "0.0.0.0:53", servers: [{address: "127.0.0.1:1"}], nodes: [b]}
discovery:
  docker:
    local: {}
    side: {endpoint: "tcp://127.0.0.1:1", nodes: [b]}
`

func TestObjectsAreOfSomeNodes(t *testing.T) {
	c, _, problems := Load("x.yaml", []byte(ofNodes))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for node, want := range map[string][]string{"": {"", "", ""}, "a": {"only on b", "", "only on c"}, "b": {"", "only on a, c", "only on c"}} {
		c.SetNode(node, true)
		got := []string{c.OnlyOn(c.Ports["side"].Nodes), c.OnlyOn(c.Ports["other"].Nodes), c.OnlyOn(c.TCPProxies["db2"].Nodes)}
		if !slices.Equal(got, want) {
			t.Errorf("on %q: %q, want %q", node, got, want)
		}
		if n, want := len(c.Providers()), map[string]int{"": 2, "a": 1, "b": 2}[node]; n != want {
			t.Errorf("on %q: %d providers, want %d", node, n, want)
		}
	}
	var notes []string
	for _, n := range c.UnknownNodes([]string{"a", "b"}) {
		notes = append(notes, n.Error())
	}
	if len(notes) != 2 || !strings.Contains(notes[0], `x.yaml:5`) || !strings.Contains(notes[0], `there is no node "c"`) || !strings.Contains(notes[1], "db2") {
		t.Errorf("got %q", notes)
	}
}

func TestObjectsOfTheSameNodeDoNotShareAnAddress(t *testing.T) {
	for from, to := range map[string]string{
		"nodes: [a, c]}":               "nodes: [a, b]}",
		`"127.0.0.1:2"}], nodes: [c]`:  `"127.0.0.1:2"}], nodes: [b]`,
		`"127.0.0.1:2"}], nodes: [c]}`: `"127.0.0.1:2"}]}`,
		"protocol: http, nodes: [b]}":  "protocol: http, nodes: [b, b]}",
	} {
		text := strings.Replace(ofNodes, from, to, 1)
		if _, _, problems := Load("x.yaml", []byte(text)); len(problems) == 0 {
			t.Errorf("%s is accepted in place of %s", to, from)
		}
	}
}
