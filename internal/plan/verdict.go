package plan

import (
	"fmt"
	"time"

	"headgate/internal/server/health"
)

// Verdict is what the states of its servers make of a route, or of a TCP or UDP proxy.
type Verdict struct {
	// State is active; degraded when a server takes no requests; failing_open when none
	// is healthy, requests are sent to all of them, and one was answered within the last
	// check interval; down when none was, or no requests are sent.
	State string `json:"state" required:"true"`
	// Since is when the first server failed that makes the route degraded, or the last one
	// that makes it failing_open or down.
	Since time.Time `json:"since,omitzero"`
	// Reason is the server, and what is wrong with it.
	Reason string `json:"reason,omitempty"`
}

// judged is a server whose state counts.
type judged struct {
	name   string
	weight int
	word   string // for the state
	*health.Status
}

// evaluate returns the state of a route from the states of its servers. With failClosed
// unhealthy servers get no requests.
func evaluate(servers []judged, failClosed bool) Verdict {
	usable, clients, open, answering := 0, 0, 0, 0
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
		if srv.Answering {
			answering++
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
		return Verdict{ProxyDegraded, first.Since, fmt.Sprintf("%s no requests; %s is %s: %s", taking(clients-usable, clients), first.name, first.word, first.Reason)}
	case open == clients:
		return Verdict{ProxyDown, last.Since, allOpen(clients)}
	case failClosed:
		return Verdict{ProxyDown, last.Since, fmt.Sprintf("%s, and fail_open is off", noneHealthy(clients))}
	}
	v := Verdict{RouteFailingOpen, last.Since, fmt.Sprintf("%s, so requests go to all of them; %s is %s: %s", noneHealthy(clients), last.name, last.word, last.Reason)}
	if answering == 0 {
		v.State = ProxyDown
		v.Reason = fmt.Sprintf("%s and no request was answered lately; %s is %s: %s", noneHealthy(clients), last.name, last.word, last.Reason)
	}
	return v
}

// taking says how many of the servers something is true of that they take.
func taking(n, of int) string {
	if n == 1 {
		return fmt.Sprintf("1 of %d servers takes", of)
	}
	return fmt.Sprintf("%d of %d servers take", n, of)
}

// noneHealthy says that of all servers.
func noneHealthy(n int) string {
	if n == 1 {
		return "the only server is not healthy"
	}
	return fmt.Sprintf("none of %d servers is healthy", n)
}

// allOpen says that of the circuits of all servers.
func allOpen(n int) string {
	if n == 1 {
		return "the circuit of the only server is open"
	}
	return fmt.Sprintf("the circuits of all %d servers are open", n)
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
	return evaluate(all, false)
}
