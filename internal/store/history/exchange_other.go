//go:build !linux

package history

import "errors"

var errUnsupported = errors.New("files cannot change their names in one step here")

// exchange is not known here.
func exchange(string, string) error { return errUnsupported }

// isUnsupported reports whether the system knows no exchange.
func isUnsupported(err error) bool { return errors.Is(err, errUnsupported) }

// isBusy reports whether a name cannot be renamed over; here none is known.
func isBusy(error) bool { return false }
