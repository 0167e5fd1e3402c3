//go:build unix

package postgres

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// server is a PostgreSQL server in a temporary folder, at a socket there. All tests of the
// package use one, each with a database of its own.
var server struct {
	once   sync.Once
	dir    string
	user   string
	err    error
	absent bool
	stop   func()
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.stop != nil {
		server.stop()
	}
	os.Exit(code)
}

// programOf returns where a program of PostgreSQL is. Debian keeps them out of the path.
func programOf(name string) (string, error) {
	if all, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); err == nil && len(all) > 0 {
		return all[len(all)-1], nil
	}
	return exec.LookPath(name)
}

// listenVariable is the variable with the addresses of TCP that the server listens on.
const listenVariable = "HEADGATE_TEST_LISTEN"

// startServer starts the server as a user without rights: it refuses to run as root.
func startServer() error {
	initdb, err := programOf("initdb")
	if err != nil {
		server.absent = true
		return err
	}
	postgres, err := programOf("postgres")
	if err != nil {
		server.absent = true
		return err
	}
	if server.dir, err = os.MkdirTemp("", "postgres"); err != nil {
		return err
	}
	as := &syscall.SysProcAttr{}
	server.user = "headgate"
	if os.Geteuid() == 0 {
		const nobody = 65534
		as.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		if err := os.Chown(server.dir, nobody, nobody); err != nil {
			return err
		}
	}
	data := filepath.Join(server.dir, "data")
	fresh := exec.Command(initdb, "-D", data, "-U", server.user, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale", "C")
	fresh.SysProcAttr, fresh.Dir = as, server.dir
	if out, err := fresh.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	run := exec.Command(postgres, "-D", data, "-k", server.dir, "-c", "listen_addresses="+os.Getenv(listenVariable), "-c", "fsync=off", "-c", "max_connections=100")
	run.SysProcAttr, run.Dir = as, server.dir
	var out bytes.Buffer
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		return err
	}
	ended := endOfProcess(run)
	server.stop = func() {
		run.Process.Signal(syscall.SIGINT)
		<-ended
		os.RemoveAll(server.dir)
	}
	for {
		c, err := net.Dial("unix", socketPath())
		if err == nil {
			c.Close()
			if admin("SELECT 1") == nil {
				return nil
			}
		}
		select {
		case <-ended:
			return fmt.Errorf("the server has ended: %s", out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// endOfProcess returns what is closed when a process has ended.
func endOfProcess(run *exec.Cmd) <-chan struct{} {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run.Wait()
	}()
	return ended
}

func socketPath() string { return filepath.Join(server.dir, ".s.PGSQL.5432") }

func urlOf(database string) string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s", server.user, database, server.dir)
}

// admin runs a statement in the database of the server itself.
func admin(sql string) error { return statement("postgres", sql) }

func statement(database, sql string) error {
	config, err := pgconn.ParseConfig(urlOf(database))
	if err != nil {
		return err
	}
	c, err := pgconn.ConnectConfig(background(), config)
	if err != nil {
		return err
	}
	defer c.Close(background())
	return c.Exec(background(), sql).Close()
}

var databases struct {
	sync.Mutex
	n int
}

// newDatabase makes a database for one test.
func newDatabase(t *testing.T) string {
	t.Helper()
	server.once.Do(func() { server.err = startServer() })
	if server.absent && os.Getenv("HEADGATE_TOOLS") != "required" {
		t.Skip("PostgreSQL is not installed:", server.err)
	}
	if server.err != nil {
		t.Fatal(server.err)
	}
	databases.Lock()
	databases.n++
	name := "test" + strconv.Itoa(databases.n)
	databases.Unlock()
	if err := admin("CREATE DATABASE " + name + " TEMPLATE template0"); err != nil {
		t.Fatal(err)
	}
	return name
}

// proxy is a way to the server that can lose answers, refuse connections and stop in the
// middle of a message.
type proxy struct {
	t      *testing.T
	listen net.Listener

	mu     sync.Mutex
	lose   bool // the answer to the next commit
	refuse bool
	reject string // a parameter of connections that is refused, as by a pool; "" for none
	pool   bool   // no notification arrives, as behind a pool of connections
	stall  int64  // how many bytes of a commit pass; -1 for all
	stuck  chan struct{}
	conns  map[net.Conn]bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, listen: l, stall: -1, conns: map[net.Conn]bool{}, stuck: make(chan struct{}, 1)}
	t.Cleanup(func() { l.Close(); p.cut() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) url(database string) string {
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", server.user, p.listen.Addr(), database)
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	p.conns = map[net.Conn]bool{}
}

// away refuses connections from now on, and closes those that are open, or not any more.
func (p *proxy) away(yes bool) {
	p.mu.Lock()
	p.refuse = yes
	p.mu.Unlock()
	if yes {
		p.cut()
	}
}

// loseAnswer has the answer to the next commit lost, after it was made.
func (p *proxy) loseAnswer() (restore func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = true
	return func() {
		p.mu.Lock()
		p.lose = false
		p.mu.Unlock()
		p.away(false)
	}
}

// hidesNotifications lets no notification of connections that come from now on pass.
func (p *proxy) hidesNotifications() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pool = true
}

// rejects has connections that come from now on refused if they have a parameter.
func (p *proxy) rejects(parameter string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reject = parameter
}

// stallAfter lets that many bytes of the next commit through, and then nothing.
func (p *proxy) stallAfter(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stall = n
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	refuse, pool, reject := p.refuse, p.pool, p.reject
	if !refuse {
		p.conns[client] = true
	}
	p.mu.Unlock()
	if refuse {
		return
	}
	to, err := net.Dial("unix", socketPath())
	if err != nil {
		return
	}
	defer to.Close()
	commits := make(chan struct{}, 100)
	go func() {
		defer to.Close()
		b := make([]byte, 1<<20)
		for {
			n, err := client.Read(b)
			part := b[:n]
			if reject != "" && bytes.Contains(part, []byte(reject+"\x00")) {
				fields := "SFATAL\x00C08P01\x00Munsupported startup parameter: " + reject + "\x00\x00"
				client.Write(append([]byte{'E', 0, 0, 0, byte(4 + len(fields))}, fields...))
				return
			}
			if pool { // the server listens to another channel of the same length
				part = bytes.ReplaceAll(part, []byte("LISTEN headgate"), []byte("LISTEN deafness"))
			}
			if bytes.Contains(part, []byte("headgate.change(")) {
				p.mu.Lock()
				stall := p.stall
				p.mu.Unlock()
				if stall >= 0 {
					to.Write(part[:min(int64(n), stall)])
					p.stuck <- struct{}{}
					io.Copy(io.Discard, client) // until it gives up
					return
				}
				commits <- struct{}{}
			}
			if _, werr := to.Write(part); err != nil || werr != nil {
				return
			}
		}
	}()
	b := make([]byte, 1<<20)
	losing := false
	for {
		n, err := to.Read(b)
		select {
		case <-commits:
			p.mu.Lock()
			losing = p.lose
			p.mu.Unlock()
		default:
		}
		if losing {
			// ReadyForQuery comes after the commit; CommandComplete comes before it.
			if bytes.Contains(b[:n], []byte("Z\x00\x00\x00\x05")) {
				p.away(true)
				return
			}
		} else if _, werr := client.Write(b[:n]); werr != nil {
			return
		}
		if err != nil {
			return
		}
	}
}
