// Package health tracks which servers are healthy. check.go checks them, server.go keeps
// the state of each, from checks and from requests, and removes it from load balancing;
// circuit.go is the circuit breaker.
//
// A Server is the run-time state of one server of a route. A Check belongs to an address
// and settings and can serve many. Both are kept by plans that do not change them.
package health

import (
	"fmt"
	"time"
)

// State is the state of a server.
type State uint8

// The states. A server of unknown state gets requests.
const (
	Unknown State = iota
	Healthy
	Unhealthy
	Ejected
	SlowStart
	Draining
	Disabled
)

var states = [...]string{"unknown", "healthy", "unhealthy", "ejected", "slow_start", "draining", "disabled"}

// String returns the state's word.
func (s State) String() string { return states[s] }

// MarshalText writes the state's word.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the state's word.
func (s *State) UnmarshalText(text []byte) error {
	for i, word := range states {
		if word == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("unknown state %q", text)
}

// Status is the status of a server, for people.
type Status struct {
	// State is the current state.
	State State `json:"state" required:"true"`
	// Since is when the state began.
	Since time.Time `json:"since" required:"true"`
	// Reason is a short explanation.
	Reason string `json:"reason,omitempty"`
	// Hold is what an operator has set: draining, disabled, or "" for nothing.
	Hold string `json:"hold,omitempty"`
	// Until is when an ejection, or what an operator has set, ends.
	Until time.Time `json:"until,omitzero"`
	// LastError is the last error of a check or a request.
	LastError string `json:"last_error,omitempty"`
	// LastErrorAt is when it occurred.
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	// Answering is whether a server that fails its checks has responded to a request within
	// the last check interval: its route fails open.
	Answering bool `json:"answering,omitempty"`
	// Circuit is closed, open or half_open; "" without a breaker.
	Circuit string `json:"circuit,omitempty"`
	// Active is the number of requests in progress on the server.
	Active int `json:"active" required:"true"`
	// Ejections is how often the server was ejected since it was configured.
	Ejections uint64 `json:"ejections,omitempty"`
	// Opened is how often its circuit was opened since it was configured.
	Opened uint64 `json:"circuit_opened,omitempty"`
	// Passed is the number of checks that passed.
	Passed uint64 `json:"checks_passed,omitempty"`
	// Failed is the number of checks that failed.
	Failed uint64 `json:"checks_failed,omitempty"`
	// Recent are the last checks as characters, the latest last: + passed, - failed.
	Recent string `json:"recent,omitempty"`
	// Results are the last checks in detail.
	Results []Result `json:"results,omitempty"`
}

// Result is one check.
type Result struct {
	// At is when the check ended.
	At time.Time `json:"at"`
	// Took is its duration in milliseconds.
	Took float64 `json:"took_ms"`
	// Healthy is the result of the check.
	Healthy bool `json:"healthy"`
	// Status is the status of the response, 0 if there was none.
	Status int `json:"status,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
}

// Usable reports whether the server gets requests.
func (s *Status) Usable() bool {
	return s.Hold == "" && s.State != Unhealthy && s.State != Ejected && s.Circuit != CircuitOpen
}
