package control

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
)

// childAddress tells a child process of this test where to listen.
const childAddress = "HEADGATE_TEST_LISTEN"

func isChild() bool { return os.Getenv(childAddress) != "" }

// runChild is another process that has an address.
func runChild() {
	l, err := net.Listen("tcp", os.Getenv(childAddress))
	fmt.Println(err)
	if err == nil {
		io.Copy(io.Discard, os.Stdin) // until the test is over
		l.Close()
	}
}

// occupy has another process listen on an address until the test is over, and
// returns its id.
func occupy(t *testing.T, address string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childAddress+"="+address, "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "<nil>\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return cmd.Process.Pid
}
