package api

import (
	"os"
	"regexp"
	"testing"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/plan"
	"headgate/internal/server/health"
)

// TestConsoleKnowsEveryState: the console shows a state that it does not know as one that
// means nothing, so a new state is put into web/src/theme/states.ts, too.
func TestConsoleKnowsEveryState(t *testing.T) {
	data, err := os.ReadFile("../../../web/src/theme/states.ts")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`(\w+): '(?:good|warn|bad|calm|info)'`).FindAllStringSubmatch(string(data), -1) {
		known[m[1]] = true
	}
	words := []string{
		plan.ProxyActive, plan.ProxyDegraded, plan.ProxyDown, plan.ProxyMaintenance, plan.ProxyInactive, plan.RouteFailingOpen,
		"listening", "draining", "waiting", "permission_denied", "conflict", "error", "starting", "serving", "stopping", // ports; control.Status
		"applied", "confirmed", "rolled_back", // revisions
		"running", "error", "connecting", // sources
	}
	for _, s := range []certs.State{certs.Valid, certs.Expiring, certs.Expired, certs.Missing} {
		words = append(words, string(s))
	}
	for _, s := range []acme.State{acme.Idle, acme.Preflight, acme.Blocked, acme.Pending, acme.Ready, acme.Processing, acme.Valid, acme.Failed} {
		words = append(words, string(s))
	}
	for s := health.Unknown; s <= health.Disabled; s++ {
		words = append(words, s.String())
	}
	for _, w := range words {
		if !known[w] {
			t.Errorf("the state %q has no meaning in web/src/theme/states.ts", w)
		}
	}
}
