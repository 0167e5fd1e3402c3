package interop

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// networkJob has this program run what it reads from its input in the network that it was
// started in.
const networkJob = "HEADGATE_INTEROP_NETWORK"

// inNetwork is a program in a network that only it and its servers are in.
type inNetwork struct {
	Command []string
	Only    bool // it ends by itself, and gets no requests
	Dir     string
	// Names are those of servers, Addresses those that this machine has, Servers the
	// ports at which a server says what it got, unless the program listens there.
	Names, Addresses, Servers []string
	Requests                  []networkRequest
	Late                      bool // the servers come after the program, which may want their ports
}

type networkRequest struct {
	Port               int
	TLS                bool
	Host, Method, Path string
	Change             string            // of a path of the configuration, "" for none
	Header             map[string]string // of lines "# sends: NAME: VALUE" in a configuration
}

type networkResult struct {
	Failed  string
	Answers []networkAnswer
}

// networkAnswer is what can be seen of an answer.
type networkAnswer struct {
	Err    string
	Status int
	Header map[string]string
	Body   string // of a server
	Reason string // what headgate says of its own errors
}

// alike reports whether two proxies did the same. Without an answer, as after a reset or
// nginx's 444, an error page is alike.
func (a networkAnswer) alike(b networkAnswer) bool {
	if a.Err != "" || b.Err != "" {
		return a.Err != "" && (b.Err != "" || b.Status >= 400) || b.Err != "" && a.Status >= 400
	}
	return a.Status == b.Status && a.Body == b.Body && maps.Equal(a.Header, b.Header)
}

// servedAt is the port in what a server says.
var servedAt = regexp.MustCompile(`^served at ([0-9]+)`)

// seenAs returns an answer as a client sees it who does not care which of several servers
// of a route it is from: a relative Location leads to where the request came from.
func (a networkAnswer) seenAs(rq networkRequest, balanced map[string]string) networkAnswer {
	a.Body = servedAt.ReplaceAllStringFunc(a.Body, func(s string) string {
		if first := balanced[strings.TrimPrefix(s, "served at ")]; first != "" {
			return "served at " + first
		}
		return s
	})
	if to := a.Header["Location"]; strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//") {
		a.Header = maps.Clone(a.Header)
		scheme, host := map[bool]string{true: "https", false: "http"}[rq.TLS], rq.Host
		if rq.Port != map[bool]int{true: 443, false: 80}[rq.TLS] {
			host = fmt.Sprint(host, ":", rq.Port)
		}
		a.Header["Location"] = scheme + "://" + host + to
	}
	return a
}

func (a networkAnswer) String() string {
	if a.Err != "" {
		return a.Err
	}
	return fmt.Sprint(a.Status, " ", a.Header, " ", a.Body, a.Reason)
}

// runNetworkJob does the job of the environment.
func runNetworkJob() int {
	var n inNetwork
	if err := json.NewDecoder(os.Stdin).Decode(&n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := n.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	json.NewEncoder(os.Stdout).Encode(r)
	return 0
}

// surroundings gives the network its addresses and names.
func (n inNetwork) surroundings() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	ip := "ip"
	batch := "link set lo up\n"
	for _, a := range n.Addresses {
		batch += "address add " + a + "/32 dev lo\n"
	}
	cmd := exec.Command(ip, "-force", "-batch", "-")
	cmd.Stdin = strings.NewReader(batch)
	cmd.Run() // an address that is none is left out
	hosts := "127.0.0.1 localhost\n"
	for _, name := range n.Names {
		hosts += "127.0.0.1 " + name + "\n"
	}
	for _, f := range []struct{ at, text string }{{"/etc/hosts", hosts}, {"/etc/resolv.conf", "nameserver 127.0.0.1\noptions attempts:1 timeout:1\n"}} {
		name := filepath.Join(n.Dir, filepath.Base(f.at))
		if err := os.WriteFile(name, []byte(f.text), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(name, f.at, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", f.at, err)
		}
	}
	return nil
}

func (n inNetwork) run() (r networkResult, err error) {
	if err := n.surroundings(); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.Command[0], n.Command[1:]...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &said, &said, n.Dir
	if n.Only {
		if err := cmd.Run(); err != nil {
			r.Failed = fmt.Sprintf("%v %s", err, said.String())
		}
		return r, nil
	}
	ports := map[int]bool{}
	for _, rq := range n.Requests {
		ports[rq.Port] = true
	}
	// Servers are there before the program checks their health, unless it may listen there.
	listening := map[string]bool{}
	for _, port := range n.Servers {
		if number, _ := strconv.Atoi(port); !ports[number] && !n.Late {
			listening[port] = serveReflections(port)
		}
	}
	if err := cmd.Start(); err != nil {
		return r, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer func() {
		cmd.Process.Kill()
		<-ended
	}()
	for port := range ports {
		if what := awaitPort(ctx, port, ended); what != "" {
			r.Failed = fmt.Sprintf("%s: %s\n%s", n.Command[0], what, said.String())
			if strings.HasPrefix(what, "it ended") {
				ended <- nil
			}
			return r, nil
		}
	}
	for _, port := range n.Servers {
		if !listening[port] {
			serveReflections(port)
		}
	}
	r.Answers = make([]networkAnswer, len(n.Requests))
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, Timeout: 10 * time.Second,
		Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	var all sync.WaitGroup
	var late atomic.Int32
	turn := make(chan struct{}, 4)
	for i, rq := range n.Requests {
		turn <- struct{}{}
		if late.Load() > maxLate {
			<-turn
			break
		}
		all.Go(func() {
			if r.Answers[i] = rq.send(client); strings.Contains(r.Answers[i].Err, "Client.Timeout") {
				late.Add(1)
			}
			<-turn
		})
	}
	if all.Wait(); late.Load() > maxLate {
		r.Failed = fmt.Sprintf("%s does not answer: %d requests took 10s", n.Command[0], late.Load())
		return r, nil
	}
	select {
	case err := <-ended:
		r.Failed = fmt.Sprintf("%s ended before the last request: %v\n%s", n.Command[0], err, said.String())
		ended <- nil
	default:
	}
	return r, nil
}

// maxLate is how many requests of a program may have no answer.
const maxLate = 12

// serveReflections has a server at a port, and reports whether there is none yet.
func serveReflections(port string) bool {
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return false
	}
	go http.Serve(l, http.HandlerFunc(reflect))
	return true
}

// awaitPort waits until the program listens.
func awaitPort(ctx context.Context, port int, ended chan error) string {
	deadline := time.Now().Add(5 * time.Second)
	for {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			c.Close()
			return ""
		}
		select {
		case err := <-ended:
			return fmt.Sprintf("it ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Sprintf("nothing listens at %d", port)
		}
	}
}

// ownFields are fields that proxies send in their own ways, as the guides say, and one that
// configurations of HAProxy have for the server that has its turn.
var ownFields = []string{"Accept-Encoding", "Connection", "Content-Length", "Date", "Forwarded", "Server", "Transfer-Encoding", "User-Agent", "Via", "X-Forwarded-For", "X-Forwarded-Host",
	"X-Forwarded-Proto", "X-Forwarded-Server", "X-Forwarded-Port", "X-Forwarded-Scheme", "X-Forwarded-Ssl", "Alt-Svc", "Etag", "Last-Modified", "Accept-Ranges", "Allow", "X-Request-Id", "Retry-After", "Keep-Alive", "Vary", "Upgrade", "Te", "Set-Cookie", "X-Haproxy-Used"}

func fieldsOf(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		if !slices.Contains(ownFields, name) {
			out[name] = strings.Join(values, ", ")
		}
	}
	return out
}

