//go:build !linux

package local

import "os"

// memoryFile returns a file that other programs cannot find. If the system allows removing
// open files, it disappears with its last descriptor, else with the temporary ones.
func memoryFile() (*os.File, error) {
	f, err := os.CreateTemp("", "headgate-state-*")
	if err == nil {
		os.Remove(f.Name())
	}
	return f, err
}
