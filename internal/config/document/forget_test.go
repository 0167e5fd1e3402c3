package document

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"weak"

	"go.yaml.in/yaml/v4"
)

// A document that forgets its trees keeps none of their nodes: one that stayed would keep
// those that were made together with it, and so all.
func TestForgetKeepsNoNode(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 1\nadmin: {address: \"\"}\nproxies:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  p%d: {virtual_hosts: [h%d.test], routes: [{path: /}]}\n", i, i)
	}
	text.WriteString("access_log: {enabled: false}\n")
	d, p := Read("x.yaml", []byte(text.String()), Outline{Section: func(key string) bool { return key == "proxies" }})
	if p != nil {
		t.Fatal(p)
	}
	trees := treesOf(d)
	d.Forget()
	runtime.GC()
	kept := 0
	for _, tree := range trees {
		if tree.Value() != nil {
			kept++
		}
	}
	if len(trees) != 1000 || kept > 0 {
		t.Errorf("%d of %d trees are kept", kept, len(trees))
	}
	if line, _ := d.Position("proxies.p999.routes[0].path"); line != 1003 {
		t.Errorf("the last route stands in line %d, want 1003", line)
	}
}

func treesOf(d *Document) (all []weak.Pointer[yaml.Node]) {
	for i := range d.list {
		if e := &d.list[i]; e.Section != "" {
			all = append(all, weak.Make(e.value))
		}
	}
	return all
}
