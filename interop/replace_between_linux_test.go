package interop

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A test kills a process at a step of an upgrade, or holds the step, from between the two: the binary that the
// old process starts is this test program. It puts a relay into the link of both processes
// and becomes headgate, so headgate itself has no code for it.
//
// between names the step and who is killed there, as STEP:old or STEP:new, or STEP:hold, where
// the message waits until the test releases it; linkOfRelay says
// that this process is the relay, and has the process ID of the new process.
const (
	between     = "HEADGATE_INTEROP_BETWEEN"
	linkOfRelay = "HEADGATE_INTEROP_RELAY"
	upgradeLink = "HEADGATE_UPGRADE_LINK"
	relayLog    = "relay"    // in the folder of the test's binary
	releaseFile = "released" // likewise: a message that is held is passed on when it is there
)

// relayScript stands in place of the new binary.
func relayScript(step, who, dir string) string {
	self, _ := os.Executable() // Linux knows it
	return fmt.Sprintf("%s=%s:%s %s_DIR='%s' exec '%s' \"$@\"", between, step, who, between, dir, self)
}

// betweenProcesses runs what this program does in an upgrade, if it is part of one.
func betweenProcesses() (part bool, code int) {
	switch {
	case os.Getenv(linkOfRelay) != "":
		return true, runRelay()
	case os.Getenv(between) != "":
		return true, becomeHeadgate()
	}
	return false, 0
}

// becomeHeadgate starts the relay, and replaces this program by headgate.
func becomeHeadgate() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, "relay:", err)
		return 1
	}
	dir := os.Getenv(between + "_DIR")
	note(dir, fmt.Sprintf("new %d", os.Getpid()))
	switch os.Getenv(between) {
	case "start:old":
		killed(dir, os.Getppid())
	case "start:new":
		killed(dir, os.Getpid())
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	relay := exec.Command("/proc/self/exe")
	relay.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", linkOfRelay, os.Getpid(), os.Getppid()))
	relay.Stderr = os.Stderr
	relay.ExtraFiles = []*os.File{os.NewFile(3, "old"), os.NewFile(uintptr(ends[0]), "new")}
	if err := relay.Start(); err != nil {
		return fail(err)
	}
	if err := unix.Dup3(ends[1], 3, 0); err != nil { // for headgate, which looks for it there
		return fail(err)
	}
	os.Unsetenv(between)
	return fail(syscall.Exec(os.Getenv(binaryFolder), os.Args, os.Environ()))
}

// note adds a line to what the relay reports to the test.
func note(dir, line string) {
	f, err := os.OpenFile(filepath.Join(dir, relayLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	fmt.Fprintln(f, line)
	f.Close()
}

// killed kills a process, and returns when that has ended.
func killed(dir string, pid int) {
	note(dir, fmt.Sprintf("killed %d", pid))
	unix.Kill(pid, unix.SIGKILL)
	for range 1000 {
		if unix.Kill(pid, 0) != nil || zombie(pid) {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// held waits until the test releases a message. A test that has ended releases it, too.
func held(dir string) {
	note(dir, "held")
	for range 60_000 {
		if _, err := os.Stat(filepath.Join(dir, releaseFile)); err == nil {
			return
		}
		if _, err := os.Stat(dir); err != nil {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
}

// runRelay passes on the messages of both processes. When it sees the one that it waits for,
// it kills a process first: what the killed one has sent arrives nevertheless, as it would
// from the queue of the socket.
func runRelay() int {
	var child, parent int
	fmt.Sscan(os.Getenv(linkOfRelay), &child, &parent)
	step, who, _ := strings.Cut(os.Getenv(between), ":")
	victim := map[string]int{"old": parent, "new": child}[who]
	dir := os.Getenv(between + "_DIR")
	var links []*net.UnixConn
	for fd := uintptr(3); fd < 5; fd++ {
		c, err := net.FileConn(os.NewFile(fd, "link"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "relay:", err)
			return 1
		}
		unix.Close(int(fd))
		links = append(links, c.(*net.UnixConn))
	}
	ended := make(chan struct{}, 2)
	pass := func(from, to *net.UnixConn) {
		defer func() { ended <- struct{}{} }()
		data, rights := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*253))
		for done := false; ; {
			n, oobn, _, _, err := from.ReadMsgUnix(data, rights)
			if err != nil || n == 0 {
				return
			}
			var m struct {
				Kind string `json:"kind"`
			}
			json.Unmarshal(data[:n], &m) // what is not JSON is passed on, too
			if !done && m.Kind == step {
				done = true
				if who == "hold" {
					held(dir)
				} else {
					killed(dir, victim)
				}
			}
			_, _, err = to.WriteMsgUnix(data[:n], rights[:oobn], nil)
			closeRights(rights[:oobn])
			if err != nil {
				return
			}
		}
	}
	go pass(links[0], links[1])
	go pass(links[1], links[0])
	<-ended
	return 0
}
