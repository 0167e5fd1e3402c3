//go:build !linux

package local

import "os"

// memoryFile returns a file that nobody else finds. Where the system lets open files
// be removed it is gone with its last descriptor, elsewhere with the temporary ones.
func memoryFile() (*os.File, error) {
	f, err := os.CreateTemp("", "headgate-state-*")
	if err == nil {
		os.Remove(f.Name())
	}
	return f, err
}
