package spec

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// patience is how long a script waits for anything. It only matters when a test
// fails.
const patience = time.Minute

// quiet is how long a script watches that nothing comes.
const quiet = 100 * time.Millisecond

// script is one parsed script.
type script struct {
	name, rule string
	only       string // the transport that it is for; "" is all
	config     string
	files      []txtar.File // of the folder
	steps      []txtar.File
}

// load reads all scripts.
func load(t *testing.T) []script {
	t.Helper()
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no scripts in testdata: %v", err)
	}
	var all []script
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		ar := txtar.Parse(data)
		s := script{name: strings.TrimSuffix(filepath.Base(name), ".txtar")}
		for line := range strings.Lines(string(ar.Comment)) {
			if rule, ok := strings.CutPrefix(line, "rule: "); ok {
				s.rule = strings.TrimSpace(rule)
			}
			if only, ok := strings.CutPrefix(line, "only: "); ok {
				s.only = strings.TrimSpace(only)
			}
		}
		for _, f := range ar.Files {
			if f.Name == "config" {
				s.config = string(f.Data)
				continue
			}
			if name, ok := strings.CutPrefix(f.Name, "folder/"); ok {
				s.files = append(s.files, txtar.File{Name: name, Data: f.Data})
				continue
			}
			s.steps = append(s.steps, f)
		}
		if s.rule == "" || s.config == "" {
			t.Fatalf("%s: a script needs a line \"rule: NAME\" and a config", name)
		}
		all = append(all, s)
	}
	return all
}

// rules reads the names in rules.txt.
func rules(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile("rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) > 0 && f[0] != "#" {
			names[f[0]] = true
		}
	}
	return names
}

// TestEveryRuleHasAScript fails for rules without a script and for scripts of
// unknown rules.
func TestEveryRuleHasAScript(t *testing.T) {
	names := rules(t)
	covered := map[string]bool{}
	for _, s := range load(t) {
		if !names[s.rule] {
			t.Errorf("%s: rule %q is not in rules.txt", s.name, s.rule)
		}
		covered[s.rule] = true
	}
	for name := range names {
		if !covered[name] {
			t.Errorf("rule %q has no script in testdata", name)
		}
	}
}

// TestScripts runs every script over every transport that it is for.
func TestScripts(t *testing.T) {
	for _, s := range load(t) {
		for _, tr := range transports {
			if !tr.runs(s) {
				continue
			}
			t.Run(s.name+"/"+tr.name, func(t *testing.T) {
				t.Parallel()
				run(t, s, tr)
			})
		}
	}
}

// run plays one script: the client and the servers of it are raw sockets.
func run(t *testing.T, s script, tr transport) {
	stage := newStage(t, strings.ReplaceAll(s.config, "FOLDER", folder(t, s.files)), tr)
	client := stage.dial()
	for i, step := range s.steps {
		client.at(i + 1)
		stage.server.step, stage.server2.step = i+1, i+1
		text := expand(string(step.Data), stage)
		switch kind, _, _ := strings.Cut(step.Name, "#"); strings.TrimSpace(kind) {
		case "new connection":
			client.Close()
			client = stage.dial()
		case "request":
			client.send(wire(text))
		case "upstream gets":
			stage.server.mustGet(wire(text))
		case "upstream2 gets":
			stage.server2.mustGet(wire(text))
		case "upstream answers":
			stage.server.send(wire(text))
		case "upstream2 answers":
			stage.server2.send(wire(text))
		case "upstream closes":
			stage.server.end()
		case "upstream2 closes":
			stage.server2.end()
		case "response":
			client.mustGetResponse(text)
		case "client gets":
			client.mustGet(wire(text))
		case "closed":
			client.mustBeClosed()
		default:
			t.Fatalf("unknown step %q", step.Name)
		}
	}
	until := time.Now().Add(quiet)
	stage.server.mustBeQuiet(until)
	stage.server2.mustBeQuiet(until)
}

