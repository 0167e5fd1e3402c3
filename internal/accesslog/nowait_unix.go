//go:build unix

package accesslog

import "syscall"

// noWait makes opening a named pipe without a reader fail instead of blocking.
const noWait = syscall.O_NONBLOCK
