package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// guidesRun are the pages whose blocks of code TestGuidesWork runs. A block says by the
// words behind its language what it is:
//
//	sh run           commands, which must succeed
//	sh background    a program that goes on while the next blocks run
//	yaml FILE        a file, written before the block that follows
//	text out         lines that the blocks before have printed; … is any text
//
// docs/guides/api.md and those below docs/guides/moving have tests of their own.
var guidesRun = []string{"README.md", "docs/guides/access-control.md", "docs/guides/backup.md", "docs/guides/client-certificates.md",
	"docs/guides/https.md", "docs/guides/monitoring.md", "docs/guides/policies.md", "docs/guides/redirects-and-headers.md", "docs/guides/running.md"}

// guidesBefore is what runs on the machine of a guide before it begins, as blocks.
var guidesBefore = map[string]string{"docs/guides/backup.md": `
~~~yaml headgate.yaml
version: 1
ports:
  web: {address: "127.0.0.1:8080", protocol: http}
proxies:
  shop: {routes: [{fixed_response: {status: 200}}]}
~~~
~~~sh background
headgate run
~~~
`}

// guideBlock is a block of a page that says what it is.
type guideBlock struct {
	line           int
	language, what string
	text           string
}

func guideBlocks(text string) (blocks []guideBlock) {
	var open *guideBlock
	indent := ""
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(line, " ")
		switch {
		case open == nil && strings.HasPrefix(bare, "```"):
			words := append(strings.Fields(bare[3:]), "", "")
			open, indent = &guideBlock{line: i + 1, language: words[0], what: words[1]}, line[:len(line)-len(bare)]
		case open != nil && strings.HasPrefix(bare, "```"):
			if open.what != "" {
				blocks = append(blocks, *open)
			}
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	return blocks
}

// TestGuidesWork follows guides as a reader does, each in a folder and in a network of
// its own, so that the addresses they name are free.
func TestGuidesWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts many programs")
	}
	for _, page := range guidesRun {
		t.Run(strings.ReplaceAll(strings.TrimSuffix(page, ".md"), "/", "_"), func(t *testing.T) {
			t.Parallel()
			newReader(t, page).follow()
		})
	}
}

// reader follows one page.
type reader struct {
	t    *testing.T
	page string
	dir  string
	env  []string
	logs []string // of what runs in the background
}

// output returns what has been printed by all that runs in the background.
func (r *reader) output() string {
	all := ""
	for _, name := range r.logs {
		text, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		all += string(text)
	}
	return all
}

func newReader(t *testing.T, page string) *reader {
	for _, program := range []string{"sh", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	headgate, err := exec.LookPath("headgate") // testscript.Main has put it there
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(headgate, filepath.Join(dir, "bin", "headgate")); err != nil {
		t.Fatal(err)
	}
	return &reader{t: t, page: page, dir: dir, env: append(os.Environ(), "HOME="+dir, "HEADGATE_STATE="+filepath.Join(dir, "state"), "GORACE=atexit_sleep_ms=10")}
}

// ownPaths are folders of the guides that are in the reader's folder here.
var ownPaths = regexp.MustCompile(`(^|[\s'"=:(@])/(root|backup|etc/prometheus|var/backups|usr/share|etc/bash_completion\.d)/`)

func (r *reader) own(text string) string { return ownPaths.ReplaceAllString(text, "${1}"+r.dir+"/$2/") }

// network gives the calling thread, which ends with its goroutine, a network with
// nothing but a loopback interface. What it starts is in that network too.
func (r *reader) network() {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); errors.Is(err, syscall.EPERM) {
		r.t.Skip("a network of its own takes root")
	} else if err != nil {
		r.t.Fatal(err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer unix.Close(s)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		r.t.Fatal(err)
	}
	lo.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, lo); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) follow() {
	r.network()
	text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(r.page)))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, folder := range []string{"root", "backup", "etc/prometheus", "var/backups", "usr/share/zsh/site-functions", "usr/share/fish/vendor_completions.d", "etc/bash_completion.d"} {
		if err := os.MkdirAll(filepath.Join(r.dir, folder), 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, "root/passphrase"), []byte("a passphrase of a test\n"), 0o600); err != nil {
		r.t.Fatal(err)
	}
	ran, out := 0, ""
	before := strings.ReplaceAll(guidesBefore[r.page], "~~~", "```")
	for _, b := range append(guideBlocks(before), guideBlocks(string(text))...) {
		where := fmt.Sprintf("%s:%d", r.page, b.line)
		switch {
		case b.language == "yaml":
			if err := os.WriteFile(filepath.Join(r.dir, b.what), []byte(r.own(b.text)), 0o600); err != nil {
				r.t.Fatal(err)
			}
		case b.what == "run":
			ran++
			out += r.run(where, b.text)
		case b.what == "background":
			ran++
			r.background(where, b.text)
		case b.what == "out":
			for line := range strings.Lines(b.text) {
				if !shows(out+r.output(), strings.TrimSuffix(line, "\n")) {
					r.t.Errorf("%s: nothing has printed %q:\n%s", where, line, out)
				}
			}
		default:
			r.t.Errorf("%s: blocks are sh run, sh background, text out or yaml FILE, not %s %s", where, b.language, b.what)
		}
	}
	if ran == 0 {
		r.t.Errorf("%s: no block is marked to be run", r.page)
	}
}

// shows reports whether a line of out holds the parts of want between … in their order.
func shows(out, want string) bool {
	for line := range strings.Lines(out) {
		rest, ok := line, true
		for part := range strings.SplitSeq(want, "…") {
			_, rest, ok = strings.Cut(rest, part)
			if !ok {
				break
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// run runs commands to their end. Programs that they start with & end with the test.
func (r *reader) run(where, script string) string {
	r.t.Helper()
	cmd, log := r.start(where, script)
	end := time.AfterFunc(time.Minute, func() { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	err := cmd.Wait()
	end.Stop()
	text, _ := os.ReadFile(log)
	if err != nil {
		r.t.Fatalf("%s: %v\n%s\nin the background:\n%s", where, err, text, r.output())
	}
	return string(text)
}

// background starts a program and waits until headgate has applied its configuration.
func (r *reader) background(where, script string) {
	r.t.Helper()
	_, log := r.start(where, script)
	r.logs = append(r.logs, log)
	for end := time.Now().Add(time.Minute); !strings.Contains(r.output(), "configuration applied"); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("%s: does not serve\n%s", where, r.output())
		}
	}
}

// start starts a script in a group of processes that is killed when the test ends. What
// it prints goes to a file: a pipe would be held open by what it leaves behind.
func (r *reader) start(where, script string) (cmd *exec.Cmd, log string) {
	r.t.Helper()
	file, err := os.CreateTemp(r.t.TempDir(), "printed")
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	cmd = exec.Command("sh", "-c", "set -eu\n"+r.own(script))
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, r.env, file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		r.t.Fatalf("%s: %v", where, err)
	}
	r.t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	return cmd, file.Name()
}
