// Abuse runs the same attacks against headgate and nginx, one after the other, and reports
// their cost: processor time, memory, how many requests of other clients were served, and
// how long it took to recover.
//
// It writes its table into docs/performance.md, which must not be edited by hand. It needs
// Linux and nginx; `make abuse` provides them. All traffic stays on 127.0.0.0/8. It does
// not rate the results: numbers of one run can be compared with each other, never with
// those of another machine or day.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "abuse:", err)
		os.Exit(1)
	}
}

// length is how long an attack lasts, clients how many attack at once where one opens
// connection after connection.
var (
	length  time.Duration
	clients int
)

func run(ctx context.Context) error {
	program := flag.String("headgate", "bin/headgate", "`path` of headgate")
	out := flag.String("out", "", "`page` into which the table is written; empty means print only")
	only := flag.String("attacks", "", "`names` of the attacks, with commas between; empty means all")
	flag.DurationVar(&length, "length", 5*time.Second, "how `long` each attack lasts")
	flag.IntVar(&clients, "clients", 1, "how `many` attack at once where one opens connection after connection")
	flag.Parse()
	headgate, err := filepath.Abs(*program)
	if err != nil {
		return err
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "abuse")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	up, err := newUpstream()
	if err != nil {
		return err
	}
	defer up.close()

	var lines []string
	for _, a := range attacks {
		if *only != "" && !strings.Contains(","+*only+",", ","+a.name+",") {
			continue
		}
		for _, p := range []proxy{headgateProxy(headgate), nginxProxy()} {
			if a.quic && !p.quic {
				continue // as Debian's nginx speaks none
			}
			r, err := measure(ctx, dir, p, up, a)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", a.name, p.name, err)
			}
			line := r.row(a.title, p.name)
			fmt.Print(line)
			lines = append(lines, line)
		}
	}
	if *out == "" {
		return nil
	}
	return write(*out, lines)
}

// raiseFileLimit lets the program have as many connections as the system lets it.
func raiseFileLimit() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l)
}

// result is what an attack cost.
type result struct {
	cpu      time.Duration // of the proxy, during the attack
	after    time.Duration // of the proxy, in the seconds behind it
	memory   int64         // the most that was seen, in bytes
	answered int           // of probes
	back     time.Duration // until a request was answered, behind the attack
	note     string
}

func (r *result) row(title, name string) string {
	return fmt.Sprintf("| %s | %s | %.2f | %.2f | %.0f | %d of %d | %.2f | %s |\n", title, name,
		r.cpu.Seconds(), r.after.Seconds(), float64(r.memory)/(1<<20), r.answered, probes, r.back.Seconds(), r.note)
}

// The place of the table in its page.
const begin, end = "<!-- abuse: begin -->\n", "<!-- abuse: end -->\n"

// write puts the table into a page.
func write(page string, lines []string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no place for the table: %q and %q", page, begin, end)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s\nMeasured on %s, %d processors, %s; each attack lasted %v.\n\n", before, begin,
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS+"/"+runtime.GOARCH, length)
	b.WriteString("| attack | proxy | CPU, s | CPU in the 3 s after, s | memory, MiB | requests of others | recovered after, s | |\n|---|---|---|---|---|---|---|---|\n")
	for _, l := range lines {
		b.WriteString(l)
	}
	b.WriteString("\n" + end + after)
	return os.WriteFile(page, []byte(b.String()), 0o644)
}
