//go:build !linux

package upgrade

import "errors"

// Supported says that this system cannot replace a process without closing sockets.
const Supported = false

// errUnsupported is the error of everything here on this system.
var errUnsupported = errors.New("this system cannot replace a running process without closing its sockets: restart headgate instead")

// Pending reports false: no process replaces another on this system.
func Pending() bool { return false }

// NewLinks returns an error.
func NewLinks() (a, b Link, err error) { return nil, nil, errUnsupported }

// Connect returns an error.
func Connect() (Link, error) { return nil, errUnsupported }

// Start returns an error.
func Start(string) (Process, Link, error) { return nil, nil, errUnsupported }
