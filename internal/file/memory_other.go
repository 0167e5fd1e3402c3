//go:build !linux

package file

import "os"

// Memory returns a file that other programs cannot find. If the system allows removing
// open files, it disappears with its last descriptor, else with the temporary ones.
func Memory() (*os.File, error) {
	f, err := os.CreateTemp("", "headgate-*")
	if err == nil {
		os.Remove(f.Name())
	}
	return f, err
}