// folder returns a new folder with files. A body without a line end ends with a backslash.
func folder(t *testing.T, files []txtar.File) string {
	dir := t.TempDir()
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, bytes.ReplaceAll(f.Data, []byte("\\\n"), nil), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.ToSlash(dir)
}

// expand replaces the names of addresses.
func expand(text string, s *stage) string {
	if strings.Contains(text, "SOCKET") {
		text = strings.ReplaceAll(text, "SOCKET", s.server.socket())
	}
	if strings.Contains(text, "TLSUPSTREAM") {
		address, ca := s.server.secure()
		text = strings.NewReplacer("TLSUPSTREAM", address, "CAFILE", ca).Replace(text)
	}
	return strings.NewReplacer("UPSTREAMPORT", portOf(s.server.addr()), "UPSTREAM2", s.server2.addr(), "UPSTREAM", s.server.addr(), "DEAD", s.dead, "LISTEN", s.addr,
		"STICKY2", affinity("http://"+s.server2.addr()), "STICKY", affinity("http://"+s.server.addr()), "SECURE", s.way.cookieSecure(),
		"SCHEME", s.way.scheme(), "VERSION", s.way.version).Replace(text)
}

// portOf returns the number of the port of an address.
func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// wire makes line ends those of HTTP. A line that ends in a backslash is joined
// to the next; \r, \n, \t, \0 and \x.. stand for bytes where a script needs
// broken ones. The last line end of a file with a body is dropped by a backslash.
func wire(text string) []byte {
	text = strings.ReplaceAll(text, "\n", "\r\n")
	text = strings.ReplaceAll(text, "\\\r\n", "")
	r := strings.NewReplacer(`\r`, "\r", `\n`, "\n", `\t`, "\t", `\0`, "\x00", `\\`, `\`)
	return []byte(r.Replace(text))
}

// peer is one end of a connection in a script.
type peer struct {
	t    *testing.T
	who  string
	conn net.Conn
	r    *bufio.Reader
	step int // of the script, for failures
}

func newPeer(t *testing.T, who string, conn net.Conn) *peer {
	conn.SetDeadline(time.Now().Add(patience))
	return &peer{t: t, who: who, conn: conn, r: bufio.NewReader(conn)}
}

func (p *peer) Close() { p.conn.Close() }

func (p *peer) at(step int) { p.step = step }

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.conn.Write(b); err != nil {
		p.t.Fatalf("%s: send: %v", p.who, err)
	}
}

// mustGet reads exactly want.
func (p *peer) mustGet(want []byte) {
	p.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(p.r, got)
	if !bytes.Equal(got[:n], want) {
		rest := make([]byte, p.r.Buffered())
		p.r.Read(rest)
		p.t.Fatalf("step %d: %s got:\n%s\nwant:\n%s\n(%v)", p.step, p.who, visible(append(got[:n], rest...)), visible(want), err)
	}
}

// mustBeClosed waits for the end of the connection.
func (p *peer) mustBeClosed() {
	p.t.Helper()
	if b, err := io.ReadAll(p.r); len(b) > 0 || err != nil && !isReset(err) {
		p.t.Fatalf("%s got %q, %v; want the connection closed", p.who, b, err)
	}
}

func isReset(err error) bool { return strings.Contains(err.Error(), "reset") }

// mustGetResponse reads one response and compares what the script names.
func (p *peer) mustGetResponse(want string) {
	p.t.Helper()
	head, _, _ := strings.Cut(want, "\n\n")
	got, err := readResponse(p.r, strings.Contains(head, "(HEAD)"))
	if err != nil {
		p.t.Fatalf("step %d: client: read response: %v\nso far: %+v", p.step, err, got)
	}
	matches(p.t, p.step, got, want)
}

// visible makes bytes readable in a failure.
func visible(b []byte) string {
	return strings.ReplaceAll(fmt.Sprintf("%q", b), `\r\n`, "\\r\\n\n")
}
