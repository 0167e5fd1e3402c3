package interop

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The guides below docs/guides/moving take an example from another proxy to headgate and
// back. Their blocks are what the test runs, so that a guide cannot say what does not
// work. The words after the language of a block say what it is:
//
//	PATH                    a file, which is there before anything runs
//	run                     commands that succeed
//	fails                   commands of which the last fails
//	background              a command that goes on
//	out                     lines that the last command prints, in this order; … is any text
//	in PATH                 lines that a file has, in this order; … is any text
//
// Other numbers stand for the ports, the folder of the test for / in names of files, and
// the test itself for systemctl and docker: it runs the old proxy.

// movingPage is one guide.
type movingPage struct {
	name string
	// program of the old proxy, its Debian package, and its arguments when the files of
	// the guide are there.
	program, debian string
	args            func(m *moving) []string
	// implied says that the source does not name the ports: they are 80 and 443.
	implied bool
	// prepare makes what the guide takes for granted.
	prepare func(m *moving)
	// issues is a host for which the program makes a certificate after it has opened its ports.
	issues string
}

var movingPages = []movingPage{
	{name: "nginx", program: "nginx", debian: "nginx-light", args: func(m *moving) []string { return m.nginx(m.read("/etc/nginx/nginx.conf")) }},
	{name: "haproxy", program: "haproxy", debian: "haproxy", args: func(m *moving) []string { return []string{"-db", "-f", m.path("/etc/haproxy/haproxy.cfg")} }},
	{name: "caddy", program: "caddy", debian: "caddy", issues: "shop.example.com", args: func(m *moving) []string {
		// Certificates of an authority of its own, which the guide has not to show.
		text := strings.Replace(m.read("/etc/caddy/Caddyfile"), "{\n", "{\n\tadmin off\n\tskip_install_trust\n\tlocal_certs\n", 1)
		return []string{"run", "--adapter", "caddyfile", "--config", m.put("/run/Caddyfile", text)}
	}, prepare: func(m *moving) { // ports that a Caddyfile need not name, and no way out
		numbers := fmt.Sprintf("{\n\thttp_port %s\n\thttps_port %s\n\tacme_ca https://127.0.0.1:1/\n", m.port["80"], m.port["443"])
		m.put("/etc/caddy/Caddyfile", strings.Replace(m.read("/etc/caddy/Caddyfile"), "{\n", numbers, 1))
	}},
	{name: "traefik", program: "nginx", debian: "nginx-light", args: (*moving).standIn},
	{name: "compose", program: "nginx", debian: "nginx-light", args: (*moving).standIn},
	{name: "nginx-proxy-manager", program: "nginx", debian: "nginx-light", args: (*moving).standIn, implied: true, prepare: func(m *moving) {
		sqlite := needed(m.t, "sqlite3", "sqlite3")
		sql, err := os.ReadFile("testdata/moving/nginx-proxy-manager.sql")
		if err != nil {
			m.t.Fatal(err)
		}
		name := m.put("/srv/npm/data/database.sqlite", "")
		if out, err := exec.Command(sqlite, name, m.translate(string(sql))).CombinedOutput(); err != nil {
			m.t.Fatalf("%v\n%s", err, out)
		}
	}},
}

func TestMovingGuides(t *testing.T) {
	for _, page := range movingPages {
		t.Run(page.name, func(t *testing.T) {
			m := newMoving(t, page)
			m.walk()
		})
	}
}

// moving is one guide that is followed.
type moving struct {
	t    *testing.T
	page movingPage
	dir  string // the root of its files
	env  []string
	port map[string]string // by the number in the guide

	mu  sync.Mutex
	old *exec.Cmd
	// ended is closed when old has ended.
	ended chan struct{}
}

// guidePort finds the ports of a guide in a text.
var guidePort = regexp.MustCompile(`([:= ,"{|](?:0\.0\.0\.0:)?)(80|443|8080|8443|3000|3001)\b`)

// guidePath finds the files of a guide in a text.
var guidePath = regexp.MustCompile("(^|[\\s'\"=:(,])/(etc|srv|run)/")

