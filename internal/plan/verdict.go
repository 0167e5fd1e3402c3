package plan

import (
	"fmt"
	"time"

	"headgate/internal/server/health"
)

// Verdict is what the states of its servers make of a route, or of a TCP or UDP proxy.
type Verdict struct {
	// State is active; degraded when a server takes no requests; failing_open when
	// none is well and all are asked all the same; down when nobody is asked.
	State string `json:"state"`
	// Since is when the first server went that makes it degraded, or the last that
	// makes it failing_open or down. Reason says which.
	Since  time.Time `json:"since,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// judged is a server whose state counts.
type judged struct {
	name   string
	weight int
	word   string // for the state
	*health.Status
}

// judge says what servers make of whoever has them. With failClosed unhealthy servers
// are never asked.
func judge(servers []judged, failClosed bool) Verdict {
	usable, clients, open := 0, 0, 0
	var first, last *judged // to go, of those that take no requests
	for i := range servers {
		srv := &servers[i]
		if srv.weight == 0 || srv.Hold != "" {
			continue
		}
		clients++
		if srv.Usable() {
			usable++
			continue
		}
		if srv.Circuit == health.CircuitOpen {
			open++
		}
		if first == nil || srv.Since.Before(first.Since) {
			first = srv
		}
		if last == nil || srv.Since.After(last.Since) {
			last = srv
		}
	}
	switch {
	case clients == 0 && len(servers) > 0:
		return Verdict{State: ProxyDown, Reason: noClients(servers)}
	case first == nil:
		return Verdict{State: ProxyActive}
	case usable > 0:
		return Verdict{ProxyDegraded, first.Since, fmt.Sprintf("%d of %d servers take no requests; %s is %s: %s", clients-usable, clients, first.name, first.word, first.Reason)}
	case open == clients:
		return Verdict{ProxyDown, last.Since, fmt.Sprintf("the circuits of all %d servers are open", clients)}
	case failClosed:
		return Verdict{ProxyDown, last.Since, fmt.Sprintf("none of %d servers is well, and fail_open is off", clients)}
	}
	return Verdict{RouteFailingOpen, last.Since, fmt.Sprintf("none of %d servers is well, and all are asked all the same; %s is %s: %s", clients, last.name, last.word, last.Reason)}
}

// noClients says why no server takes new clients.
func noClients(servers []judged) string {
	for i := range servers {
		if servers[i].Hold != "" {
			return fmt.Sprintf("no server takes new clients: %s is %s, %s", servers[i].name, servers[i].word, servers[i].Reason)
		}
	}
	return "every server has weight 0 and takes no new clients"
}

// JudgeStream says what its servers make of a TCP or UDP proxy.
func JudgeStream(servers []*StreamServer) Verdict {
	all := make([]judged, len(servers))
	for i, s := range servers {
		status := s.Live.Status(false)
		all[i] = judged{s.Address, s.Weight, status.State.String(), &status}
	}
	return judge(all, false)
}
