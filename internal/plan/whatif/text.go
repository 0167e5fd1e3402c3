package whatif

import (
	"fmt"
	"strings"

	"headgate/internal/plan"
)

// Lines returns a description of the result.
func (r *Result) Lines() []string {
	if r == nil || r.Requests == 0 {
		return nil
	}
	of := "of the last " + requests(r.Requests)
	if r.Changed == 0 {
		return append([]string{"what if: " + of + " none would be handled otherwise"}, r.banLines()...)
	}
	var parts []string
	for _, p := range []struct {
		n    int
		text string
	}{{r.Refused, "refused"}, {r.Password, "now need a password"}, {r.Allowed, "no longer refused"}, {r.Proxy, "taken by another proxy"}, {r.Route, "taken by another route"}, {r.Servers, "sent to other servers"}, {r.Answer, "answered otherwise"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.text))
		}
	}
	lines := []string{fmt.Sprintf("what if: %s %d would be handled otherwise: %s", of, r.Changed, strings.Join(parts, ", "))}
	for _, e := range r.Examples {
		line := fmt.Sprintf("  %s %s: %s -> %s", e.Method, e.URL, words(&e.Before), words(&e.After))
		if e.Count > 1 {
			line += fmt.Sprintf(" (%s)", requests(e.Count))
		}
		lines = append(lines, line)
	}
	return append(lines, r.banLines()...)
}

// banLines says what new and changed ban rules would have done.
func (r *Result) banLines() []string {
	var lines []string
	for i := range r.Bans {
		if r.Bans[i].Changed {
			lines = append(lines, "what if: "+r.Bans[i].String())
		}
	}
	return lines
}

func requests(n int) string {
	if n == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", n)
}

// words returns a short description of a decision.
func words(d *plan.Decision) string {
	var parts []string
	if d.Proxy != "" {
		parts = append(parts, "proxy "+d.Proxy+" "+d.Route)
	}
	switch {
	case len(d.Servers) > 0:
		s := d.Servers[0]
		if more := len(d.Servers) - 1; more > 0 {
			s += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, s)
	case d.Status > 0:
		s := fmt.Sprintf("status %d", d.Status)
		if d.Location != "" {
			s += " to " + d.Location
		}
		parts = append(parts, s+" ("+orReason(d)+")")
	default:
		parts = append(parts, "no port")
	}
	return strings.Join(parts, ", ")
}

func orReason(d *plan.Decision) string {
	if d.Reason != "" {
		return d.Reason
	}
	return d.By
}
