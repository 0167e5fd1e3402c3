package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pinWord makes this program pin itself to a core and then become another.
const pinWord = "pin"

// pinAndExec becomes the program args[1:] on core args[0]. The thread that calls
// exec is the one that is left, and keeps its core.
func pinAndExec(args []string) error {
	runtime.LockOSThread()
	cpu, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	pin := func() error { return pinThread(0, cpu) }
	if cpu == anyCPU {
		pin = unpinThread
	}
	if err := pin(); err != nil {
		return err
	}
	return unix.Exec(args[1], args[1:], os.Environ())
}

// anyCPU is given in place of a core when a program may use all.
const anyCPU = -1

// unpinThread lets this thread run on every core.
func unpinThread() error {
	var set unix.CPUSet
	for cpu := range 8 * int(unsafe.Sizeof(set)) { // those that are not there do not matter
		set.Set(cpu)
	}
	return unix.SchedSetaffinity(0, &set)
}

func pinThread(tid, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		return fmt.Errorf("pin to core %d: %w", cpu, err)
	}
	return nil
}

// pinSelf pins every thread of this process; later ones follow.
func pinSelf(cpu int) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		tid, _ := strconv.Atoi(t.Name())
		if err := pinThread(tid, cpu); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// raiseFileLimit raises this process's limit on open files, and that of what it
// starts, as far as it may.
func raiseFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// process is a program that was started here, with its children.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// startProcess starts a program on a core, in a process group of its own. What
// it prints goes to a file in dir.
func startProcess(cpu int, dir string, env []string, argv ...string) (*process, error) {
	path, err := lookPath(argv[0])
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(dir, filepath.Base(path)+".out"))
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(self, append([]string{pinWord, strconv.Itoa(cpu), path}, argv[1:]...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, log: out.Name(), done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in its output
	}()
	return p, nil
}

// ended reports whether the program has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// lastLines returns the last lines of what the program printed.
func (p *process) lastLines() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// signal sends a signal to the program, not to its children.
func (p *process) signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// stop ends the program and its children at once, and waits for it.
func (p *process) stop() {
	_ = unix.Kill(-p.cmd.Process.Pid, unix.SIGKILL) // all may be gone already
	<-p.done
}

// cpu returns the time that the program and its children have spent on a core,
// in user and system mode. It is the kernel's own count in nanoseconds, without
// the ticks of /proc.
func (p *process) cpu() (time.Duration, error) {
	var sum time.Duration
	for _, pid := range p.tree() {
		var t unix.Timespec
		if err := unix.ClockGettime(cpuClock(pid), &t); err != nil {
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ESRCH) {
				continue // ended meanwhile
			}
			return 0, fmt.Errorf("CPU clock of %d: %w", pid, err)
		}
		sum += time.Duration(t.Nano())
	}
	return sum, nil
}

// cpuClock returns the clock that counts a process's time on all its threads:
// what clock_getcpuclockid(3) makes of a process id.
func cpuClock(pid int) int32 {
	const scheduler = 2
	return ^int32(pid)<<3 | scheduler
}

// memory returns the resident memory of the program and its children, in bytes.
func (p *process) memory() (int64, error) {
	var sum int64
	for _, pid := range p.tree() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // ended meanwhile
		}
		n, err := residentOf(string(text))
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// wakes returns how often threads of the program and its children have gone on after a wait.
func (p *process) wakes() (n int64) {
	for _, pid := range p.tree() {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is good
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // ended meanwhile
			}
			n += waitsOf(string(text))
		}
	}
	return n
}

// tree returns the ids of the program and all below it.
func (p *process) tree() []int {
	parents := map[int]int{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is good
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // ended meanwhile
		}
		if pid, parent, ok := parentOf(string(bytes.TrimSpace(text))); ok {
			parents[pid] = parent
		}
	}
	return treeOf(p.cmd.Process.Pid, parents)
}
