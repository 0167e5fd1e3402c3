package config

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/config/decode"
	"headgate/internal/schema"
)

// SetNode says on which node the configuration is used, and whether others have it, too. It
// must be called before the configuration is shared between goroutines. Without it, or with
// "", the objects of all nodes count.
func (c *Config) SetNode(name string, several bool) { c.node, c.several = name, several }

// Here reports whether an object with a list of nodes is used on this node; an empty list
// is all nodes.
func (c *Config) Here(nodes []string) bool {
	return len(nodes) == 0 || c.node == "" || slices.Contains(nodes, c.node)
}

// OnlyOn says where an object is used that is not used on this node, "" for one that is.
func (c *Config) OnlyOn(nodes []string) string {
	if c.Here(nodes) {
		return ""
	}
	return "only on " + strings.Join(nodes, ", ")
}

// apart reports whether two objects are never used on the same node.
func apart(a, b []string) bool {
	return len(a) > 0 && len(b) > 0 && !slices.ContainsFunc(a, func(name string) bool { return slices.Contains(b, name) })
}

// checkNodes reports nodes that are listed twice, or cannot be names.
func checkNodes(nodes []string, at schema.Place) {
	for i, name := range nodes {
		switch {
		case name == "" || len(name) > 63 || strings.ContainsAny(name, " /"):
			at.Index(i).Problem(fmt.Sprintf("%q is not a node name", decode.Shorten(name)), "write a name that \"headgate node list\" shows")
		case slices.Contains(nodes[:i], name):
			at.Index(i).Problemf("remove one of them", "duplicate entry %s", name)
		}
	}
}

// NamesNodes reports whether an object has a list of nodes.
func (c *Config) NamesNodes() bool {
	named := false
	c.eachNodes(schema.NewReport("", nil).Root(), func(nodes []string, _ schema.Place) { named = named || len(nodes) > 0 })
	return named
}

// UnknownNodes returns a note for each name in a list of nodes that is not among the known.
func (c *Config) UnknownNodes(known []string) []Problem {
	report := c.Report()
	c.eachNodes(report.Root(), func(nodes []string, at schema.Place) {
		for i, name := range nodes {
			if slices.Contains(known, name) {
				continue
			}
			remedy := "start the node, or write a name that \"headgate node list\" shows"
			if near := schema.Nearest(name, known); near != "" {
				remedy = fmt.Sprintf("did you mean %q?", near)
			}
			at.Index(i).Note(fmt.Sprintf("there is no node %q", name), remedy)
		}
	})
	return report.Notes()
}

// eachNodes calls a function with each list of nodes.
func (c *Config) eachNodes(root schema.Place, do func(nodes []string, at schema.Place)) {
	for _, name := range sortedNames(c.Ports) {
		do(c.Ports[name].Nodes, root.Field("ports").Field(name).Called("port", name).Field("nodes"))
	}
	for _, name := range sortedNames(c.TCPProxies) {
		do(c.TCPProxies[name].Nodes, root.Field("tcp_proxies").Field(name).Called("TCP proxy", name).Field("nodes"))
	}
	for _, name := range sortedNames(c.UDPProxies) {
		do(c.UDPProxies[name].Nodes, root.Field("udp_proxies").Field(name).Called("UDP proxy", name).Field("nodes"))
	}
	providers := c.Discovery.Providers()
	for _, name := range sortedNames(providers) {
		p := providers[name]
		do(p.OnNodes(), root.Field("discovery").Field(string(p.Via())).Field(name).Called("provider", name).Field("nodes"))
	}
}
