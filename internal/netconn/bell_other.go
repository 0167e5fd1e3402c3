//go:build !linux

package netconn

import "errors"

// Bell wakes a goroutine through the runtime's poller; see the one for Linux.
type Bell struct{}

// NewBell fails on this system.
func NewBell(func() bool) (*Bell, error) { return nil, errors.ErrUnsupported }

// Ring does nothing.
func (*Bell) Ring() {}

// Wait fails.
func (*Bell) Wait() error { return errors.ErrUnsupported }

// Close does nothing.
func (*Bell) Close() error { return nil }
