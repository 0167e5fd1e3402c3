package interop

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// postgres starts a PostgreSQL with a folder of its own. It does not run as root, so
// it gets a user where the test does.
func postgres(t *testing.T, at string) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		found = []string{needed(t, "postgres", "postgresql")}
	}
	bin := filepath.Dir(found[len(found)-1])
	dir := shortDir(t)
	as := &syscall.SysProcAttr{}
	if os.Getuid() == 0 {
		who, err := user.Lookup("postgres")
		if err != nil {
			if who, err = user.Lookup("nobody"); err != nil {
				t.Fatal(err)
			}
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "tester", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = dir, as
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	host, port, _ := net.SplitHostPort(at)
	out := &record{}
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-h", host, "-p", port, "-k", dir, "-c", "fsync=off")
	server.Dir, server.SysProcAttr, server.Stdout, server.Stderr = dir, as, out, out
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Signal(syscall.SIGQUIT)
		server.Wait()
		if t.Failed() {
			t.Logf("postgres:\n%s", out)
		}
	})
	eventually(t, "postgres is ready", func() bool { return strings.Contains(out.String(), "ready to accept connections") })
}

// TestPostgreSQL holds that psql works through a TCP proxy: large results, large
// inputs, and a transaction that goes on over changes.
func TestPostgreSQL(t *testing.T) {
	t.Parallel()
	psql := needed(t, "psql", "postgresql-client")
	at, through := free(t), free(t)
	postgres(t, at)
	config := func(i int) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
tcp_proxies:
  db: {address: %q, servers: [{address: %q}], idle_timeout: %ds, health_check: {interval: 1s}}
`, through, at, 600+i)
	}
	g := start(t, config(0))
	args := []string{"-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", fmt.Sprintf("host=127.0.0.1 port=%s user=tester dbname=postgres sslmode=disable", port(through))}
	got := command(t, "SELECT i, repeat('x', 50) FROM generate_series(1, 100000) i;\n", psql, args...)
	if n := strings.Count(got, "\n"); n != 100_000 || !strings.HasSuffix(got, "100000|"+strings.Repeat("x", 50)+"\n") {
		t.Errorf("a large result: got %d rows", n)
	}
	var input strings.Builder
	input.WriteString("CREATE TABLE t (i int);\n\\copy t FROM STDIN\n")
	for i := range 200_000 {
		fmt.Fprintln(&input, i)
	}
	input.WriteString("\\.\nSELECT count(*), sum(i) FROM t;\n")
	if got := command(t, input.String(), psql, args...); got != "200000|19999900000\n" {
		t.Errorf("a large input: got %q", got)
	}
	// A transaction stays open while the configuration changes.
	done := make(chan string, 1)
	go func() {
		done <- command(t, "BEGIN; UPDATE t SET i = -1 WHERE i = 7; SELECT pg_sleep(2); COMMIT; SELECT count(*) FROM t WHERE i = -1;\n", psql, args...)
	}()
	eventually(t, "the transaction is under way", func() bool {
		return command(t, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%' AND pid <> pg_backend_pid();\n", psql, args...) == "1\n"
	})
	for i := 1; i <= 5; i++ {
		g.apply(config(i))
	}
	if got := <-done; got != "\n1\n" {
		t.Errorf("a transaction over changes: got %q", got)
	}
}