func newMoving(t *testing.T, page movingPage) *moving {
	m := &moving{t: t, page: page, dir: shortDir(t), port: map[string]string{}}
	for _, number := range []string{"80", "443", "8080", "8443"} {
		m.port[number] = lasting(t)
	}
	for _, number := range []string{"3000", "3001"} {
		m.port[number] = shop(t, number)
	}
	for _, bin := range []struct{ name, script string }{
		{"sudo", `exec "$@"`},
		{"systemctl", `exec curl --fail-with-body -sS -X POST --unix-socket "$SERVICES" "http://services/$1"`},
		{"docker", `exec curl --fail-with-body -sS -X POST --unix-socket "$SERVICES" "http://services/$2"`},
	} {
		needed(t, "curl", "curl")
		if err := os.WriteFile(m.made("/bin/"+bin.name), []byte("#!/bin/sh\n"+bin.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m.made("/home/of-the-reader")
	if err := os.Symlink(os.Getenv(binaryFolder), m.made("/bin/headgate")); err != nil {
		t.Fatal(err)
	}
	m.env = append(os.Environ(), "PATH="+m.path("/bin")+":"+os.Getenv("PATH"), "SERVICES="+m.services(), "HEADGATE_STATE="+m.path("/state"), "HOME="+m.dir, "XDG_DATA_HOME="+m.dir)
	return m
}

// shop is the application of the guides.
func shop(t *testing.T, number string) (port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		http.SetCookie(w, &http.Cookie{Name: "sid", Value: fmt.Sprint(time.Now().UnixNano()), Path: "/", HttpOnly: true})
		fmt.Fprintf(w, "%s got %s for %s\n", map[string]string{"3000": "the shop", "3001": "the API"}[number], r.URL.Path, strings.Split(r.Host, ":")[0])
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// path is where a file of the guide is.
func (m *moving) path(name string) string { return filepath.Join(m.dir, filepath.FromSlash(name)) }

// made is path, in a folder that is there.
func (m *moving) made(name string) string {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o700); err != nil {
		m.t.Fatal(err)
	}
	return m.path(name)
}

// put writes a file as it is.
func (m *moving) put(name, text string) string {
	m.t.Helper()
	if err := os.WriteFile(m.made(name), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	return m.path(name)
}

func (m *moving) read(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

// translate puts the ports and files of the test into a text of the guide.
func (m *moving) translate(text string) string {
	if m.page.implied {
		text = strings.Replace(text, "--ports 80=8080,443=8443", "--ports '80'=8080,'443'=8443", 1)
	}
	text = guidePort.ReplaceAllStringFunc(text, func(found string) string {
		p := guidePort.FindStringSubmatch(found)
		return p[1] + m.port[p[2]]
	})
	return guidePath.ReplaceAllString(text, "${1}"+m.dir+"/$2/")
}

// nginx runs nginx with a configuration, and what it needs in a folder of its own.
func (m *moving) nginx(text string) []string {
	own := fmt.Sprintf("http {\n  access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;\n", m.path("/run"))
	conf := m.put("/run/nginx.conf", strings.Replace(text, "http {\n", own, 1))
	return []string{"-p", m.path("/etc/nginx"), "-c", conf, "-g", "daemon off; master_process off; pid " + m.path("/run/pid") + "; error_log " + m.path("/run/error.log") + ";"}
}

func (m *moving) standInFile() string {
	return filepath.Join("testdata", "moving", m.page.name+".conf")
}

// standIn is an nginx that serves what the old proxy of the guide would.
func (m *moving) standIn() []string {
	text, err := os.ReadFile(m.standInFile())
	if err != nil {
		m.t.Fatal(err)
	}
	return m.nginx(m.translate(string(text)))
}

// services answers what systemctl and docker ask: start, stop.
func (m *moving) services() string {
	name := m.path("/services")
	l, err := net.Listen("unix", name)
	if err != nil {
		m.t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		switch r.URL.Path {
		case "/start":
			err = m.startOld()
		case "/stop":
			m.stopOld()
		default:
			err = fmt.Errorf("unknown command %s", r.URL.Path)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	go s.Serve(l)
	m.t.Cleanup(func() {
		s.Close()
		m.stopOld()
	})
	return name
}

// startOld starts the old proxy and waits until it serves.
func (m *moving) startOld() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	said := &record{}
	cmd := exec.Command(needed(m.t, m.page.program, m.page.debian), m.page.args(m)...)
	cmd.Stdout, cmd.Stderr, cmd.Env = said, said, m.env
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	m.old, m.ended = cmd, ended
	for end := time.Now().Add(patience); ; {
		if m.listens() {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("the old proxy has ended: %s", said)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("the old proxy does not listen: %s", said)
		}
	}
}

// listens reports whether the old proxy has opened its ports, and has its certificate.
func (m *moving) listens() bool {
	c, err := net.Dial("tcp", "127.0.0.1:"+m.port["80"])
	if err != nil {
		return false
	}
	c.Close()
	if m.page.issues == "" {
		return true
	}
	t, err := tls.Dial("tcp", "127.0.0.1:"+m.port["443"], &tls.Config{ServerName: m.page.issues, InsecureSkipVerify: true})
	if err != nil {
		return false
	}
	t.Close()
	return true
}

// stopOld stops the old proxy and waits for its end.
func (m *moving) stopOld() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.old == nil {
		return
	}
	m.old.Process.Signal(syscall.SIGTERM)
	last := time.AfterFunc(patience, func() { m.old.Process.Kill() })
	<-m.ended
	last.Stop()
	m.old = nil
}

// block is a block of a guide.
type block struct {
	line            int
	what, arg, text string
}

// blocksOf returns the blocks of a guide that say what they are.
func blocksOf(t *testing.T, page string) (blocks []block) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var open *block
	indent := ""
	for i, line := range strings.Split(string(data), "\n") {
		bare := strings.TrimLeft(line, " ")
		switch {
		case open == nil && strings.HasPrefix(bare, "```"):
			words := append(strings.Fields(bare[3:]), "", "", "")
			open, indent = &block{line: i + 1, what: words[1], arg: words[2]}, line[:len(line)-len(bare)]
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

// walk follows the guide.
func (m *moving) walk() {
	page := filepath.Join("..", "docs", "guides", "moving", m.page.name+".md")
	blocks := blocksOf(m.t, page)
	for _, b := range blocks {
		if strings.HasPrefix(b.what, "/") {
			m.put(b.what, m.translate(b.text))
		}
	}
	m.certificates(blocks)
	if m.page.prepare != nil {
		m.page.prepare(m)
	}
	if err := m.startOld(); err != nil {
		m.t.Fatal(err)
	}
	printed, ran := "", 0
	for _, b := range blocks {
		at := fmt.Sprintf("%s:%d", filepath.Base(page), b.line)
		switch b.what {
		case "run", "fails":
			printed = m.run(at, b)
			ran++
		case "background":
			m.background(b)
		case "out":
			m.holds(at, printed, b.text)
		case "in":
			m.holds(at, m.read("/home/"+b.arg), b.text)
		default:
			if !strings.HasPrefix(b.what, "/") {
				m.t.Fatalf("%s: nobody knows what %q is", at, b.what)
			}
		}
	}
	if ran < 6 {
		m.t.Errorf("%s: only %d blocks were run", page, ran)
	}
}

// run runs the commands of a block.
func (m *moving) run(at string, b block) string {
	m.t.Helper()
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", m.translate(b.text))
	cmd.Dir, cmd.Env = m.path("/home"), m.env
	out, err := cmd.CombinedOutput()
	if (err == nil) == (b.what == "fails") {
		m.t.Fatalf("%s: %v\n%s\n%s", at, err, b.text, out)
	}
	return string(out)
}

// background runs the headgate of the guide until the test ends.
func (m *moving) background(b block) {
	m.t.Helper()
	conf := m.read("/home/headgate.yaml") // its admin listener has a port that others use too
	m.put("/home/headgate.yaml", conf+"admin: {address: "+free(m.t)+"}\naccess_log: {enabled: false}\n")
	out := &record{}
	words := strings.Fields(m.translate(b.text))
	cmd := exec.Command(m.path("/bin/"+words[0]), words[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = m.path("/home"), m.env, out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		last := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		cmd.Wait()
		last.Stop()
		if m.t.Failed() {
			m.t.Logf("the log of headgate:\n%s", out)
		}
	})
	for _, number := range []string{"8080", "8443"} {
		eventually(m.t, "headgate listens", func() bool {
			c, err := net.Dial("tcp", "127.0.0.1:"+m.port[number])
			if err == nil {
				c.Close()
			}
			return err == nil
		})
	}
}

// guidePortName are the names that imports give ports 80 and 443; those with another
// number have it in their name.
var guidePortName = regexp.MustCompile(`\bweb(?:secure)?\b`)

// holds checks that a text has the lines of a block, in their order.
func (m *moving) holds(at, text, lines string) {
	m.t.Helper()
	rest := text
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		if line == "" || line == "…" {
			continue
		}
		parts := strings.Split(m.translate(line), "…")
		for i := range parts {
			parts[i] = guidePortName.ReplaceAllString(regexp.QuoteMeta(strings.TrimSpace(parts[i])), "${0}(?:-[0-9]+)?")
		}
		found := regexp.MustCompile(strings.Join(parts, ".*?")).FindStringIndex(rest)
		if found == nil {
			m.t.Fatalf("%s: no line %q in\n%s", at, line, text)
		}
		rest = rest[found[1]:]
	}
}

// guideCertificate finds the certificates that a guide names.
var guideCertificate = regexp.MustCompile(`/(?:etc|srv)/[a-z0-9_/.-]+\.(?:crt|key|pem)\b`)

// certificates makes the certificates that the files of a guide name, for
// shop.example.com. HAProxy wants the key in the same file.
func (m *moving) certificates(blocks []block) {
	id := newIdentity(m.t, "shop.example.com")
	stands, _ := os.ReadFile(m.standInFile()) // not every guide has a stand-in
	texts := []string{string(stands)}
	for _, b := range blocks {
		if strings.HasPrefix(b.what, "/") {
			texts = append(texts, b.text)
		}
	}
	for _, text := range texts {
		for _, name := range guideCertificate.FindAllString(text, -1) {
			switch {
			case strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, "fullchain.pem"):
				m.put(name, id.cert)
			case strings.HasSuffix(name, ".key") || strings.HasSuffix(name, "privkey.pem"):
				m.put(name, id.key)
			default:
				m.put(name, id.cert+id.key)
			}
		}
	}
}
