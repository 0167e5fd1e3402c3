package upgrade

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Supported says that this system can replace a process without closing sockets.
const Supported = true

// Variable is the environment variable that tells a new process the number of its end
// of the link.
const Variable = "HEADGATE_UPGRADE_LINK"

// pipe is a Link over a pair of sockets that keep the borders of messages.
type pipe struct{ conn *net.UnixConn }

// NewLinks returns the two ends of a link.
func NewLinks() (a, b Link, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	one, err := linkOf(os.NewFile(uintptr(fds[0]), "link"))
	if err != nil {
		unix.Close(fds[1])
		return nil, nil, err
	}
	other, err := linkOf(os.NewFile(uintptr(fds[1]), "link"))
	if err != nil {
		one.Close()
		return nil, nil, err
	}
	return one, other, nil
}

// linkOf returns the link of a socket, which it closes.
func linkOf(f *os.File) (*pipe, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("descriptor %s is no Unix socket", f.Name())
	}
	return &pipe{u}, nil
}

// Send sends a message.
func (p *pipe) Send(m *Message, files []*os.File) error {
	data, err := encode(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, 0, len(files))
		for _, f := range files {
			fd, err := descriptor(f)
			if err != nil {
				return err
			}
			fds = append(fds, fd)
		}
		rights = unix.UnixRights(fds...)
	}
	n, oobn, err := p.conn.WriteMsgUnix(data, rights, nil)
	if err == nil && (n != len(data) || oobn != len(rights)) {
		err = io.ErrShortWrite
	}
	return err
}

// descriptor returns the number of a file's descriptor. File.Fd may set it to blocking,
// which all processes that share it would notice.
func descriptor(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err == nil {
		err = raw.Control(func(n uintptr) { fd = int(n) })
	}
	return fd, err
}

// Receive receives a message.
func (p *pipe) Receive() (*Message, []*os.File, error) {
	data, rights := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, oobn, flags, _, err := p.conn.ReadMsgUnix(data, rights)
	if err != nil {
		return nil, nil, err
	}
	files, ferr := filesOf(rights[:oobn])
	switch {
	case n == 0 && len(files) == 0:
		return nil, nil, io.EOF
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		ferr = errors.New("a message was cut off; the limit of open files may be too low")
	}
	var m *Message
	if ferr == nil {
		m, ferr = decode(data[:n])
	}
	if ferr != nil {
		closeAll(files)
		return nil, nil, ferr
	}
	return m, files, nil
}

// filesOf returns the descriptors of control messages. They are closed when another
// program is executed.
func filesOf(oob []byte) (files []*os.File, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue // of another kind
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "inherited"))
		}
	}
	return files, nil
}

// Close closes this end.
func (p *pipe) Close() error { return p.conn.Close() }

// Pending reports whether this process was started to replace another one.
func Pending() bool { return os.Getenv(Variable) != "" }

// Connect returns the link to the process that has started this one to replace it. The
// variable is removed, so that no child of this process takes it for its own.
func Connect() (Link, error) {
	text := os.Getenv(Variable)
	os.Unsetenv(Variable)
	fd, err := strconv.Atoi(text)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("$%s is %q, not a descriptor", Variable, text)
	}
	unix.CloseOnExec(fd)
	l, err := linkOf(os.NewFile(uintptr(fd), "link"))
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Start runs a program with the arguments, directory, environment, standard streams and
// user of this process, and returns it with our end of a link to it.
func Start(path string) (Process, Link, error) {
	ours, theirs, err := NewLinks()
	if err != nil {
		return nil, nil, err
	}
	file, err := theirs.(*pipe).conn.File()
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, nil, err
	}
	defer file.Close()
	cmd := exec.Command(path)
	cmd.Args = os.Args
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = []*os.File{file}
	cmd.Env = append(environment(os.Environ()), Variable+"=3")
	if err := cmd.Start(); err != nil {
		ours.Close()
		return nil, nil, err
	}
	c := &child{cmd: cmd, ended: make(chan struct{})}
	go c.wait()
	return c, ours, nil
}

// environment leaves out what is about this process only: the sockets of socket
// activation come from us, and the watchdog expects the new process (sd_listen_fds(3),
// sd_watchdog_enabled(3)).
func environment(all []string) (kept []string) {
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case Variable, "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID":
		default:
			kept = append(kept, v)
		}
	}
	return kept
}

// child is a process that was started.
type child struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // constant when ended is closed
	kill  sync.Once
}

func (c *child) wait() {
	c.err = c.cmd.Wait()
	close(c.ended)
}

// PID is the number of the process.
func (c *child) PID() int { return c.cmd.Process.Pid }

// Kill ends the process.
func (c *child) Kill() {
	c.kill.Do(func() { _ = c.cmd.Process.Kill() }) // it has ended
	<-c.ended
}

// Ended is closed when the process has ended.
func (c *child) Ended() <-chan struct{} { return c.ended }

// Err says how it ended.
func (c *child) Err() error { return c.err }
