package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/internal/server/health"
	"headgate/internal/upstream"
)

// servers are one server for each letter: h well, u unhealthy, e ejected, ? unknown,
// o with an open circuit, 0 without weight.
func serversOf(letters string) []ServerState {
	var out []ServerState
	for i, c := range letters {
		s := upstream.Standing{URL: "http://" + string(rune('a'+i)), Weight: 1}
		s.Since = time.Unix(int64(1000+i), 0)
		switch c {
		case 'h':
			s.State = health.Healthy
		case 'u':
			s.State, s.Reason = health.Unhealthy, "checks fail"
		case 'a':
			s.State, s.Reason, s.Answering = health.Unhealthy, "checks fail", true
		case 'e':
			s.State, s.Reason = health.Ejected, "requests failed in a row"
		case 'o':
			s.State, s.Circuit = health.Healthy, health.CircuitOpen
		case '0':
			s.State, s.Weight = health.Draining, 0
		}
		out = append(out, s)
	}
	return out
}

// One bad route of many makes no proxy down. A route without a healthy server is down, unless
// one of them has answered a request lately: then it fails open.
func TestAProxyIsDownOnlyWhenEveryRouteIs(t *testing.T) {
	for _, test := range []struct {
		routes string // their servers; a ! before them fails closed
		state  string
		reason string
	}{
		{"h", ProxyActive, ""},
		{"hh ?? 0h", ProxyActive, ""},
		{"", ProxyActive, ""},
		{"hu", ProxyDegraded, "route /0: 1 of 2 servers takes no requests; http://b is unhealthy: checks fail"},
		{"h uu h", ProxyDegraded, "1 of 3 routes are down; route /1: none of 2 servers is healthy and no request was answered lately; http://b is unhealthy"},
		{"u", ProxyDown, "route /0: the only server is not healthy and no request was answered lately; http://a is unhealthy"},
		{"uo", ProxyDown, "route /0: none of 2 servers"},
		{"u e", ProxyDown, ""},
		{"h aa h", ProxyDegraded, "failing open; route /1: none of 2 servers is healthy, so requests go to all of them; http://b is unhealthy"},
		{"a", ProxyDegraded, "failing open; route /0: the only server"},
		{"ua", ProxyDegraded, "failing open"},
		{"a e", ProxyDegraded, "1 of 2 routes are down"},
		{"!u", ProxyDown, "route /0: the only server is not healthy, and fail_open is off"},
		{"!u h", ProxyDegraded, "1 of 2 routes are down; route /0: "},
		{"!u h u", ProxyDegraded, "2 of 3 routes are down; route /0: "},
		{"!u u", ProxyDown, ""},
		{"!u oo", ProxyDown, ""},
		{"oo", ProxyDown, "route /0: the circuits of all 2 servers are open"},
		{"0", ProxyDown, "route /0: every server has weight 0"},
		{"0 h", ProxyDegraded, "1 of 2 routes are down"},
		{"h h h h h h h h h h h h !e h h h h h h h h h h h", ProxyDegraded, "1 of 24 routes are down; route /12: "},
	} {
		s := ProxyState{State: ProxyActive}
		for i, letters := range strings.Fields(test.routes) {
			letters, failClosed := strings.CutPrefix(letters, "!")
			r := RouteState{Path: fmt.Sprintf("/%d", i), Servers: serversOf(letters)}
			s.count(&r, failClosed)
			s.Routes = append(s.Routes, r)
		}
		s.sum()
		if s.State != test.state || !strings.HasPrefix(s.Reason, test.reason) || test.reason == "" && s.State != ProxyDown && s.Reason != "" {
			t.Errorf("routes %q:\ngot  %s: %s\nwant %s: %s", test.routes, s.State, s.Reason, test.state, test.reason)
		}
	}
}
