//go:build !unix

package file

// noWait is nothing: files do not make an opener wait here.
const noWait = 0
