package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// upgradedPair is a pair under load whose processes are replaced.
type upgradedPair struct {
	*pairOfMachines
	n, acked, made, refusals int
	answers                  map[string]int // why changes were refused
	stop                     func()         // ends the load
}

// upgradable has both machines run a copy of the binary, so that another can be put in its place.
func upgradable(w *twin) {
	w.binary = filepath.Join(w.dir, "headgate")
	(&replaced{gate: w.gate, binary: w.binary}).install("")
}

// newUpgradedPair starts a pair and the load, with settings in the node.yaml of both machines.
func newUpgradedPair(t *testing.T, settings string) *upgradedPair {
	t.Helper()
	p := &upgradedPair{pairOfMachines: newPairOf(t, pairConfig(), upgradable), answers: map[string]int{}}
	p.b.is("follower", true)
	if settings != "" {
		for _, w := range []*twin{p.b, p.a} {
			w.stop()
			was, err := os.ReadFile(filepath.Join(w.state(), "node.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			w.put(filepath.Join("state", "node.yaml"), string(was)+settings)
			w.again()
		}
		p.a.is("leader", true)
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, one := range p.all {
		for range 2 {
			load.Go(func() { p.load(ctx, one) })
		}
		go acknowledge(one.told)
	}
	p.stop = func() { stop(); load.Wait() }
	t.Cleanup(p.stop)
	return p
}

// change makes a change on the leader, which may refuse it while it is upgraded.
func (p *upgradedPair) change() {
	p.n++
	p.made++
	if out := p.count(p.a, p.n); out.status == 200 {
		p.acked = p.n
	} else {
		p.refusals++
		p.answers[fmt.Sprint(out.status, " ", out.body["code"], " ", out.body["detail"], " ", out.err)]++
		if out.status != 503 || out.body["code"] != "upgrading" {
			p.t.Errorf("a change during an upgrade: %d %v %v", out.status, out.body, out.err)
		}
	}
}

// acknowledged makes a change that must be acknowledged by the process that runs on a machine now,
// and that both serve.
func (p *upgradedPair) acknowledged(on *twin) {
	p.t.Helper()
	p.n++
	p.made++
	p.must(on, p.n)
	p.acked = p.n
	p.serves(p.a, p.n)
	p.serves(p.b, p.n)
}

// replaceProcess upgrades a machine while changes are made, and holds that both keep their roles
// and serve what was acknowledged.
func (p *upgradedPair) replaceProcess(w *twin) {
	p.t.Helper()
	p.alone(w.machine)
	began := time.Now()
	done := make(chan struct{})
	p.upgrade(w.machine, func() {
		for range 5 {
			p.change()
		}
		close(done)
	})
	<-done
	took := time.Since(began)
	p.a.is("leader", true)
	p.b.is("follower", true)
	p.eventually("both serve what was acknowledged", func() bool { return p.a.number() >= p.acked && p.b.number() == p.a.number() })
	p.acknowledged(p.a)
	p.refused(p.b, "not_leader", "https://"+p.a.cable.address)
	p.alone(w.machine)
	p.t.Logf("upgrade of %s took %v with 5 changes", w.name, took.Round(time.Millisecond))
}

// finish ends the load, and holds that no request failed, nothing has diverged and both machines
// have the same files.
func (p *upgradedPair) finish() {
	p.t.Helper()
	p.stop()
	p.failures.Range(func(text, _ any) bool { p.t.Errorf("failed request: %v", text); return true })
	p.t.Logf("%d requests, %d failed; %d changes, %d refused %v, newest acknowledged n%d", p.served.Load(), p.failed.Load(), p.made, p.refusals, p.answers, p.acked)
	var texts []string
	for _, one := range p.all {
		data, err := os.ReadFile(filepath.Join(one.dir, "headgate.yaml"))
		if err != nil {
			p.t.Fatal(err)
		}
		texts = append(texts, string(data))
		if log := one.log.String(); strings.Contains(log, "diverged") || strings.Contains(log, "another history") {
			p.t.Errorf("%s has logged a difference:\n%s", one.name, log)
		}
	}
	if len(slices.Compact(texts)) != 1 {
		p.t.Errorf("the machines have different files in the end:\n%s", strings.Join(texts, "\n"))
	}
}

// TestUpgradesOfAPair replaces the processes of both machines under load, while changes are made:
// no request fails, and no change that was acknowledged is lost. Afterwards the leader leads, and
// the follower follows, also if the other machine is away meanwhile, and can be promoted.
func TestUpgradesOfAPair(t *testing.T) {
	t.Parallel()
	p := newUpgradedPair(t, "")
	for range upgradesInARow(2) {
		p.replaceProcess(p.b)
		p.replaceProcess(p.a)
	}
	for _, one := range p.all {
		if log := one.log.String(); strings.Contains(log, "cannot be followed") || strings.Contains(log, "level=ERROR") {
			t.Errorf("%s has logged an error:\n%s", one.name, log)
		}
	}

	// The leader leads although it cannot ask the follower.
	p.b.cable.set(true)
	p.a.cable.set(true)
	p.b.is("follower", false)
	p.upgrade(p.a.machine, func() {})
	p.n++
	p.must(p.a, p.n)
	p.upgrade(p.b.machine, func() {})
	p.b.is("follower", false)
	p.a.cable.set(false)
	p.b.cable.set(false)
	p.serves(p.b, p.n)

	// The new processes hand over to each other.
	p.b.is("follower", true)
	p.b.manager().must(200, "POST", "/pair/promote", `{}`, "")
	p.a.is("follower", true)
	p.acknowledged(p.b)
	p.finish()
}

// TestUpgradesOfAPairInStep is the same for a pair that acknowledges a change only when both have
// it. A change that is made while the follower is upgraded waits for it, and is not refused.
func TestUpgradesOfAPairInStep(t *testing.T) {
	t.Parallel()
	p := newUpgradedPair(t, "follow: {sync: true}\n")
	for range upgradesInARow(2) {
		was := p.refusals
		p.replaceProcess(p.b)
		if p.refusals > was {
			t.Errorf("changes on the leader were refused while the follower was upgraded: %v", p.answers)
		}
		p.replaceProcess(p.a)
	}
	p.finish()

	p.a.cable.set(true)
	p.b.cable.set(true)
	p.a.is("leader", false)
	p.refused(p.a, "not_followed", "sync")
}

// TestFailedUpgradesOfAPair starts a new process that ends at once, one that refuses to start when
// the old one has handed everything over, and one that is killed when it serves: the old process
// leads, or follows, as before.
func TestFailedUpgradesOfAPair(t *testing.T) {
	t.Parallel()
	p := newUpgradedPair(t, "")
	for _, w := range []*twin{p.b, p.a} {
		p.alone(w.machine)
		r := &replaced{gate: w.gate, binary: w.binary}
		for _, script := range []string{"exit 1", `exec $REAL "$@" --store 'postgres://tester@127.0.0.1:1/x?sslmode=disable'`} {
			r.install(script)
			done := make(chan struct{})
			go func() { defer close(done); p.change() }()
			if out, err := r.command("upgrade"); err == nil {
				t.Fatalf("%s was upgraded: %s", w.name, out)
			}
			<-done
			p.a.is("leader", true)
			p.b.is("follower", true)
			p.acknowledged(p.a)
		}
		r.install("")
		held, err := net.Dial("tcp", w.web) // keeps the old process
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(held, "GET / HTTP/1.1\r\n")
		pid := p.upgrade(w.machine, func() {})
		w.up.Store(false) // requests to the process that is killed are lost
		syscall.Kill(pid, syscall.SIGKILL)
		eventually(t, "the old process serves again", func() bool { return strings.Contains(w.log.String(), "this one serves again") })
		w.up.Store(true)
		held.Close()
		p.a.is("leader", true)
		p.b.is("follower", true)
		p.acknowledged(p.a)
	}
	p.b.manager().must(200, "POST", "/pair/promote", `{}`, "")
	p.a.is("follower", true)
	p.acknowledged(p.b)
	p.finish()
}