// reflect is a server that says what it got, and where.
func reflect(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	_, port, _ := net.SplitHostPort(local.String())
	w.Header().Set("Server", "reflect")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fields := fieldsOf(r.Header)
	host, number, found := strings.Cut(r.Host, ":")
	if found && number != port {
		host += ":" + number
	}
	fmt.Fprintf(w, "served at %s: %s %s host=%s %v body=%d", port, r.Method, r.RequestURI, host, fields, len(body))
}

func (rq networkRequest) send(client *http.Client) (a networkAnswer) {
	scheme := "http"
	if rq.TLS {
		scheme = "https"
	}
	var body io.Reader
	if rq.Method == "POST" {
		body = strings.NewReader("some")
	}
	req, err := http.NewRequest(rq.Method, fmt.Sprintf("%s://127.0.0.1:%d/", scheme, rq.Port), body)
	if err != nil {
		return networkAnswer{Err: err.Error()}
	}
	req.Host, req.URL.Opaque = rq.Host, rq.Path
	for name, value := range rq.Header {
		req.Header.Set(name, value)
	}
	if rq.TLS { // the name in TLS is that of the URL
		own := client.Transport.(*http.Transport).Clone()
		own.TLSClientConfig.ServerName = rq.Host
		client = &http.Client{CheckRedirect: client.CheckRedirect, Timeout: client.Timeout, Transport: own}
	}
	rs, err := client.Do(req)
	if err != nil {
		return networkAnswer{Err: err.Error()}
	}
	defer rs.Body.Close()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		return networkAnswer{Err: err.Error()}
	}
	a = networkAnswer{Status: rs.StatusCode, Header: fieldsOf(rs.Header)}
	if kind := a.Header["Content-Type"]; kind != "" { // headgate names the charset of texts
		a.Header["Content-Type"], _, _ = strings.Cut(kind, ";")
	}
	if ask := a.Header["Www-Authenticate"]; ask != "" { // headgate names the encoding of passwords (RFC 7617), which changes none of them
		a.Header["Www-Authenticate"] = strings.TrimSuffix(ask, `, charset="UTF-8"`)
	}
	if strings.HasPrefix(string(text), "served at ") {
		a.Body = string(text)
	} else if rs.StatusCode != http.StatusOK {
		a.Reason = a.Header["Proxy-Status"]
		for _, name := range []string{"Content-Type", "Cache-Control", "Proxy-Status"} { // each has its own pages
			delete(a.Header, name)
		}
	} else {
		a.Body = string(text)
	}
	return a
}

// selfSigned makes a certificate for names, with its key in the same file.
func selfSigned(t *testing.T, dir string, names []string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		DNSNames: append(slices.Clone(names), "localhost", "unknown.invalid"), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "certificate.pem")
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})...)
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
