//go:build !unix

package accesslog

// noWait is for named pipes of Unix.
const noWait = 0
