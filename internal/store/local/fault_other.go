//go:build !unix

package local

// isFull knows nothing of full disks here: the system's own words have to do.
func isFull(error) bool { return false }

// isReadOnly knows nothing of mounts here.
func isReadOnly(error) bool { return false }

// ownerHelp says what to do about a directory that refuses us.
func ownerHelp(string) string { return "make it writable for the user that headgate runs as" }
