package crowdsec

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
)

func ban(id int64, value string) Decision {
	return Decision{ID: id, Type: "ban", Scope: "Ip", Value: value}
}

func TestDecisionsAreCountedByID(t *testing.T) {
	var d Decisions
	p := netip.MustParsePrefix("203.0.113.9/32")
	add, remove := d.Apply(Delta{Whole: true, New: []Decision{ban(1, "203.0.113.9"), ban(2, "203.0.113.9"), {ID: 3, Type: "captcha", Value: "203.0.113.10"}}}, nil)
	if !slices.Equal(add, []netip.Prefix{p}) || len(remove) > 0 {
		t.Fatalf("add %v, remove %v", add, remove)
	}
	if add, remove = d.Apply(Delta{Deleted: []Decision{ban(1, "203.0.113.9")}}, nil); len(add)+len(remove) > 0 {
		t.Errorf("deleting one of two decisions changes something: add %v, remove %v", add, remove)
	}
	if add, remove = d.Apply(Delta{Deleted: []Decision{ban(2, "203.0.113.9"), ban(77, "203.0.113.9")}}, nil); len(add) > 0 || !slices.Equal(remove, []netip.Prefix{p}) {
		t.Errorf("add %v, remove %v after the last decision", add, remove)
	}
	// A decision that is deleted and made again in one delta changes nothing.
	d.Apply(Delta{New: []Decision{ban(4, "203.0.113.9")}}, nil)
	if add, remove = d.Apply(Delta{Deleted: []Decision{ban(4, "")}, New: []Decision{ban(5, "203.0.113.9")}}, nil); len(add)+len(remove) > 0 {
		t.Errorf("add %v, remove %v", add, remove)
	}
	// All decisions replace those that were missed.
	if add, remove = d.Apply(Delta{Whole: true, New: []Decision{ban(6, "2001:db8::/32"), ban(7, "x"), ban(8, "0.0.0.0/0")}}, func(p netip.Prefix) bool { return p.Bits() > 0 }); len(add) != 1 || !slices.Equal(remove, []netip.Prefix{p}) {
		t.Errorf("add %v, remove %v", add, remove)
	}
	if d.Networks() != 1 || d.Ignored() != 2 {
		t.Errorf("%d networks, %d ignored", d.Networks(), d.Ignored())
	}
}

// TestStreamAsksForAllAfterAnError holds that no delta is lost: the engine forgets what it
// has sent.
func TestStreamAsksForAllAfterAnError(t *testing.T) {
	var asked []string
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "secret" || r.Header.Get("User-Agent") != "crowdsec-headgate-bouncer/v1.2.3" || r.URL.Query().Get("scopes") != "ip,range" {
			t.Errorf("asked %v with %v", r.URL, r.Header)
		}
		asked = append(asked, r.URL.Query().Get("startup"))
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"new": nil, "deleted": nil})
	}))
	defer s.Close()
	c := New(s.URL+"/", "secret", "1.2.3", http.DefaultTransport)
	stream := func() error { _, err := c.Stream(t.Context(), false); return err }
	for _, code := range []int{200, 200, 500, 200, 200, 403} {
		status = code
		if err := stream(); (err != nil) != (code != 200) || errors.Is(err, ErrKey) != (code == 403) {
			t.Errorf("%d: %v", code, err)
		}
	}
	if want := []string{"true", "false", "false", "true", "false", "false"}; !slices.Equal(asked, want) {
		t.Errorf("startup %v, want %v", asked, want)
	}
}
