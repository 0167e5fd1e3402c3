package api

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/event"
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

// TestConsoleWordsEveryEvent: the console names the types of events in words, where a
// webhook chooses them and where it tells of one, so each stands in
// web/src/text/events.ts, and no other.
func TestConsoleWordsEveryEvent(t *testing.T) {
	data, err := os.ReadFile("../../../web/src/text/events.ts")
	if err != nil {
		t.Fatal(err)
	}
	worded := map[string]bool{}
	for _, m := range regexp.MustCompile(`'([a-z]+\.[a-z_]+)': '[^']+'`).FindAllStringSubmatch(string(data), -1) {
		worded[m[1]] = true
	}
	objects := regexp.MustCompile(`objects: \{[^}]*\}`).FindString(string(data))
	for _, k := range event.Kinds() {
		if !worded[k.Type] {
			t.Errorf("the event %s has no words in web/src/text/events.ts", k.Type)
		}
		delete(worded, k.Type)
		if object, _, _ := strings.Cut(k.Type, "."); !strings.Contains(objects, object+": '") {
			t.Errorf("events about %s have no words in web/src/text/events.ts", object)
		}
	}
	for name := range worded {
		t.Errorf("web/src/text/events.ts words %s, which is no event", name)
	}
}

// TestConsoleHasEverySetting: every single object of the configuration can be edited on
// the page of the settings.
func TestConsoleHasEverySetting(t *testing.T) {
	data, err := os.ReadFile("../../../web/src/text/settings.ts")
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"/api/v1/settings/(\w+)"`).FindAllSubmatch(document, -1)
	if len(found) < 5 {
		t.Fatalf("openapi.json has %d settings", len(found))
	}
	for _, m := range found {
		if !strings.Contains(string(data), "\n    "+string(m[1])+": ['") {
			t.Errorf("web/src/text/settings.ts has no words for the setting %s", m[1])
		}
	}
}
