//go:build unix

package accesslog

import "syscall"

// noWait lets the opening of a named pipe that nobody reads end with an error
// instead of waiting for a reader.
const noWait = syscall.O_NONBLOCK
