package control

import (
	"bytes"
	"fmt"
	"os"
	"testing"
)

// ownerWords is how a child process, which runs the same binary, is named.
func ownerWords(t *testing.T, pid int) string {
	t.Helper()
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s (pid %d) has it", bytes.TrimSpace(name), pid)
}
