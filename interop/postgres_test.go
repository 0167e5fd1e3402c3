package interop

import (
	"crypto/x509"
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

	"headgate/internal/certs/certstest"
)

// database is a PostgreSQL in a folder of its own.
type database struct {
	t       *testing.T
	bin     string // folder of its programs
	at, dir string
	as      *syscall.SysProcAttr
	server  *exec.Cmd // nil while it does not run
	out     *record
	options []string // of the server
	standby bool     // it follows another one
}

// postgres starts a PostgreSQL with a folder of its own. It does not run as root, so
// it gets a user where the test does.
func postgres(t *testing.T, at string) *database {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		found = []string{needed(t, "postgres", "postgresql")}
	}
	d := &database{t: t, bin: filepath.Dir(found[len(found)-1]), at: at, dir: shortDir(t), as: &syscall.SysProcAttr{}}
	if os.Getuid() == 0 {
		who, err := user.Lookup("postgres")
		if err != nil {
			if who, err = user.Lookup("nobody"); err != nil {
				t.Fatal(err)
			}
		}
		uid, _ := strconv.Atoi(who.Uid)
		gid, _ := strconv.Atoi(who.Gid)
		if err := os.Chown(d.dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		d.as.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	initdb := exec.Command(filepath.Join(d.bin, "initdb"), "-D", d.data(), "-U", "tester", "--auth=trust", "-E", "UTF8", "--locale=C", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = d.dir, d.as
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	t.Cleanup(func() {
		d.stop()
		if t.Failed() {
			t.Logf("postgres:\n%s", d.out)
		}
	})
	d.start()
	return d
}

func (d *database) data() string { return filepath.Join(d.dir, "data") }

// start runs the server until it is ready.
func (d *database) start() {
	d.t.Helper()
	host, port, _ := net.SplitHostPort(d.at)
	d.out = &record{}
	d.server = exec.Command(filepath.Join(d.bin, "postgres"), "-D", d.data(), "-h", host, "-p", port, "-k", d.dir, "-c", "fsync=off")
	d.server.Args = append(d.server.Args, d.options...)
	d.server.Dir, d.server.SysProcAttr, d.server.Stdout, d.server.Stderr = d.dir, d.as, d.out, d.out
	if err := d.server.Start(); err != nil {
		d.t.Fatal(err)
	}
	ready := "ready to accept connections"
	if d.standby {
		ready = "ready to accept read-only connections"
	}
	eventually(d.t, "postgres is ready", func() bool { return strings.Contains(d.out.String(), ready) })
}

// secure starts the server again with TLS, and returns the file with the authority of its
// certificate.
func (d *database) secure() string {
	d.t.Helper()
	d.stop()
	authority := certstest.Sign(d.t, certstest.Authority("Database"), nil)
	chain, key := certstest.Write(d.t, d.t.TempDir(), "db", certstest.Sign(d.t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, &authority))
	put := func(name string, mode os.FileMode, data []byte) string {
		name = filepath.Join(d.dir, name)
		err := os.WriteFile(name, data, mode)
		if err == nil && d.as.Credential != nil {
			err = os.Chown(name, int(d.as.Credential.Uid), int(d.as.Credential.Gid))
		}
		if err != nil {
			d.t.Fatal(err)
		}
		return name
	}
	for name, from := range map[string]string{"cert": chain, "key": key} {
		data, err := os.ReadFile(from)
		if err != nil {
			d.t.Fatal(err)
		}
		d.options = append(d.options, "-c", "ssl_"+name+"_file="+put(name, 0o600, data))
	}
	d.options = append(d.options, "-c", "ssl=on")
	d.start()
	return put("ca", 0o644, certstest.PEM(authority))
}

// stop ends the server at once.
func (d *database) stop() {
	if d.server == nil {
		return
	}
	d.server.Process.Signal(syscall.SIGQUIT)
	d.server.Wait()
	d.server = nil
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
