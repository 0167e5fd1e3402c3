//go:build unix

package file

import "syscall"

// noWait keeps the opening of a pipe from waiting for its writer.
const noWait = syscall.O_NONBLOCK
