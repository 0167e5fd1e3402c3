package config

import (
	"fmt"

	"headgate/internal/target"
)

// fault is one thing that is wrong with a value.
type fault = target.Fault

func wrong(what, remedy string) *fault { return &fault{What: what, Remedy: remedy} }

// Target parses the server's URL. The URL of a checked configuration never
// gives an error.
func (s *Server) Target() (target.Target, error) {
	t, fault := target.Parse(s.URL)
	if fault != nil {
		return target.Target{}, fmt.Errorf("server %q: %s", s.URL, fault.What)
	}
	return t, nil
}
