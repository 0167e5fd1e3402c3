package listen

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/testhouse"
)

// childTask tells a child process of this test what to do.
const childTask = "HEADGATE_TEST_CHILD"

func isChild() bool { return os.Getenv(childTask) != "" }

// runChild is a process of its own: one with few file descriptors, or one that
// only listens.
func runChild() {
	log := &testhouse.Log{}
	s, err := Open(netip.MustParseAddrPort("127.0.0.1:0"), nil, nil, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.Serve(serveEcho)
	if os.Getenv(childTask) == "few" {
		used, _ := os.ReadDir("/proc/self/fd")
		few := uint64(len(used) + 5)
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: few, Max: few}); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(s.Bound())
	os.Stdin.Read(make([]byte, 1)) // until the test is over
	s.Close()
	fmt.Print(log)
}

// child starts a child process and returns its address, and a func that ends it
// and returns what it has logged.
func child(t *testing.T, task string) (netip.AddrPort, int, func() string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childTask+"="+task, "GORACE=atexit_sleep_ms=0")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out := &testhouse.Log{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() string {
		in.Close()
		cmd.Wait()
		return out.String()
	}
	t.Cleanup(func() { end() })
	testhouse.Eventually(t, "the child listens", func() bool { return strings.Contains(out.String(), "\n") })
	address, err := netip.ParseAddrPort(strings.TrimSpace(out.String()))
	if err != nil {
		t.Fatal(out)
	}
	return address, cmd.Process.Pid, end
}

func TestOutOfDescriptorsOpenConnectionsGoOn(t *testing.T) {
	address, _, end := child(t, "few")
	connect := func() net.Conn {
		c, err := net.DialTimeout("tcp", address.String(), patience)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetDeadline(time.Now().Add(patience))
		return c
	}
	var served, waiting []net.Conn
	for range 12 {
		c := connect()
		c.SetDeadline(time.Now().Add(10 * time.Second)) // waited for once, by the first that is not served
		if len(waiting) == 0 && echoLine(c) == nil {
			served = append(served, c)
		} else {
			waiting = append(waiting, c)
		}
	}
	if len(served) < 2 || len(waiting) < 2 {
		t.Fatalf("%d served and %d waiting, want some of both", len(served), len(waiting))
	}
	for _, c := range served {
		c.SetDeadline(time.Now().Add(patience))
		if err := echoLine(c); err != nil {
			t.Errorf("an open connection: %v", err)
		}
	}
	// Each connection that ends lets another in.
	for i, c := range waiting {
		if i < len(served) {
			served[i].Close()
		} else {
			waiting[i-len(served)].Close()
		}
		c.SetDeadline(time.Now().Add(patience))
		if i > 0 {
			if err := echoLine(c); err != nil {
				t.Errorf("a connection that waited: %v", err)
			}
			continue
		}
		// The first has sent its line already.
		if _, err := c.Read(make([]byte, 6)); err != nil {
			t.Errorf("the connection that waited first: %v", err)
		}
	}
	log := end()
	if n := strings.Count(log, "accept failed, too many open files, backing off"); n != 1 {
		t.Errorf("it was said %d times, want once: %s", n, log)
	}
	if !strings.Contains(log, "too many open files") || !strings.Contains(log, "LimitNOFILE") {
		t.Errorf("neither reason nor remedy: %s", log)
	}
}

func TestOwnerNamesTheProcess(t *testing.T) {
	address, pid, _ := child(t, "listen")
	name, err := os.ReadFile("/proc/self/comm") // the child runs the same binary
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%s (pid %d)", bytes.TrimSpace(name), pid)
	if got := Owner(address); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Owner(netip.AddrPortFrom(netip.IPv4Unspecified(), address.Port())); got != want {
		t.Errorf("all addresses: got %q, want %q", got, want)
	}
	s := listenAt(t, anyPort)
	if got := Owner(s.Bound()); got != "" {
		t.Errorf("our own socket: got %q", got)
	}
}

func TestAHiddenSocketTakesWhoIsThereAndNobodyElse(t *testing.T) {
	s := listenAt(t, anyPort)
	early := dial(t, s)
	s.hide()
	c, err := net.DialTimeout("tcp", s.Bound().String(), 100*time.Millisecond)
	if err == nil {
		c.Close()
		t.Skip("this kernel hides no sockets")
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new client got %v, want that it is refused", err)
	}
	s.Serve(serveEcho)
	if err := echoLine(early); err != nil {
		t.Errorf("who came before: %v", err)
	}
}
