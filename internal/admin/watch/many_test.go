package watch

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/plan"
)

// planned is a house with a plan.
type planned struct {
	stands
	plan *plan.Plan
}

func (p *planned) Plan() *plan.Plan { return p.plan }

// What is noted of some proxies does not cost a look at all of them: after a start every
// server is heard of for the first time, and the requests of ten thousand proxies once
// took twenty times as long until all were.
func TestOthersAreNotLookedAt(t *testing.T) {
	const all, some = 2000, maxSingle + 1
	var text strings.Builder
	text.WriteString("version: 1\nports: {web: {address: \"127.0.0.1:80\", protocol: http}}\nproxies:\n")
	for i := range all {
		fmt.Fprintf(&text, "  p%04d: {virtual_hosts: [h%d.test], routes: [{servers: [{url: \"http://127.0.0.1:1\"}]}]}\n", i, i)
	}
	cfg, _, problems := config.Load("headgate.yaml", []byte(text.String()))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p, problems := plan.Compile(cfg, nil, plan.House{}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	defer p.Retire(nil)
	w, _ := watching(&planned{plan: p})
	noted := map[string]bool{}
	for i := range some {
		noted[fmt.Sprintf("p%04d", i)] = true
	}
	if n := testing.AllocsPerRun(10, func() { w.checkServers(noted) }); n > all {
		t.Errorf("%d noted proxies of %d took %.0f allocations", some, all, n)
	}
}
