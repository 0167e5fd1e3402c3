package control

import "fmt"

// ownerWords is how the child process is named.
func ownerWords(pid int) string { return fmt.Sprintf("control.test (pid %d) has it", pid) }
