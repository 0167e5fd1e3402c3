// Package cutover moves ports to the addresses of the proxy that headgate replaces, watches
// the result, and moves them back. A cutover is one change of the configuration, and its
// revision keeps which ports moved: nothing else has to be stored, and a cutover that was
// reverted, confirmed or undone is read from the history on any machine.
package cutover

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	"headgate/internal/config"
	"headgate/internal/config/document"
	"headgate/internal/ports"
	"headgate/internal/schema"
	"headgate/internal/store/history"
)

// State is the state of a cutover.
type State string

// The states.
const (
	// Pending is a cutover that is reverted unless it is confirmed.
	Pending State = "pending"
	// Confirmed is one that was confirmed, or did not have to be.
	Confirmed State = "confirmed"
	// Reverted is one that was not confirmed.
	Reverted State = "reverted"
	// Returned is a confirmed one whose ports were moved back.
	Returned State = "returned"
)

// Last returns the newest cutover of revisions, which are the newest first, and its state.
// The revision is nil if there is none.
func Last(revisions []history.Revision) (*history.Revision, State) {
	returned := map[int]bool{}
	for i := range revisions {
		r := &revisions[i]
		switch {
		case r.Cutover == nil:
		case r.Cutover.Returns != 0:
			returned[r.Cutover.Returns] = returned[r.Cutover.Returns] || r.State != history.RolledBack
		case r.State == history.RolledBack:
			return r, Reverted
		case returned[r.Number]:
			return r, Returned
		case r.State == history.Applied:
			return r, Pending
		default:
			return r, Confirmed
		}
	}
	return nil, ""
}

// Moves returns what a cutover moves: of each requested port, by its name, the number or the
// address that it gets. Ports that have it already are left out. The error names the port.
func Moves(cfg *config.Config, requested []Request) ([]history.Move, error) {
	var moves []history.Move
	for i, q := range requested {
		p := cfg.Ports[q.Port]
		if p == nil {
			return nil, &RequestError{i, fmt.Errorf("there is no port %s", q.Port)}
		}
		to, err := target(p.Address, q.To)
		if err != nil {
			return nil, &RequestError{i, fmt.Errorf("port %s: %w", q.Port, err)}
		}
		if slices.ContainsFunc(requested[:i], func(o Request) bool { return o.Port == q.Port }) {
			return nil, &RequestError{i, fmt.Errorf("port %s is listed twice", q.Port)}
		}
		if to != p.Address {
			moves = append(moves, history.Move{Port: q.Port, From: p.Address, To: to})
		}
	}
	return moves, nil
}

// Request is a port that is to move.
type Request struct {
	// Port is its name.
	Port string `json:"port" required:"true" max:"128"`
	// To is the new port number, or the new address as IP:PORT.
	To string `json:"to" required:"true" max:"64"`
}

// RequestError is what is wrong with a requested move.
type RequestError struct {
	// Index is its place in the list.
	Index int
	Err   error
}

// Error returns the text of Err.
func (e *RequestError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *RequestError) Unwrap() error { return e.Err }

// target returns the address that a port at from gets.
func target(from netip.AddrPort, text string) (netip.AddrPort, error) {
	if number, err := strconv.ParseUint(text, 10, 16); err == nil && number > 0 {
		return netip.AddrPortFrom(from.Addr(), uint16(number)), nil
	}
	to, err := netip.ParseAddrPort(text)
	if err != nil || to.Port() == 0 {
		return to, fmt.Errorf("%q must be a port number from 1 to 65535, or an address as IP:PORT", text)
	}
	return to, nil
}

// Reversed returns the moves that undo others, of the ports that still have the addresses
// that they were moved to.
func Reversed(cfg *config.Config, moves []history.Move) []history.Move {
	var back []history.Move
	for _, m := range moves {
		if p := cfg.Ports[m.Port]; p != nil && p.Address == m.To {
			back = append(back, history.Move{Port: m.Port, From: m.To, To: m.From})
		}
	}
	return back
}

// Edits returns the edits of the documents that make moves.
func Edits(moves []history.Move) []document.Edit {
	edits := make([]document.Edit, len(moves))
	for i, m := range moves {
		edits[i] = document.Edit{Op: document.Set, Path: schema.JoinPath("ports", m.Port) + ".address", Value: strconv.AppendQuote(nil, m.To.String())}
	}
	return edits
}

// Held returns the ports that still have a socket at an address that moves were made to,
// each with the address: until it is closed, the other proxy cannot listen there. A cutover
// that is active holds all of them.
func Held(all []ports.State, moves []history.Move) []string {
	held := []string{}
	for _, p := range all {
		if p.Holds && slices.ContainsFunc(moves, func(m history.Move) bool { return m.To.String() == p.Address }) {
			held = append(held, p.Name+" "+p.Address)
		}
	}
	return slices.Compact(held)
}
