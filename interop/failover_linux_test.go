package interop

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// replica starts a PostgreSQL that follows another one through a cable, by streaming replication.
func (d *database) replica(at string, through *cable) *database {
	t := d.t
	t.Helper()
	r := &database{t: t, bin: d.bin, at: at, dir: shortDir(t), as: d.as, standby: true}
	if d.as.Credential != nil {
		command(t, "", "chown", fmt.Sprint(d.as.Credential.Uid), r.dir)
	}
	host, port, _ := strings.Cut(through.address, ":")
	backup := exec.Command(filepath.Join(d.bin, "pg_basebackup"), "-h", host, "-p", port, "-U", "tester", "-D", r.data(), "-R", "--checkpoint=fast", "--no-sync")
	backup.Dir, backup.SysProcAttr = r.dir, r.as
	if out, err := backup.CombinedOutput(); err != nil {
		t.Fatalf("pg_basebackup: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("the replica:\n%s", r.out)
		}
	})
	r.start()
	return r
}

// promote ends that a replica follows.
func (d *database) promote() {
	d.t.Helper()
	ctl := exec.Command(filepath.Join(d.bin, "pg_ctl"), "promote", "-D", d.data(), "-w")
	ctl.Dir, ctl.SysProcAttr = d.dir, d.as
	if out, err := ctl.CombinedOutput(); err != nil {
		d.t.Fatalf("pg_ctl promote: %v\n%s", err, out)
	}
	d.standby = false
}

// revision returns the revision that a database has.
func (d *database) revision() string {
	d.t.Helper()
	_, port, _ := strings.Cut(d.at, ":")
	out, err := exec.Command("psql", "-X", "-A", "-t", fmt.Sprintf("host=127.0.0.1 port=%s user=tester dbname=postgres sslmode=disable", port), "-c", "SELECT revision FROM headgate.head").CombinedOutput()
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

// failover is three machines with a primary that a replica follows.
type failover struct {
	*machines
	line    *cable // from the replica to the primary
	replica *database
}

func newFailover(t *testing.T, options ...string) *failover {
	t.Helper()
	needed(t, "psql", "postgresql-client")
	f := &failover{machines: &machines{t: t, cabled: true}}
	f.open()
	f.line = newCable(t, f.db.at)
	f.replica = f.db.replica(free(t), f.line)
	if options != nil {
		f.db.stop()
		f.db.options = options
		f.db.start()
		f.recovers()
	}
	f.caughtUp()
	return f
}

// caughtUp waits until the replica has what the primary has.
func (f *failover) caughtUp() {
	f.t.Helper()
	f.eventually("the replica has caught up", func() bool { return f.replica.revision() == f.db.revision() })
}

// over kills the primary, promotes the replica, and leads the machines there.
func (f *failover) over() {
	f.t.Helper()
	f.db.stop()
	f.machines.line.lead(f.replica.at)
	f.replica.promote()
	f.db = f.replica
}

// lastCommitsMissing has the replica miss two changes that are acknowledged, and promotes it.
func (f *failover) lastCommitsMissing() (kept int) {
	f.t.Helper()
	f.change(f.all[0], 200)
	f.caughtUp()
	kept = f.acked
	f.line.set(true)
	for range 2 {
		f.change(f.all[1], 200)
	}
	f.over()
	for _, one := range f.all {
		f.eventually(one.name+" sees that the store was set back", func() bool { return strings.Contains(one.stored(), "rewound since") })
		if n := one.number(); n != f.acked {
			f.t.Errorf("after the failover, %s serves n%d; want n%d", one.name, n, f.acked)
		}
		f.change(one, 503)
	}
	return kept
}

// TestFailoverToAReplicaThatLacksCommits promotes a replica that lacks the last changes. The
// machines notice, serve what they have, refuse changes, and go on as the operator decides: with
// the database, or with their own state.
func TestFailoverToAReplicaThatLacksCommits(t *testing.T) {
	t.Parallel()
	t.Run("adopt", func(t *testing.T) {
		t.Parallel()
		f := newFailover(t)
		kept := f.lastCommitsMissing()
		if out := f.all[0].stored(); !strings.Contains(out, "reason    ") {
			t.Errorf("the state gives no reason: %s", out)
		}
		for _, one := range f.all {
			one.decide("adopt")
		}
		f.hasEvent("store.rewound", "node a has found that the shared store was set back")
		f.acked = kept
		f.serveAll(kept)
		f.change(f.all[2], 200)
		f.finish()
	})
	t.Run("push", func(t *testing.T) {
		t.Parallel()
		f := newFailover(t)
		f.lastCommitsMissing()
		f.all[1].decide("push")
		f.all[0].decide("adopt")
		f.all[2].decide("adopt")
		f.hasEvent("store.rewound", "node b has found that the shared store was set back")
		f.serveAll(f.acked)
		f.change(f.all[0], 200)
		f.finish()
	})
}

// TestFailoverToASynchronousReplica promotes a replica that commits wait for: no change that was
// acknowledged is lost, and nobody has to decide anything.
func TestFailoverToASynchronousReplica(t *testing.T) {
	t.Parallel()
	f := newFailover(t, "-c", "synchronous_standby_names=*")
	for range 5 {
		f.change(f.all[0], 200)
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for _, one := range f.all {
		load.Go(func() { f.load(ctx, one) })
	}
	f.over()
	promoted := time.Now()
	f.recovers()
	t.Logf("a change is acknowledged %v after the promotion", time.Since(promoted).Round(time.Millisecond))
	f.serveAll(f.acked)
	for _, one := range f.all {
		f.change(one, 200)
		if out := one.stored(); strings.Contains(out, "rewound") || !strings.Contains(out, "following since") {
			t.Errorf("the state of %s: %s", one.name, out)
		}
	}
	stop()
	load.Wait()
	f.finish()
}
